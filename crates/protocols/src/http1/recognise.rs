//! Start lines of HTTP/1 (RFC 9112, sections 3 and 4), also such that have only begun.

use crate::{Opening, Verdict};

/// Longest method that is taken for one.
const METHOD_BYTES: usize = 24;
/// Longest target that is waited for.
const TARGET_BYTES: usize = 8 << 10;
/// Bytes of a target behind a method everybody knows that are proof enough when more did not come.
const TARGET_PROOF: usize = 48;

/// Methods of RFC 9110, RFC 5789 and `WebDAV`.
const METHODS: [&[u8]; 16] = [
    b"GET",
    b"HEAD",
    b"POST",
    b"PUT",
    b"DELETE",
    b"CONNECT",
    b"OPTIONS",
    b"TRACE",
    b"PATCH",
    b"PROPFIND",
    b"PROPPATCH",
    b"MKCOL",
    b"COPY",
    b"MOVE",
    b"LOCK",
    b"UNLOCK",
];

/// Whether a connection speaks HTTP/1: by the line of its request, or when joined by that of an answer.
pub(super) fn recognise(opening: &Opening<'_>) -> Verdict {
    let Opening {
        to_server,
        to_client,
        joined,
        server_port: _,
        is_udp,
    } = *opening;
    if is_udp {
        return Verdict::No;
    }
    let request = request_start(skip_empty_lines(to_server));
    if request == Verdict::Undecided && begins_with_known_target(to_server) {
        return Verdict::Yes;
    }
    if to_server.is_empty() || joined && request == Verdict::No {
        let answer = response_start(to_client);
        // A server does not speak first; joined, one side alone may be in the middle of a body.
        if joined || answer == Verdict::No {
            return answer;
        }
        return Verdict::Undecided;
    }
    request
}

/// `METHOD target HTTP/1.x` with the end of its line.
pub(super) fn request_start(bytes: &[u8]) -> Verdict {
    let Some(method) = bytes.iter().position(|byte| *byte == b' ') else {
        return undecided_if(
            bytes.len() <= METHOD_BYTES && bytes.iter().all(|byte| is_method(*byte)),
        );
    };
    let (name, rest) = bytes.split_at(method);
    if name.is_empty() || name.len() > METHOD_BYTES || !name.iter().all(|byte| is_method(*byte)) {
        return Verdict::No;
    }
    let rest = rest.get(1..).unwrap_or_default();
    let in_target = |byte: &u8| byte.is_ascii_graphic() || *byte >= 0x80;
    let Some(target) = rest.iter().position(|byte| !in_target(byte)) else {
        return undecided_if(rest.len() <= TARGET_BYTES);
    };
    if target == 0 || rest.get(target) != Some(&b' ') {
        return Verdict::No;
    }
    version_line(rest.get(target + 1..).unwrap_or_default(), b"\n")
}

/// `HTTP/1.x 200 ` or the same without a reason.
pub(super) fn response_start(bytes: &[u8]) -> Verdict {
    match version_line(bytes, b" ") {
        Verdict::Yes => {}
        other => return other,
    }
    let status = bytes.get(b"HTTP/1.1 ".len()..).unwrap_or_default();
    for (at, byte) in status.iter().take(3).enumerate() {
        let fits = if at == 0 {
            matches!(byte, b'1'..=b'5')
        } else {
            byte.is_ascii_digit()
        };
        if !fits {
            return Verdict::No;
        }
    }
    match status.get(3) {
        None => Verdict::Undecided,
        Some(b' ' | b'\r' | b'\n') => Verdict::Yes,
        Some(_) => Verdict::No,
    }
}

/// Whether bytes begin with a method that everybody knows and much of a target.
pub(super) fn begins_with_known_target(bytes: &[u8]) -> bool {
    METHODS.iter().any(|method| {
        bytes
            .strip_prefix(*method)
            .and_then(|rest| rest.strip_prefix(b" /"))
            .is_some_and(|target| {
                target.len() >= TARGET_PROOF && target.iter().all(u8::is_ascii_graphic)
            })
    })
}

