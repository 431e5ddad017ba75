//! Elements of BSON documents (bsonspec.org, version 1.1), without what lies in nested ones.

use super::super::reader::Reader;

/// Values that are of use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Text(&'a [u8]),
    Integer(i64),
    Double(f64),
    Boolean(bool),
    /// The bytes of a document or of an array, as many as were captured.
    Nested(&'a [u8]),
    Other,
}

/// The elements of a document, up to its end or to that of what was captured.
#[derive(Debug)]
pub(super) struct Elements<'a> {
    reader: Reader<'a>,
    ended: bool,
}

impl<'a> Elements<'a> {
    /// Of a document with its length before it.
    pub(super) fn of(document: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(document);
        let length = reader.i32_le()?;
        (length >= 5).then_some(Self {
            reader,
            ended: false,
        })
    }

    /// The end of the document was seen.
    pub(super) fn is_whole(&self) -> bool {
        self.ended
    }

    fn value(&mut self, kind: u8) -> Option<Value<'a>> {
        let reader = &mut self.reader;
        let value = match kind {
            0x01 => Value::Double(reader.f64_le()?),
            0x02 | 0x0d | 0x0e => {
                let length = usize::try_from(reader.i32_le()?).ok()?;
                let text = reader.take(length)?;
                Value::Text(text.strip_suffix(&[0])?)
            }
            0x03 | 0x04 => {
                let mut ahead = *reader;
                let length = usize::try_from(ahead.i32_le()?)
                    .ok()
                    .filter(|length| *length >= 5)?;
                // It may go on behind what was captured; then nothing follows.
                let captured = length.min(reader.rest().len());
                Value::Nested(reader.take(captured)?)
            }
            0x05 => {
                let length = usize::try_from(reader.i32_le()?).ok()?;
                reader.take(length + 1)?;
                Value::Other
            }
            0x07 => {
                reader.take(12)?;
                Value::Other
            }
            0x08 => Value::Boolean(reader.u8()? != 0),
            0x09 | 0x11 => {
                reader.take(8)?;
                Value::Other
            }
            0x12 => {
                let low = reader.u32_le()?;
                let high = reader.i32_le()?;
                Value::Integer(i64::from(high) << 32 | i64::from(low))
            }
            0x10 => Value::Integer(i64::from(reader.i32_le()?)),
            0x06 | 0x0a | 0x7f | 0xff => Value::Other,
            0x0b => {
                reader.until_nul()?;
                reader.until_nul()?;
                Value::Other
            }
            0x13 => {
                reader.take(16)?;
                Value::Other
            }
            _ => return None,
        };
        Some(value)
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = (&'a [u8], Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let kind = self.reader.u8()?;
        if kind == 0 {
            self.ended = true;
            return None;
        }
        let name = self.reader.until_nul()?;
        let value = self.value(kind)?;
        Some((name, value))
    }
}
