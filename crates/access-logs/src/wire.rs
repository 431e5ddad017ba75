//! Fields of an encoded protobuf message, without decoding them.

use std::ops::Range;

use thiserror::Error;

/// The reason why bytes are not a protobuf message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WireProblem {
    #[error("the message ends within a field")]
    Truncated,
    #[error("a number of more than 64 bits")]
    NumberTooLong,
    #[error("field number {0}")]
    FieldNumber(u64),
    /// 3 and 4 are groups, which these messages do not use.
    #[error("wire type {0}")]
    WireType(u8),
    #[error("a field of {length} bytes where {left} are left")]
    Length { length: u64, left: usize },
}

/// Bytes are not a protobuf message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{problem} at byte {at}")]
pub struct WireError {
    /// Offset in the outermost message of the field that cannot be read.
    pub at: usize,
    pub problem: WireProblem,
}

/// Where text, bytes or a message are in the outermost message. Half the size of a `Range<usize>`: an entry has forty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    start: u32,
    end: u32,
}

impl Place {
    pub(crate) fn is_empty(self) -> bool {
        self.start == self.end
    }

    pub(crate) fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl From<Range<usize>> for Place {
    fn from(range: Range<usize>) -> Self {
        // Longer messages are refused before they are decoded.
        let [start, end] = [range.start, range.end].map(|at| u32::try_from(at).unwrap_or(u32::MAX));
        Self { start, end }
    }
}

/// A field and where its content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) number: u32,
    pub(crate) content: Content,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Varint(u64),
    Fixed64(u64),
    Fixed32,
    /// Text, bytes or a message.
    Bytes(Place),
}

impl Field {
    /// The place of the content if the field has this number and is text, bytes or a message.
    pub(crate) fn bytes_of(&self, number: u32) -> Option<Place> {
        match self.content {
            Content::Bytes(place) if self.number == number => Some(place),
            Content::Bytes(_) | Content::Varint(_) | Content::Fixed64(_) | Content::Fixed32 => None,
        }
    }
}

const MAX_FIELD_NUMBER: u32 = (1 << 29) - 1;

/// Fields of a message or of a nested one, in encoded order. An error is the last item.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    /// What was not read yet.
    rest: &'a [u8],
    /// Where that ends in the outermost message.
    end: usize,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(message: &'a [u8]) -> Self {
        Self {
            rest: message,
            end: message.len(),
        }
    }

    /// Fields of what is at this place of a message.
    pub(crate) fn of(message: &'a [u8], place: Place) -> Self {
        let Range { start, end } = place.range();
        let end = end.min(message.len());
        let rest = message.get(start..end).unwrap_or_default();
        Self { rest, end }
    }

    fn at(&self) -> usize {
        self.end - self.rest.len()
    }

    #[expect(clippy::inline_always, reason = "reading entries consists of it")]
    #[inline(always)]
    fn varint(&mut self) -> Result<u64, WireProblem> {
        match self.rest {
            // Keys, lengths and small values.
            [byte @ 0..0x80, rest @ ..] => {
                self.rest = rest;
                Ok(u64::from(*byte))
            }
            [low, high @ 0..0x80, rest @ ..] => {
                self.rest = rest;
                Ok(u64::from(low & 0x7f) | u64::from(*high) << 7)
            }
            _ => self.long_varint(),
        }
    }

    #[inline(never)]
    fn long_varint(&mut self) -> Result<u64, WireProblem> {
        let mut value = 0_u64;
        for (number, byte) in self.rest.iter().enumerate() {
            // The tenth byte has the 64th bit alone.
            if number == 9 && *byte > 1 {
                return Err(WireProblem::NumberTooLong);
            }
            value |= u64::from(byte & 0x7f) << (7 * number);
            if byte & 0x80 == 0 {
                self.rest = self.rest.get(number + 1..).unwrap_or_default();
                return Ok(value);
            }
        }
        Err(WireProblem::Truncated)
    }

    #[expect(clippy::inline_always, reason = "reading entries consists of it")]
    #[inline(always)]
    fn skip(&mut self, length: u64) -> Result<Place, WireProblem> {
        let start = self.at();
        let split = usize::try_from(length)
            .ok()
            .and_then(|length| self.rest.split_at_checked(length));
        let Some((_, rest)) = split else {
            let left = self.rest.len();
            return Err(WireProblem::Length { length, left });
        };
        self.rest = rest;
        Ok(Place::from(start..self.at()))
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], WireProblem> {
        let (bytes, rest) = self
            .rest
            .split_first_chunk::<N>()
            .ok_or(WireProblem::Truncated)?;
        self.rest = rest;
        Ok(*bytes)
    }

    #[expect(clippy::inline_always, reason = "reading entries consists of it")]
    #[inline(always)]
    fn field(&mut self) -> Result<Field, WireProblem> {
        let key = self.varint()?;
        let Ok(number @ 1..=MAX_FIELD_NUMBER) = u32::try_from(key >> 3) else {
            return Err(WireProblem::FieldNumber(key >> 3));
        };
        let content = match key & 7 {
            0 => Content::Varint(self.varint()?),
            1 => Content::Fixed64(u64::from_le_bytes(self.fixed()?)),
            2 => {
                let length = self.varint()?;
                Content::Bytes(self.skip(length)?)
            }
            5 => {
                self.fixed::<4>()?;
                Content::Fixed32
            }
            other => {
                let other = u8::try_from(other).unwrap_or_default();
                return Err(WireProblem::WireType(other));
            }
        };
        Ok(Field { number, content })
    }
}

