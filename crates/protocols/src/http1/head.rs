//! Heads of messages: collected over pieces, and read.

use std::mem::MaybeUninit;

use httparse::Status as Parsed;

use super::{
    body::{Body, CHUNKED},
    recognise::{request_start, response_start, skip_empty_lines},
};
use crate::{Direction, Exchange, Options, Piece, Verdict, http_message::Intake};

/// Headers that are read of a head.
const HEADERS: usize = 128;
/// Longest name that is looked at; longer ones are of no header that is known.
const NAME_BYTES: usize = 128;

/// Bytes of a head that is not complete.
#[derive(Debug, Default)]
pub(super) struct HeadBuffer {
    bytes: Vec<u8>,
    /// When the first of them was moved.
    pub(super) begin_ns: u64,
    /// They are the first of a piece.
    pub(super) begins_piece: bool,
    /// The line that is not complete has something besides carriage returns.
    has_line: bool,
    /// The first line was found to be one of HTTP/1.
    has_start: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    More,
    Whole,
    TooLong,
}

impl HeadBuffer {
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.has_line = false;
        self.has_start = false;
        // One long head does not hold memory for good.
        self.bytes.shrink_to(2048);
    }

    /// Takes bytes of a piece from a place on, up to the end of the head, and returns how many.
    pub(super) fn push(
        &mut self,
        piece: &Piece<'_>,
        from: usize,
        limit: usize,
    ) -> (usize, Progress) {
        let bytes = piece.bytes.get(from..).unwrap_or_default();
        let mut used = 0;
        if self.bytes.is_empty() {
            used = bytes.len() - skip_empty_lines(bytes).len();
            self.begin_ns = piece.at_ns;
            self.begins_piece = from == 0;
        }
        let rest = bytes.get(used..).unwrap_or_default();
        let room = limit.saturating_sub(self.bytes.len());
        let fits = rest.get(..room).unwrap_or(rest);
        let mut end = 0;
        for line in fits.split_inclusive(|byte| *byte == b'\n') {
            end += line.len();
            self.has_line |= line.iter().any(|byte| !matches!(byte, b'\r' | b'\n'));
            if line.ends_with(b"\n") && !std::mem::take(&mut self.has_line) {
                self.bytes
                    .extend_from_slice(fits.get(..end).unwrap_or(fits));
                return (used + end, Progress::Whole);
            }
        }
        self.bytes.extend_from_slice(fits);
        if rest.len() > room {
            return (used + room, Progress::TooLong);
        }
        (bytes.len(), Progress::More)
    }

    /// Whether what is there can be the beginning of a request, or of an answer.
    pub(super) fn verdict(&mut self, direction: Direction) -> Verdict {
        if self.has_start {
            return Verdict::Yes;
        }
        let verdict = match direction {
            Direction::ToServer => request_start(&self.bytes),
            Direction::ToClient => response_start(&self.bytes),
        };
        self.has_start = verdict == Verdict::Yes;
        verdict
    }
}

/// This is none of HTTP/1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// Whether a head was seen to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    Cut,
}

/// What a connection is asked to become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Upgrade {
    #[default]
    None,
    WebSocket,
    Http2,
    Other,
}

/// What a request means for what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequestHead {
    pub(super) kind: RequestKind,
    pub(super) body: Body,
    /// How long a head that is cut says that its body is.
    pub(super) said: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    Head,
    Connect,
    Other,
    /// Not seen: only its answer was.
    Unseen,
}

