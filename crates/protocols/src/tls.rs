//! What a TLS handshake sends in plaintext (RFC 8446 sections 4.1, 4.2 and 5.1; RFC 6066, RFC 7301).
//!
//! No requests come out of it. With TLS 1.3 the chosen ALPN is encrypted, and so stays unknown.

use super::{
    Candidate, Decoder, Direction, Exchange, Opening, Piece, Protocol, Verdict, WrongProtocol,
    decoder::PerDirection,
    frames::{Extent, FrameReader, Rest, Step, begins_with_frames},
    reader::Reader,
    text::printable,
};

/// What both ends said before they went on encrypted. Text is untrusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsFacts {
    /// The name that the client asked for, at most 255 bytes.
    pub server_name: Option<String>,
    /// Protocols that the client offered, in its order; at most 8 of at most 32 bytes.
    pub alpn_offered: Vec<String>,
    /// The protocol that the server chose, where that is not encrypted.
    pub alpn_chosen: Option<String>,
    /// The version in force, once the server has answered.
    pub version: Option<TlsVersion>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    Tls10,
    Tls11,
    Tls12,
    Tls13,
}

impl TlsVersion {
    fn of(number: u16) -> Option<Self> {
        match number {
            0x0301 => Some(Self::Tls10),
            0x0302 => Some(Self::Tls11),
            0x0303 => Some(Self::Tls12),
            0x0304 => Some(Self::Tls13),
            _ => None,
        }
    }

    /// Name in the API.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tls10 => "1.0",
            Self::Tls11 => "1.1",
            Self::Tls12 => "1.2",
            Self::Tls13 => "1.3",
        }
    }
}

pub(crate) const TLS: Candidate = Candidate {
    protocol: Protocol::Tls,
    recognise,
    start: |_, joined| Box::new(TlsDecoder::new(joined)),
};

const RECORD_HEADER: usize = 5;

const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;
/// Most bytes of a record: 2^14 and what encryption may add (RFC 5246 section 6.2.3).
const MOST_RECORD: u16 = (1 << 14) + 2048;
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
/// Handshake bytes of a direction that are kept until its hello is whole.
const MOST_HELLO: usize = 16 << 10;
const MOST_NAME: usize = 255;
const MOST_ALPN: usize = 8;
const MOST_ALPN_BYTES: usize = 32;

fn recognise(opening: &Opening<'_>) -> Verdict {
    if opening.is_udp {
        return Verdict::No;
    }
    let bytes = opening.to_server;
    if opening.joined {
        // A record that is whole, or the first of a long one: application data has no other marks.
        let records = |bytes: &[u8]| bytes.get(..RECORD_HEADER).and_then(record).is_some();
        let plausible = |bytes: &[u8]| bytes.is_empty() || records(bytes);
        if plausible(bytes) && plausible(opening.to_client) {
            let both = !bytes.is_empty() && !opening.to_client.is_empty();
            return if both {
                Verdict::Yes
            } else {
                Verdict::Undecided
            };
        }
        return Verdict::No;
    }
    // A record of a handshake that begins with a ClientHello.
    let pattern: [fn(u8) -> bool; 6] = [
        |kind| kind == HANDSHAKE,
        |major| major == 3,
        |minor| minor <= 4,
        |_| true,
        |_| true,
        |message| message == CLIENT_HELLO,
    ];
    if !bytes.iter().zip(pattern).all(|(byte, fits)| fits(*byte)) {
        return Verdict::No;
    }
    if bytes.len() < pattern.len() {
        // The server does not speak first.
        let silent = opening.to_client.is_empty();
        return if silent {
            Verdict::Undecided
        } else {
            Verdict::No
        };
    }
    match record(bytes) {
        Some(_) => Verdict::Yes,
        None => Verdict::No,
    }
}

/// The extent of a record, without how much of it is of use.
fn record(header: &[u8]) -> Option<Extent> {
    let mut reader = Reader::new(header);
    let kind = reader.u8()?;
    let (major, minor) = (reader.u8()?, reader.u8()?);
    let length = reader.u16_be()?;
    let valid = (20..=24).contains(&kind) && major == 3 && minor <= 4;
    let keep = if kind == HANDSHAKE { MOST_HELLO } else { 0 };
    // Only application data may be empty (RFC 8446 section 5.1).
    let sized = length <= MOST_RECORD && (length > 0 || kind == APPLICATION_DATA);
    (valid && sized).then_some(Extent {
        length: RECORD_HEADER as u64 + u64::from(length),
        keep,
    })
}

#[derive(Debug)]
pub(crate) struct TlsDecoder {
    facts: TlsFacts,
    ways: PerDirection<Way>,
}

#[derive(Debug, Default)]
struct Way {
    reader: FrameReader,
    /// Handshake messages from the first on, until the hello is whole.
    hello: Vec<u8>,
    /// Nothing more is to be learned here.
    done: bool,
    lost: bool,
    records: u32,
    not_understood: u64,
}

impl TlsDecoder {
    pub(crate) fn new(joined: bool) -> Self {
        let way = || Way {
            done: joined,
            lost: joined,
            ..Way::default()
        };
        Self {
            facts: TlsFacts::default(),
            ways: PerDirection {
                to_server: way(),
                to_client: way(),
            },
        }
    }
}

impl Decoder for TlsDecoder {
    fn protocol(&self) -> Protocol {
        Protocol::Tls
    }