/// Whether bytes begin within a method that everybody knows: `ST /path HTTP/1.1`.
pub(super) fn begins_within_method(bytes: &[u8]) -> bool {
    let end = bytes.iter().position(|byte| *byte == b' ');
    let name = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
    !METHODS.contains(&name) && METHODS.iter().any(|method| method.ends_with(name))
}

pub(super) fn skip_empty_lines(bytes: &[u8]) -> &[u8] {
    let text = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n'));
    bytes.get(text.unwrap_or(bytes.len())..).unwrap_or_default()
}

/// `HTTP/1.0` or `HTTP/1.1` and then `end`, before which a carriage return may stand when it is a line's.
fn version_line(bytes: &[u8], end: &[u8]) -> Verdict {
    const VERSION: &[u8] = b"HTTP/1.";
    let known = bytes.len().min(VERSION.len());
    if bytes.get(..known) != VERSION.get(..known) {
        return Verdict::No;
    }
    match bytes.get(VERSION.len()..).unwrap_or_default() {
        [] | [b'0' | b'1'] => Verdict::Undecided,
        [b'0' | b'1', b'\r'] if end == b"\n" => Verdict::Undecided,
        [b'0' | b'1', b'\r', b'\n', ..] if end == b"\n" => Verdict::Yes,
        [b'0' | b'1', rest @ ..] if rest.starts_with(end) => Verdict::Yes,
        _ => Verdict::No,
    }
}

fn is_method(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
}

fn undecided_if(possible: bool) -> Verdict {
    if possible {
        Verdict::Undecided
    } else {
        Verdict::No
    }
}

#[cfg(test)]
mod tests {
    use super::{recognise, request_start, response_start};
    use crate::{Opening, Verdict};

    #[test]
    fn start_lines_are_recognised_at_each_length() {
        for (line, whole) in [
            ("GET / HTTP/1.1\r\n", request_start as fn(&[u8]) -> Verdict),
            ("M-SEARCH * HTTP/1.0\n", request_start),
            ("HTTP/1.1 200 ", response_start),
            ("HTTP/1.0 404\r", response_start),
        ] {
            for length in 0..line.len() {
                assert_eq!(
                    whole(&line.as_bytes()[..length]),
                    Verdict::Undecided,
                    "{line}"
                );
            }
            assert_eq!(whole(line.as_bytes()), Verdict::Yes, "{line}");
        }
    }

    #[test]
    fn other_protocols_are_not() {
        for bytes in [
            &b"PRI * HTTP/2.0\r\n\r\n"[..],
            b"DESCRIBE rtsp://a RTSP/1.0\r\n",
            b"\x16\x03\x01\x02\x00",
            b"*1\r\n$4\r\nPING\r\n",
            b"PING\r\n",
            b"get / HTTP/1.1\r\n",
            b"GET  HTTP/1.1\r\n",
            b" / HTTP/1.1",
        ] {
            assert_eq!(request_start(bytes), Verdict::No, "{bytes:?}");
        }
        for bytes in [
            &b"HTTP/1.1 999 "[..],
            b"HTTP/2 200",
            b"HTTP/1.1 20x",
            b"HTTP/1.1 2000",
        ] {
            assert_eq!(response_start(bytes), Verdict::No, "{bytes:?}");
        }
    }

    #[test]
    fn openings_are_recognised() {
        let check = |to_server: &[u8], to_client: &[u8], joined, verdict| {
            let opening = Opening {
                to_server,
                to_client,
                joined,
                server_port: 80,
                is_udp: false,
            };
            assert_eq!(recognise(&opening), verdict, "{opening:?}");
        };
        let target = format!("GET /{}", "a".repeat(60));
        check(b"", b"", false, Verdict::Undecided);
        check(b"\r\nGET / HTTP/1.1\r\n", b"", false, Verdict::Yes);
        check(target.as_bytes(), b"", false, Verdict::Yes);
        check(b"", b"220 mail", false, Verdict::No);
        check(b"", b"HTTP/1.1 200 OK", false, Verdict::Undecided);
        check(b"", b"HTTP/1.1 200 OK", true, Verdict::Yes);
        check(b"body of a request", b"HTTP/1.1 200 OK", true, Verdict::Yes);
        check(b"\x17\x03\x03", b"\x17\x03\x03", true, Verdict::No);
    }
}
