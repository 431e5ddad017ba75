//! Log records of Envoy's OpenTelemetry logger to entries.
//!
//! Field numbers are those of `opentelemetry/proto/{collector/logs,logs,resource,common}/v1` (opentelemetry-proto 1.0 and later).

mod attributes;

use bytes::Bytes;
use prost::Message as _;

pub use self::attributes::{ATTRIBUTES, Attribute};
use crate::{
    decode::{DecodeError, check_size},
    entry::{Entry, Identifier},
    limits::{Counts, Limits},
    names::{HttpVersion, Kind, LogType},
    values::Values,
    wire::{Content, Fields, Place, WireError},
};

/// `ExportLogsServiceRequest` and `ResourceLogs`, `ScopeLogs`, `Resource` and `LogRecord` in it. They are walked by hand for the
/// same reason as messages of the access log service.
mod fields {
    pub(super) const RESOURCE_LOGS: u32 = 1;
    pub(super) const RESOURCE: u32 = 1;
    pub(super) const SCOPE_LOGS: u32 = 2;
    pub(super) const LOG_RECORDS: u32 = 2;
    pub(super) const RESOURCE_ATTRIBUTES: u32 = 1;
    pub(super) const TIME_UNIX_NANO: u32 = 1;
    pub(super) const ATTRIBUTES: u32 = 6;
}

