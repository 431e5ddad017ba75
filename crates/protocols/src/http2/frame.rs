//! Headers of frames (RFC 9113, sections 4.1 and 6).

/// Bytes of a header.
pub(super) const HEADER_BYTES: usize = 9;
/// Largest payload before any setting says otherwise, and at least (section 4.2).
pub(super) const SMALLEST_LIMIT: u32 = 1 << 14;
/// Largest payload that is believed where the setting was not seen.
pub(super) const UNKNOWN_LIMIT: u32 = 1 << 20;

pub(super) const END_STREAM: u8 = 0x1;
pub(super) const ACK: u8 = 0x1;
pub(super) const END_HEADERS: u8 = 0x4;
pub(super) const PADDED: u8 = 0x8;
pub(super) const PRIORITY: u8 = 0x20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Data,
    Headers,
    Priority,
    Reset,
    Settings,
    PushPromise,
    Ping,
    GoAway,
    WindowUpdate,
    Continuation,
    /// An extension; it is skipped (section 5.5).
    Other(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader {
    pub(super) length: u32,
    pub(super) kind: Kind,
    pub(super) flags: u8,
    pub(super) stream: u32,
    /// The bit that is always zero.
    is_reserved_set: bool,
}

impl FrameHeader {
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let [one, two, three, kind, flags, stream @ ..] = bytes.first_chunk::<HEADER_BYTES>()?;
        let stream = u32::from_be_bytes(*stream);
        Some(Self {
            length: u32::from_be_bytes([0, *one, *two, *three]),
            kind: Kind::of(*kind),
            flags: *flags,
            stream: stream & 0x7fff_ffff,
            is_reserved_set: stream >> 31 != 0,
        })
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Whether a peer may send this: the length, the stream and the flags are those of the type.
    pub(super) fn is_valid(&self, limit: u32) -> bool {
        let on_stream = self.stream != 0;
        let padding = u32::from(self.has(PADDED));
        self.length <= limit
            && match self.kind {
                Kind::Data => on_stream && self.length >= padding,
                Kind::Headers => {
                    let priority = if self.has(PRIORITY) { 5 } else { 0 };
                    on_stream && self.length >= padding + priority
                }
                Kind::Priority => on_stream && self.length == 5,
                Kind::Reset => on_stream && self.length == 4,
                Kind::Settings => {
                    !on_stream
                        && self.length.is_multiple_of(6)
                        && (!self.has(ACK) || self.length == 0)
                }
                Kind::PushPromise => on_stream && self.length >= 4 + padding,
                Kind::Ping => !on_stream && self.length == 8,
                Kind::GoAway => !on_stream && self.length >= 8,
                Kind::WindowUpdate => self.length == 4,
                Kind::Continuation => on_stream,
                Kind::Other(_) => true,
            }
    }

    /// Whether bytes that may be anything are a header: valid, of a type and with flags that are defined.
    pub(super) fn is_likely(&self, limit: u32) -> bool {
        let flags = match self.kind {
            Kind::Data => END_STREAM | PADDED,
            Kind::Headers => END_STREAM | END_HEADERS | PADDED | PRIORITY,
            Kind::Priority | Kind::Reset | Kind::GoAway | Kind::WindowUpdate => 0,
            Kind::Settings | Kind::Ping => ACK,
            Kind::PushPromise => END_HEADERS | PADDED,
            Kind::Continuation => END_HEADERS,
            Kind::Other(_) => return false,
        };
        self.flags & !flags == 0 && !self.is_reserved_set && self.is_valid(limit)
    }
}

impl Kind {
    fn of(number: u8) -> Self {
        match number {
            0 => Self::Data,
            1 => Self::Headers,
            2 => Self::Priority,
            3 => Self::Reset,
            4 => Self::Settings,
            5 => Self::PushPromise,
            6 => Self::Ping,
            7 => Self::GoAway,
            8 => Self::WindowUpdate,
            9 => Self::Continuation,
            other => Self::Other(other),
        }
    }

    /// Whether the payload is read, and not only skipped.
    pub(super) fn is_read(self) -> bool {
        match self {
            Self::Headers
            | Self::Reset
            | Self::Settings
            | Self::PushPromise
            | Self::GoAway
            | Self::Continuation => true,
            Self::Data | Self::Priority | Self::Ping | Self::WindowUpdate | Self::Other(_) => false,
        }
    }
}
