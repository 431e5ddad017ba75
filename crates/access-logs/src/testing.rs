//! Random values and encoded messages for the tests.

use bytes::Bytes;
use prost::encoding::encode_varint;

use crate::{
    decode::{DecodeError, Decoded, decode},
    entry::Entry,
    limits::Limits,
};

/// A generator of numbers (xorshift64*).
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 16) % limit.max(1)
    }

    pub(crate) fn index(&mut self, limit: usize) -> usize {
        usize::try_from(self.below(u64::try_from(limit).unwrap())).unwrap()
    }

    /// Small numbers as often as large ones.
    pub(crate) fn size(&mut self) -> u64 {
        let bits = self.below(64);
        self.next() >> bits
    }

    pub(crate) fn one_in(&mut self, limit: u64) -> bool {
        self.below(limit) == 0
    }

    /// A value, or none in one of three cases.
    pub(crate) fn maybe<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (!self.one_in(3)).then(|| value(self))
    }

    /// Empty in one of four cases.
    pub(crate) fn text(&mut self) -> String {
        const LETTERS: [char; 12] = ['a', 'b', 'z', '0', '9', '/', '-', '|', '.', 'é', '€', '😀'];
        if self.one_in(4) {
            return String::new();
        }
        let length = 1 + self.index(30);
        (0..length)
            .map(|_| LETTERS[self.index(LETTERS.len())])
            .collect()
    }
}

/// A field with text, bytes or a message.
pub(crate) fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::new();
    encode_varint(u64::from(number << 3 | 2), &mut encoded);
    encode_varint(u64::try_from(content.len()).unwrap(), &mut encoded);
    encoded.extend_from_slice(content);
    encoded
}

/// Fields of each wire type, with numbers that no message here has.
pub(crate) fn unknown_fields() -> Vec<u8> {
    let mut encoded = field(1000, b"unknown");
    encode_varint(1001 << 3, &mut encoded);
    encode_varint(u64::MAX, &mut encoded);
    encode_varint(1002 << 3 | 1, &mut encoded);
    encoded.extend([0xff; 8]);
    encode_varint(1003 << 3 | 5, &mut encoded);
    encoded.extend([0xff; 4]);
    encoded
}

/// All entries of a message.
pub(crate) fn decode_all(
    message: impl Into<Bytes>,
    limits: &Limits,
) -> Result<(Decoded, Vec<Entry>), DecodeError> {
    let mut entries = Vec::new();
    let decoded = decode(&message.into(), limits, |entry| entries.push(entry))?;
    Ok((decoded, entries))
}