impl Iterator for Fields<'_> {
    type Item = Result<Field, WireError>;

    #[expect(clippy::inline_always, reason = "reading entries consists of it")]
    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let at = self.at();
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field.map_err(|problem| WireError { at, problem }))
    }
}

#[cfg(test)]
mod tests {
    use super::{Content, Field, Fields, WireError, WireProblem};

    /// A field's number and content, or where an error is and which.
    type Expected = Result<(u32, Content), (usize, WireProblem)>;

    fn check(message: &[u8], expected: &[Expected]) {
        let expected: Vec<_> = expected
            .iter()
            .copied()
            .map(|one| {
                one.map(|(number, content)| Field { number, content })
                    .map_err(|(at, problem)| WireError { at, problem })
            })
            .collect();
        assert_eq!(Fields::new(message).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn fields_of_each_wire_type() {
        check(
            &[
                0x08, 0xac, 0x02, 0x11, 1, 0, 0, 0, 0, 0, 0, 0, 0x1a, 2, b'h', b'i', 0x25, 1, 2, 3,
                4,
            ],
            &[
                Ok((1, Content::Varint(300))),
                Ok((2, Content::Fixed64(1))),
                Ok((3, Content::Bytes((14..16).into()))),
                Ok((4, Content::Fixed32)),
            ],
        );
        check(&[], &[]);
        check(&[0x0a, 0], &[Ok((1, Content::Bytes((2..2).into())))]);
    }

    #[test]
    fn an_error_says_where_its_field_begins_and_is_the_last_item() {
        check(
            &[0x08, 1, 0x0a, 5, 1],
            &[
                Ok((1, Content::Varint(1))),
                Err((2, WireProblem::Length { length: 5, left: 1 })),
            ],
        );
        check(&[0x80], &[Err((0, WireProblem::Truncated))]);
        check(&[0x11, 1], &[Err((0, WireProblem::Truncated))]);
        check(&[0x0b], &[Err((0, WireProblem::WireType(3)))]);
        check(&[0x00], &[Err((0, WireProblem::FieldNumber(0)))]);
        let mut long = vec![0x08];
        long.extend([0xff; 9]);
        long.push(2);
        check(&long, &[Err((0, WireProblem::NumberTooLong))]);
        long[10] = 1;
        check(&long, &[Ok((1, Content::Varint(u64::MAX)))]);
    }

    #[test]
    fn fields_inside_of_a_field_have_offsets_of_the_whole() {
        let message = [0x0a, 3, 0x12, 1, 7, 0x18, 1];
        let inner: Vec<_> = Fields::of(&message, (2..5).into()).collect();
        assert_eq!(
            inner,
            [Ok(Field {
                number: 2,
                content: Content::Bytes((4..5).into())
            })]
        );
        let cut: Vec<_> = Fields::of(&message, (2..4).into()).collect();
        let problem = WireProblem::Length { length: 1, left: 0 };
        assert_eq!(cut, [Err(WireError { at: 2, problem })]);
        assert_eq!(Fields::of(&message, (9..12).into()).count(), 0);
    }
}