/// Reads a request into an exchange.
pub(super) fn read_request(
    bytes: &[u8],
    extent: Extent,
    exchange: &mut Exchange,
    options: &Options,
) -> Result<RequestHead, Malformed> {
    let lines = lines(bytes, extent);
    let (bytes, extent) = match &lines {
        Lines::Whole(bytes) => (*bytes, Extent::Whole),
        Lines::Cut(bytes) => (bytes.as_slice(), Extent::Cut),
        Lines::Beginning(line) => return read_cut_line(line, exchange, options),
    };
    let mut headers = [MaybeUninit::uninit(); HEADERS];
    let mut request = httparse::Request::new(&mut []);
    match request.parse_with_uninit_headers(bytes, &mut headers) {
        Ok(Parsed::Complete(_)) => {}
        Ok(Parsed::Partial) | Err(_) => return Err(Malformed),
    }
    let (method, target) = (
        request.method.unwrap_or_default(),
        request.path.unwrap_or_default(),
    );
    let mut intake = Intake::new(exchange, options);
    intake.method(method);
    let kind = match method {
        "CONNECT" => RequestKind::Connect,
        "HEAD" => RequestKind::Head,
        _ => RequestKind::Other,
    };
    if kind == RequestKind::Connect {
        intake.authority(target);
    } else {
        intake.target(target);
        if let Some(authority) = authority_of(target) {
            intake.authority(authority);
        }
    }
    let mut framing = Framing::default();
    for header in request.headers.iter() {
        with_lower_case(header.name, |name| {
            framing.take(name, header.value);
            if name == "host" {
                if kind != RequestKind::Connect && authority_of(target).is_none() {
                    intake.authority(&String::from_utf8_lossy(header.value));
                }
            } else {
                intake.request_header(name, header.value);
            }
        });
    }
    let body = match (extent, framing.coding, framing.length) {
        (Extent::Cut, ..) | (_, Coding::Other, _) | (_, _, Length::Conflict) => Body::Unknown,
        (_, Coding::Chunked, _) => CHUNKED,
        (_, Coding::None, Length::Known(length)) => Body::Length(length),
        (_, Coding::None, Length::None) => Body::Length(0),
    };
    Ok(RequestHead {
        kind,
        body,
        said: framing.said(extent),
    })
}

/// A request whose first line was not seen to its end.
fn read_cut_line(
    line: &[u8],
    exchange: &mut Exchange,
    options: &Options,
) -> Result<RequestHead, Malformed> {
    let line = std::str::from_utf8(line).unwrap_or_default();
    let Some((method, target)) = line.split_once(' ') else {
        return Err(Malformed);
    };
    let mut intake = Intake::new(exchange, options);
    intake.method(method);
    let kind = match method {
        "CONNECT" => RequestKind::Connect,
        "HEAD" => RequestKind::Head,
        _ => RequestKind::Other,
    };
    if kind != RequestKind::Connect {
        if let Some((target, _)) = target.split_once(' ') {
            intake.target(target);
        } else if target.contains('?') {
            intake.path(target);
        }
    }
    Ok(RequestHead {
        kind,
        body: Body::Unknown,
        said: None,
    })
}

/// The head of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResponseHead {
    pub(super) status: u16,
    /// What framing says; requests and statuses that have no body are not looked at.
    pub(super) body: Body,
    /// As in [`RequestHead`].
    pub(super) said: Option<u64>,
    pub(super) upgrade: Upgrade,
}

