//! Ids in headers that tie requests together: `x-request-id`, W3C Trace Context, B3, `SkyWalking`'s sw8.
//!
//! What does not have the form that its specification asks for is not an id.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::TraceIds;

/// Most bytes of an id.
const ID_BYTES: usize = 128;

/// Where a trace id came from; the better source wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TraceSource {
    #[default]
    None,
    Sw8,
    B3Multi,
    B3Single,
    TraceParent,
}

/// Takes ids from a header of a request; `name` is in lower case. `source` is what the ids so far
/// came from.
pub(crate) fn take_trace_header(
    ids: &mut TraceIds,
    source: &mut TraceSource,
    name: &str,
    value: &str,
) {
    let value = value.trim_ascii();
    match name {
        "x-request-id" if is_id(value) => ids.request_id = Some(value.to_owned()),
        "traceparent" => {
            if let Some((trace, span)) = trace_parent(value) {
                replace(ids, source, TraceSource::TraceParent, trace, Some(span));
            }
        }
        "b3" => {
            if let Some((trace, span)) = b3(value) {
                replace(ids, source, TraceSource::B3Single, trace, Some(span));
            }
        }
        "x-b3-traceid" => {
            if let Some(trace) = hex_id(value, &[16, 32])
                && *source <= TraceSource::B3Multi
            {
                let span = (*source == TraceSource::B3Multi)
                    .then(|| ids.span_id.take())
                    .flatten();
                replace(ids, source, TraceSource::B3Multi, trace, span);
            }
        }
        "x-b3-spanid" => {
            if let Some(span) = hex_id(value, &[16])
                && *source <= TraceSource::B3Multi
            {
                if *source < TraceSource::B3Multi {
                    ids.trace_id = None;
                }
                *source = TraceSource::B3Multi;
                ids.span_id = Some(span);
            }
        }
        "sw8" => {
            if let Some((trace, span)) = sw8(value) {
                replace(ids, source, TraceSource::Sw8, trace, Some(span));
            }
        }
        _ => {}
    }
}

fn replace(
    ids: &mut TraceIds,
    source: &mut TraceSource,
    found: TraceSource,
    trace: String,
    span: Option<String>,
) {
    if found >= *source {
        *source = found;
        ids.trace_id = Some(trace);
        ids.span_id = span;
    }
}

/// W3C Trace Context, section 3.2: `version-trace-span-flags`, of which later versions may have more
/// fields.
fn trace_parent(value: &str) -> Option<(String, String)> {
    let mut parts = value.split('-');
    let version = hex_text(parts.next()?, 2)?;
    let trace = hex_id(parts.next()?, &[32])?;
    let span = hex_id(parts.next()?, &[16])?;
    hex_text(parts.next()?, 2)?;
    if version == "ff" || version == "00" && parts.next().is_some() {
        return None;
    }
    Some((trace, span))
}

/// B3 in one header: `trace-span[-sampled[-parent]]`.
fn b3(value: &str) -> Option<(String, String)> {
    let mut parts = value.split('-');
    let trace = hex_id(parts.next()?, &[16, 32])?;
    let span = hex_id(parts.next()?, &[16])?;
    if let Some(sampled) = parts.next()
        && !matches!(sampled, "0" | "1" | "d" | "true" | "false")
    {
        return None;
    }
    if let Some(parent) = parts.next() {
        hex_id(parent, &[16])?;
    }
    parts.next().is_none().then_some((trace, span))
}

/// `SkyWalking` Cross Process Propagation, version 3: eight fields, `sample-trace-segment-span-...`, of
/// which trace and segment are base64. The span is the segment with the number of the span in it.
fn sw8(value: &str) -> Option<(String, String)> {
    let parts: Vec<&str> = value.splitn(9, '-').collect();
    let [sample, trace, segment, span, ..] = parts.as_slice() else {
        return None;
    };
    if parts.len() != 8 || !matches!(*sample, "0" | "1") {
        return None;
    }
    let number: u32 = span.parse().ok()?;
    let trace = base64_id(trace)?;
    let mut span = base64_id(segment)?;
    span.push('-');
    span.push_str(&number.to_string());
    is_id(&span).then_some((trace, span))
}

