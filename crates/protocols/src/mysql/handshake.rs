//! What both ends agree on before the first command. Of the client's answer no more is kept than its
//! capabilities, which come before all else.

use super::{super::reader::Reader, HEADER};

/// Bits of the capabilities (`mysql_com.h`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Capabilities(u32);

impl Capabilities {
    const COMPRESS: u32 = 1 << 5;
    const PROTOCOL_41: u32 = 1 << 9;
    const TLS: u32 = 1 << 11;
    const OPTIONAL_METADATA: u32 = 1 << 25;
    const ZSTD: u32 = 1 << 26;

    /// Of the greeting: behind version, thread and salt, in two parts.
    pub(super) fn of_greeting(packet: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(packet.get(HEADER..)?);
        if reader.u8()? != 10 {
            return None;
        }
        reader.until_nul()?;
        reader.take(4 + 8 + 1)?;
        let low = reader.u16_le()?;
        // Charset and status.
        reader.take(1 + 2)?;
        let high = reader.u16_le()?;
        Some(Self(u32::from(high) << 16 | u32::from(low)))
    }

    /// Of the client's answer, which begins with them.
    pub(super) fn of_client(packet: &[u8]) -> Option<Self> {
        let bits = Reader::new(packet.get(HEADER..)?).u32_le()?;
        // Clients of before 4.1 have another form.
        (bits & Self::PROTOCOL_41 != 0).then_some(Self(bits))
    }

    pub(super) fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(super) fn asks_for_tls(self) -> bool {
        self.0 & Self::TLS != 0
    }

    /// Packets are compressed after the handshake.
    pub(super) fn compresses(self) -> bool {
        self.0 & (Self::COMPRESS | Self::ZSTD) != 0
    }

    /// The server may leave the description of columns out, and says so in a byte.
    pub(super) fn has_optional_metadata(self) -> bool {
        self.0 & Self::OPTIONAL_METADATA != 0
    }
}