/// Reads an answer, into an exchange when it is the final answer of one.
pub(super) fn read_response(
    bytes: &[u8],
    extent: Extent,
    exchange: Option<&mut Exchange>,
    options: &Options,
) -> Result<ResponseHead, Malformed> {
    let lines = lines(bytes, extent);
    let (bytes, extent) = match &lines {
        Lines::Whole(bytes) => (*bytes, Extent::Whole),
        Lines::Cut(bytes) => (bytes.as_slice(), Extent::Cut),
        Lines::Beginning(line) => return read_cut_status(line),
    };
    let mut headers = [MaybeUninit::uninit(); HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let parser = httparse::ParserConfig::default();
    match parser.parse_response_with_uninit_headers(&mut response, bytes, &mut headers) {
        Ok(Parsed::Complete(_)) => {}
        Ok(Parsed::Partial) | Err(_) => return Err(Malformed),
    }
    let status = response.code.ok_or(Malformed)?;
    let is_final = status >= 200 || status == 101;
    let mut intake = exchange
        .filter(|_| is_final)
        .map(|exchange| Intake::new(exchange, options));
    let mut framing = Framing::default();
    for header in response.headers.iter() {
        with_lower_case(header.name, |name| {
            framing.take(name, header.value);
            if let Some(intake) = &mut intake {
                intake.response_header(name, header.value);
            }
        });
    }
    let body = match (extent, framing.coding, framing.length) {
        (Extent::Cut, ..) | (_, Coding::None, Length::Conflict) => Body::Unknown,
        (_, Coding::Chunked, _) => CHUNKED,
        (_, Coding::Other, _) | (_, Coding::None, Length::None) => Body::UntilClose,
        (_, Coding::None, Length::Known(length)) => Body::Length(length),
    };
    Ok(ResponseHead {
        status,
        body,
        said: framing.said(extent),
        upgrade: framing.upgrade,
    })
}

fn read_cut_status(line: &[u8]) -> Result<ResponseHead, Malformed> {
    if response_start(line) != Verdict::Yes {
        return Err(Malformed);
    }
    let status = line.get(b"HTTP/1.1 ".len()..b"HTTP/1.1 200".len());
    let status = status.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    Ok(ResponseHead {
        status: status.ok_or(Malformed)?,
        body: Body::Unknown,
        said: None,
        upgrade: Upgrade::None,
    })
}

/// What there is of a head.
enum Lines<'a> {
    Whole(&'a [u8]),
    /// Its first lines, with an end put behind them.
    Cut(Vec<u8>),
    /// The beginning of its first line.
    Beginning(&'a [u8]),
}

fn lines(bytes: &[u8], extent: Extent) -> Lines<'_> {
    let ends = memchr::memchr_iter(b'\n', bytes);
    // One line more than headers; the empty line at the end is not one of them.
    let many = ends.clone().nth(HEADERS);
    let is_last = |end: usize| bytes.len() <= end + 3;
    if extent == Extent::Whole && many.is_none_or(is_last) {
        return Lines::Whole(bytes);
    }
    let last = many.or_else(|| ends.clone().next_back());
    let Some(lines) = last.and_then(|end| bytes.get(..=end)) else {
        return Lines::Beginning(bytes);
    };
    let mut text = lines.to_vec();
    text.extend_from_slice(b"\r\n");
    Lines::Cut(text)
}

/// What headers state about the body.
#[derive(Clone, Copy, Debug, Default)]
struct Framing {
    coding: Coding,
    length: Length,
    upgrade: Upgrade,
}

#[derive(Clone, Copy, Debug, Default)]
enum Coding {
    #[default]
    None,
    Chunked,
    /// One that ends with the connection.
    Other,
}

#[derive(Clone, Copy, Debug, Default)]
enum Length {
    #[default]
    None,
    Known(u64),
    Conflict,
}

impl Framing {
    /// The length that a cut head says, as far as it was captured.
    fn said(&self, extent: Extent) -> Option<u64> {
        match (extent, self.coding, self.length) {
            (Extent::Cut, Coding::None, Length::Known(length)) => Some(length),
            _ => None,
        }
    }

    fn take(&mut self, name: &str, value: &[u8]) {
        match name {
            "transfer-encoding" => {
                let last = value
                    .rsplit(|byte| *byte == b',')
                    .next()
                    .unwrap_or_default();
                self.coding = if last.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                    Coding::Chunked
                } else {
                    Coding::Other
                };
            }
            "content-length" => {
                for part in value.split(|byte| *byte == b',') {
                    self.length = match (self.length, length(part)) {
                        (Length::None, Some(length)) => Length::Known(length),
                        (Length::Known(one), Some(other)) if one == other => Length::Known(one),
                        (Length::None | Length::Known(_) | Length::Conflict, _) => Length::Conflict,
                    };
                }
            }
            "upgrade" => {
                let value = value.trim_ascii();
                self.upgrade = if value.eq_ignore_ascii_case(b"websocket") {
                    Upgrade::WebSocket
                } else if value.eq_ignore_ascii_case(b"h2c") {
                    Upgrade::Http2
                } else {
                    Upgrade::Other
                };
            }
            _ => {}
        }
    }
}

fn length(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    is_number
        .then(|| std::str::from_utf8(text).ok()?.parse().ok())
        .flatten()
}

/// The authority of a target in absolute form, which stands above `Host` (RFC 9112, section 3.2.2).
fn authority_of(target: &str) -> Option<&str> {
    if target.starts_with('/') {
        return None;
    }
    let (_, rest) = target.split_once("://")?;
    rest.split(['/', '?', '#']).next()
}

/// Calls with a name in lower case; names that no header has are left out.
fn with_lower_case(name: &str, call: impl FnOnce(&str)) {
    let mut lower = [0; NAME_BYTES];
    let Some(lower) = lower.get_mut(..name.len()) else {
        return;
    };
    lower.copy_from_slice(name.as_bytes());
    lower.make_ascii_lowercase();
    if let Ok(name) = std::str::from_utf8(lower) {
        call(name);
    }
}