fn base64_id(text: &str) -> Option<String> {
    if text.len() > 2 * ID_BYTES {
        return None;
    }
    let id = String::from_utf8(STANDARD.decode(text).ok()?).ok()?;
    is_id(&id).then_some(id)
}

/// An id of hexadecimal digits that is not zero, in lower case.
fn hex_id(text: &str, lengths: &[usize]) -> Option<String> {
    let id = lengths.iter().find_map(|length| hex_text(text, *length))?;
    id.bytes().any(|byte| byte != b'0').then_some(id)
}

fn hex_text(text: &str, length: usize) -> Option<String> {
    (text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit()))
        .then(|| text.to_ascii_lowercase())
}

fn is_id(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= ID_BYTES
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.:+/=@#".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::{TraceSource, take_trace_header};
    use crate::TraceIds;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    fn check(headers: &[(&str, &str)], trace: Option<&str>, span: Option<&str>) {
        let ids = ids_of(headers);
        assert_eq!(ids.trace_id.as_deref(), trace, "{headers:?}");
        assert_eq!(ids.span_id.as_deref(), span, "{headers:?}");
    }

    #[test]
    fn trace_context_is_read() {
        let value = format!("00-{TRACE}-{SPAN}-01");
        check(&[("traceparent", &value)], Some(TRACE), Some(SPAN));
        let later = format!("01-{TRACE}-{SPAN}-01-more");
        check(&[("traceparent", &later)], Some(TRACE), Some(SPAN));
        for wrong in [
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{}-{SPAN}-01", "0".repeat(32)),
            format!("00-{TRACE}x-{SPAN}-01"),
            String::new(),
        ] {
            check(&[("traceparent", &wrong)], None, None);
        }
    }

    #[test]
    fn b3_is_read_in_one_header_and_in_many() {
        let single = format!("{TRACE}-{SPAN}-1-05e3ac9a4f6e3b90");
        check(&[("b3", &single)], Some(TRACE), Some(SPAN));
        check(&[("b3", "0")], None, None);
        check(&[("b3", &format!("{TRACE}-{SPAN}-x"))], None, None);
        let multi = [("x-b3-traceid", &TRACE[16..]), ("x-b3-spanid", SPAN)];
        check(&multi, Some(&TRACE[16..]), Some(SPAN));
        let turned = [("x-b3-spanid", SPAN), ("x-b3-traceid", TRACE)];
        check(&turned, Some(TRACE), Some(SPAN));
    }

    #[test]
    fn skywalking_is_read() {
        // Example of the specification: trace, segment, span 3, service, instance, endpoint, address.
        let value = "1-TRACEID-SEGMENTID-3-PARENT_SERVICE-PARENT_INSTANCE-PARENT_ENDPOINT-IPPORT"
            .replace("TRACEID", "dHJhY2UuMS4y")
            .replace("SEGMENTID", "c2VnLjE=");
        check(&[("sw8", &value)], Some("trace.1.2"), Some("seg.1-3"));
        check(&[("sw8", "1-dHJhY2UuMS4y-c2VnLjE=-3")], None, None);
        check(&[("sw8", &value.replace("-3-", "-x-"))], None, None);
    }

    #[test]
    fn the_better_source_wins() {
        let parent = format!("00-{TRACE}-{SPAN}-01");
        let other = "1".repeat(32);
        check(
            &[
                ("x-b3-traceid", &other),
                ("traceparent", &parent),
                ("b3", "1-1"),
            ],
            Some(TRACE),
            Some(SPAN),
        );
        check(
            &[
                ("traceparent", &parent),
                ("x-b3-traceid", &other),
                ("x-b3-spanid", "1111111111111111"),
            ],
            Some(TRACE),
            Some(SPAN),
        );
    }

    #[test]
    fn request_ids_are_validated_and_bounded() {
        assert_eq!(
            ids_of(&[("x-request-id", " 7a-b ")]).request_id.as_deref(),
            Some("7a-b")
        );
        for wrong in ["", "a b", "a\u{1b}b", &"a".repeat(129)] {
            assert_eq!(ids_of(&[("x-request-id", wrong)]).request_id, None);
        }
    }

    fn ids_of(headers: &[(&str, &str)]) -> TraceIds {
        let (mut ids, mut source) = (TraceIds::default(), TraceSource::default());
        for (name, value) in headers {
            take_trace_header(&mut ids, &mut source, name, value);
        }
        ids
    }
}