    fn feed(&mut self, piece: &Piece<'_>, _out: &mut Vec<Exchange>) -> Result<(), WrongProtocol> {
        let way = self.ways.get_mut(piece.direction);
        if way.lost && !begins_with_frames(piece, RECORD_HEADER, record) {
            way.not_understood += piece.length;
            return Ok(());
        }
        way.lost = false;
        let mut rest = Rest::of(piece);
        loop {
            match way.reader.next(&mut rest, RECORD_HEADER, record) {
                Step::Wait => return Ok(()),
                Step::Frame(frame) => {
                    way.records = way.records.saturating_add(1);
                    let handshake = frame.head.first() == Some(&HANDSHAKE);
                    if way.done {
                        continue;
                    }
                    // What comes before the end of the hello is that, or an alert.
                    let body = frame.head.get(RECORD_HEADER..).unwrap_or_default();
                    let whole = frame.head.len() as u64 == frame.length;
                    let room = MOST_HELLO.saturating_sub(way.hello.len());
                    if !handshake || body.len() > room {
                        way.done = true;
                    } else {
                        way.hello.extend_from_slice(body);
                        way.done = hello(piece.direction, &way.hello, &mut self.facts) || !whole;
                    }
                    if way.done {
                        way.hello = Vec::new();
                    }
                }
                Step::Invalid if way.records == 0 => return Err(WrongProtocol),
                Step::Invalid | Step::Lost => {
                    way.not_understood += rest.length();
                    way.lost = true;
                    return Ok(());
                }
            }
        }
    }

    fn gap(&mut self, direction: Direction, missing: Option<u64>, _out: &mut Vec<Exchange>) {
        let way = self.ways.get_mut(direction);
        way.done = true;
        way.hello = Vec::new();
        way.lost |= !way.reader.gap(missing);
    }

    fn close(&mut self, _at_ns: u64, _out: &mut Vec<Exchange>) {}

    fn not_understood(&self) -> PerDirection<u64> {
        PerDirection {
            to_server: self.ways.to_server.not_understood,
            to_client: self.ways.to_client.not_understood,
        }
    }

    fn tls(&self) -> Option<&TlsFacts> {
        Some(&self.facts)
    }
}

/// Reads the first message of a handshake into `facts`. `true`: it is whole, or of no use; `false`:
/// more of it follows.
fn hello(direction: Direction, bytes: &[u8], facts: &mut TlsFacts) -> bool {
    let mut reader = Reader::new(bytes);
    let (Some(kind), Some(length)) = (reader.u8(), reader.u24_be()) else {
        return false;
    };
    let Some(body) = usize::try_from(length)
        .ok()
        .and_then(|length| reader.take(length))
    else {
        return false;
    };
    match (direction, kind) {
        (Direction::ToServer, CLIENT_HELLO) => drop(client_hello(body, facts)),
        (Direction::ToClient, SERVER_HELLO) => drop(server_hello(body, facts)),
        // Messages that are empty or unexpected say nothing.
        _ => {}
    }
    true
}

/// RFC 8446 section 4.1.2. `None`: it ends too early; what was read by then holds.
fn client_hello(body: &[u8], facts: &mut TlsFacts) -> Option<()> {
    let mut reader = Reader::new(body);
    reader.take(2 + 32)?;
    reader.counted_u8()?;
    reader.counted_u16()?;
    reader.counted_u8()?;
    let mut extensions = Reader::new(reader.counted_u16()?);
    while let Some(kind) = extensions.u16_be() {
        let data = extensions.counted_u16()?;
        match kind {
            SERVER_NAME => facts.server_name = server_name(data),
            ALPN => facts.alpn_offered = alpn(data),
            _ => {}
        }
    }
    Some(())
}

const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;
const SUPPORTED_VERSIONS: u16 = 43;

/// RFC 8446 section 4.1.3; a `HelloRetryRequest` has the same shape.
fn server_hello(body: &[u8], facts: &mut TlsFacts) -> Option<()> {
    let mut reader = Reader::new(body);
    let legacy = reader.u16_be()?;
    reader.take(32)?;
    reader.counted_u8()?;
    // The cipher suite and the compression method.
    reader.take(3)?;
    let mut version = legacy;
    if let Some(extensions) = reader.counted_u16() {
        let mut extensions = Reader::new(extensions);
        while let Some(kind) = extensions.u16_be() {
            let data = extensions.counted_u16()?;
            match kind {
                SUPPORTED_VERSIONS => version = Reader::new(data).u16_be()?,
                ALPN => facts.alpn_chosen = alpn(data).into_iter().next(),
                _ => {}
            }
        }
    }
    facts.version = TlsVersion::of(version);
    Some(())
}

/// RFC 6066 section 3: the first host name of the list.
fn server_name(data: &[u8]) -> Option<String> {
    let mut names = Reader::new(Reader::new(data).counted_u16()?);
    let kind = names.u8()?;
    let name = names.counted_u16()?;
    (kind == 0 && !name.is_empty()).then(|| printable(name, MOST_NAME))
}

/// RFC 7301 section 3.1.
fn alpn(data: &[u8]) -> Vec<String> {
    let mut offered = Vec::new();
    let mut names = Reader::new(Reader::new(data).counted_u16().unwrap_or_default());
    while let Some(name) = names.counted_u8()
        && offered.len() < MOST_ALPN
    {
        offered.push(printable(name, MOST_ALPN_BYTES));
    }
    offered
}

#[cfg(test)]
mod tests;