#[derive(Clone, PartialEq, prost::Message)]
struct KeyValue {
    #[prost(bytes = "bytes", tag = "1")]
    key: Bytes,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

/// Without lists and maps, which our attributes do not use.
#[derive(Clone, PartialEq, prost::Message)]
struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 2, 3, 4, 7")]
    value: Option<Value>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Value {
    #[prost(bytes = "bytes", tag = "1")]
    String(Bytes),
    #[prost(bool, tag = "2")]
    Bool(bool),
    #[prost(int64, tag = "3")]
    Int(i64),
    #[prost(double, tag = "4")]
    Double(f64),
    #[prost(bytes = "bytes", tag = "7")]
    Bytes(Bytes),
}

impl KeyValue {
    /// The value as text; Envoy sends text only. `-`, which Envoy writes for missing values, and empty text are absent.
    fn into_text(self) -> Option<Bytes> {
        let text = match self.value?.value? {
            Value::String(text) | Value::Bytes(text) => text,
            Value::Bool(value) => Bytes::from(value.to_string()),
            Value::Int(value) => Bytes::from(value.to_string()),
            Value::Double(value) => Bytes::from(value.to_string()),
        };
        (!text.is_empty() && text.as_ref() != b"-").then_some(text)
    }
}

/// Counts the log records of an encoded `ExportLogsServiceRequest`, ours and others, without decoding them.
pub fn count_records(request: &[u8]) -> Result<u64, WireError> {
    let mut count = 0;
    for logs in of_number(Fields::new(request), fields::RESOURCE_LOGS) {
        for scope in of_number(Fields::of(request, logs?), fields::SCOPE_LOGS) {
            for record in of_number(Fields::of(request, scope?), fields::LOG_RECORDS) {
                record?;
                count += 1;
            }
        }
    }
    Ok(count)
}

/// Decodes an `ExportLogsServiceRequest` and hands out its entries in their order, each with the proxy that the resource
/// names.
///
/// A record without any of [`ATTRIBUTES`] is counted as foreign and skipped. As with [`crate::decode()`], text shares the memory
/// of the request, and a request that is refused hands out no entry.
pub fn decode_records(
    request: &Bytes,
    limits: &Limits,
    mut take: impl FnMut(&Identifier, Entry),
) -> Result<Counts, DecodeError> {
    check_size(request, limits)?;
    count_records(request)?;
    let mut values = Values::new(limits);
    let mut number = 0;
    for logs in of_number(Fields::new(request), fields::RESOURCE_LOGS) {
        let logs = logs?;
        // The resource may come after its records.
        let mut identifier = Identifier::default();
        for resource in of_number(Fields::of(request, logs), fields::RESOURCE) {
            identifier = read_resource(request, resource?, &mut values);
        }
        for scope in of_number(Fields::of(request, logs), fields::SCOPE_LOGS) {
            for record in of_number(Fields::of(request, scope?), fields::LOG_RECORDS) {
                let record = record?;
                number += 1;
                if number > limits.entries {
                    values.counts.left_out += 1;
                    continue;
                }
                match read_record(request, record, &mut values) {
                    Ok(Some(entry)) => {
                        values.counts.entries += 1;
                        take(&identifier, entry);
                    }
                    Ok(None) => values.counts.foreign += 1,
                    Err(Unreadable) => values.counts.unreadable += 1,
                }
            }
        }
    }
    Ok(values.counts)
}

/// Places of the fields of one number that are text, bytes or messages.
fn of_number(fields: Fields<'_>, number: u32) -> impl Iterator<Item = Result<Place, WireError>> {
    fields.filter_map(move |field| field.map(|field| field.bytes_of(number)).transpose())
}

/// A record is not a protobuf message. It is only counted, so that the place does not matter.
struct Unreadable;

/// The attributes that Envoy adds to the resource itself, unless `disable_builtin_labels` is set.
fn read_resource(request: &Bytes, place: Place, values: &mut Values<'_>) -> Identifier {
    let mut identifier = Identifier::default();
    let attributes = of_number(Fields::of(request, place), fields::RESOURCE_ATTRIBUTES);
    for (number, attribute) in attributes.enumerate() {
        if number >= values.limits.attributes {
            values.counts.attributes_left_out += 1;
            continue;
        }
        let attribute = attribute.ok().map(|place| request.slice(place.range()));
        let Some(attribute) = attribute.and_then(|encoded| KeyValue::decode(encoded).ok()) else {
            values.malformed();
            continue;
        };
        let field = match attribute.key.as_ref() {
            b"node_name" => &mut identifier.node_id,
            b"cluster_name" => &mut identifier.node_cluster,
            b"log_name" => &mut identifier.log_name,
            _ => continue,
        };
        *field = values.text(attribute.into_text().unwrap_or_default());
    }
    identifier
}

/// The entry of a record; `None` if it has none of our attributes.
fn read_record(
    request: &Bytes,
    place: Place,
    values: &mut Values<'_>,
) -> Result<Option<Entry>, Unreadable> {
    let mut entry = Entry::default();
    let mut is_ours = false;
    let mut time_unix_ns = None;
    let mut attributes = 0;
    // Envoy writes attributes in the order of its configuration, usually that of the table.
    let mut expected = 0;
    for field in Fields::of(request, place) {
        let field = field.map_err(|_| Unreadable)?;
        if let (fields::TIME_UNIX_NANO, Content::Fixed64(time)) = (field.number, &field.content) {
            time_unix_ns = Some(*time).filter(|time| *time > 0);
        }
        let Some(encoded) = field.bytes_of(fields::ATTRIBUTES) else {
            continue;
        };
        attributes += 1;
        if attributes > values.limits.attributes {
            values.counts.attributes_left_out += 1;
            continue;
        }
        let attribute = KeyValue::decode(request.slice(encoded.range())).map_err(|_| Unreadable)?;
        let Some(row) = attributes::find(&attribute.key, expected) else {
            continue;
        };
        is_ours = true;
        expected = row + 1;
        if let (Some(row), Some(text)) = (ATTRIBUTES.get(row), attribute.into_text()) {
            row.fill(&mut entry, text, values);
        }
    }
    if !is_ours {
        return Ok(None);
    }
    // Envoy fills it with the start of the request or connection.
    entry.start_unix_ns = entry.start_unix_ns.or(time_unix_ns);
    entry.stage = entry.log_type.stage();
    entry.kind = kind_of(&entry);
    Ok(Some(entry))
}

/// From the log type; without one, entries with a method or a version of HTTP are requests.
fn kind_of(entry: &Entry) -> Kind {
    let row = (entry.log_type != LogType::NotSet).then(|| entry.log_type.row());
    let by_type = row.flatten().and_then(|row| row.kind);
    by_type.unwrap_or_else(|| {
        let request = &entry.request;
        let is_http = request.version != HttpVersion::Unknown || !request.method.is_empty();
        if is_http { Kind::Http } else { Kind::Tcp }
    })
}

#[cfg(test)]
#[path = "otlp_tests.rs"]
mod tests;
