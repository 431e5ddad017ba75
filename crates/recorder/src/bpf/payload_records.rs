//! Records of payload.

use profiler_common::{
    header::{KIND_PIECE, KIND_PIECE_CONNECTION, KIND_PIECE_END, RecordHeader, read_pod},
    payload::{MAX_PIECE_BYTES, PieceConnection, PieceEnd, PieceHead},
};

/// A decoded record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceRecord<'a> {
    /// Before the first piece of it.
    Connection(PieceConnection),
    Piece {
        head: PieceHead,
        /// As many as the head says.
        bytes: &'a [u8],
    },
    /// Behind the last piece of it; it may come again in another way, or only in that one.
    End(PieceEnd),
}

impl<'a> PieceRecord<'a> {
    /// Decodes one record; `None` when it is not one, whatever the bytes.
    pub(super) fn decode(record: &'a [u8]) -> Option<Self> {
        let header: RecordHeader = read_pod(record)?;
        // Plaintext of TLS libraries comes in records of few lengths.
        let record = record.get(..header.bytes as usize)?;
        match header.kind {
            KIND_PIECE_CONNECTION if record.len() == size_of::<PieceConnection>() => {
                read_pod(record).map(Self::Connection)
            }
            KIND_PIECE_END if record.len() == size_of::<PieceEnd>() => {
                read_pod(record).map(Self::End)
            }
            KIND_PIECE => {
                let head: PieceHead = read_pod(record)?;
                let bytes = record.get(size_of::<PieceHead>()..)?;
                let is_whole = bytes.len() == head.captured as usize
                    && bytes.len() <= MAX_PIECE_BYTES
                    && head.captured <= head.length;
                is_whole.then_some(Self::Piece { head, bytes })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
#[path = "payload_records_tests.rs"]
mod tests;
