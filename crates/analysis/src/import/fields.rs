//! The fields of one protobuf message, one after another and without copies.
//!
//! Decoding a whole file at once would let a small one ask for much memory: an empty message takes
//! two bytes in the file and some hundred decoded. So the outermost message is walked by hand, and
//! only what it holds is decoded by prost, one at a time.

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Fixed-width numbers, which this format does not use.
    Fixed,
}

/// What ends a walk early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed {
    /// Bytes before the end of the message.
    pub(super) left: usize,
}

/// Walks over the fields of a message.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for position in 0..10_u32 {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f).checked_shl(7 * position)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }

    fn field(&mut self) -> Option<(u64, Field<'a>)> {
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Field::Number(self.varint()?),
            1 => {
                self.take(8)?;
                Field::Fixed
            }
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Field::Bytes(self.take(length)?)
            }
            5 => {
                self.take(4)?;
                Field::Fixed
            }
            _ => return None,
        };
        Some((key >> 3, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Field<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let left = self.rest.len();
        Some(if let Some(field) = self.field() {
            Ok(field)
        } else {
            // Nothing after it can be trusted.
            self.rest = &[];
            Err(Malformed { left })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_in_order_and_a_cut_one_ends_the_walk() {
        let bytes = [0x08, 0x96, 0x01, 0x12, 0x02, b'h', b'i', 0x1d, 1, 2, 3, 4];
        let fields: Vec<_> = Fields::of(&bytes).map(Result::unwrap).collect();
        assert_eq!(
            fields,
            [
                (1, Field::Number(150)),
                (2, Field::Bytes(b"hi")),
                (3, Field::Fixed)
            ]
        );
        for cut in [1, 2, 4, 6, 9] {
            assert!(
                Fields::of(&bytes[..cut]).any(|field| field.is_err()),
                "{cut}"
            );
        }
        let endless = [0xff; 11];
        assert_eq!(
            Fields::of(&endless).next(),
            Some(Err(Malformed { left: 11 }))
        );
    }
}
