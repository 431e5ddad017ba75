//! Header blocks to fields (RFC 7541, section 6).

use super::{
    huffman,
    static_table::STATIC_TABLE,
    table::{DynamicTable, Entry, Lookup},
};

/// Longest integer, in bits; no length or index of a real encoder needs more.
const INTEGER_BITS: u32 = 28;
/// Table sizes that peers agree on are far below.
const LARGEST_TABLE: usize = 1 << 24;

/// A header; `None`: the encoder refers to an entry from before the observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    pub(crate) name: Option<&'a [u8]>,
    pub(crate) value: Option<&'a [u8]>,
}

/// Why a block could not be read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HpackError {
    /// The block ends within a field.
    Cut,
    /// No encoder sends this.
    Malformed,
}

/// The decoder of one direction.
#[derive(Debug)]
pub(crate) struct HpackDecoder {
    table: DynamicTable,
}

/// How a literal is meant for the table (sections 6.2.1 to 6.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Indexing {
    Insert,
    Leave,
}

impl HpackDecoder {
    pub(crate) fn new(joined: bool) -> Self {
        let table = if joined {
            DynamicTable::joined()
        } else {
            DynamicTable::new()
        };
        Self { table }
    }

    /// A part of what the encoder said was missed: only what it says from here on can be known.
    pub(crate) fn lose(&mut self) {
        self.table = DynamicTable::joined();
    }

    /// Reads a block and calls for each field. After an error the table is lost; fields that were given
    /// before it are right.
    pub(crate) fn decode(
        &mut self,
        block: &[u8],
        mut take: impl FnMut(Field<'_>),
    ) -> Result<(), HpackError> {
        let mut block = block;
        while !block.is_empty() {
            if let Err(error) = self.field(&mut block, &mut take) {
                self.lose();
                return Err(error);
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        block: &mut &[u8],
        take: &mut impl FnMut(Field<'_>),
    ) -> Result<(), HpackError> {
        let first = *block.first().ok_or(HpackError::Cut)?;
        match first {
            0x80.. => {
                let index = integer(block, 7)?;
                self.indexed(index, take)
            }
            0x40..=0x7f => self.literal(block, 6, Indexing::Insert, take),
            0x20..=0x3f => {
                let size = integer(block, 5)?;
                if size > LARGEST_TABLE {
                    return Err(HpackError::Malformed);
                }
                self.table.resize(size);
                Ok(())
            }
            0..=0x1f => self.literal(block, 4, Indexing::Leave, take),
        }
    }

    fn indexed(&self, index: usize, take: &mut impl FnMut(Field<'_>)) -> Result<(), HpackError> {
        let place = index.checked_sub(1).ok_or(HpackError::Malformed)?;
        if let Some((name, value)) = STATIC_TABLE.get(place) {
            take(Field {
                name: Some(name.as_bytes()),
                value: Some(value.as_bytes()),
            });
            return Ok(());
        }
        match self.table.get(place - STATIC_TABLE.len()) {
            Lookup::Found(entry) => take(Field {
                name: entry.name.as_deref(),
                value: entry.value.as_deref(),
            }),
            Lookup::Unknown => take(Field {
                name: None,
                value: None,
            }),
            Lookup::Invalid => return Err(HpackError::Malformed),
        }
        Ok(())
    }

    fn literal(
        &mut self,
        block: &mut &[u8],
        prefix: u32,
        indexing: Indexing,
        take: &mut impl FnMut(Field<'_>),
    ) -> Result<(), HpackError> {
        let index = integer(block, prefix)?;
        let name = match index.checked_sub(1) {
            None => Some(text(block)?),
            Some(place) => self.name_of(place)?,
        };
        let value = text(block)?;
        take(Field {
            name: name.as_deref(),
            value: Some(&value),
        });
        if indexing == Indexing::Insert {
            self.table.insert(Entry {
                name,
                value: Some(value),
            });
        }
        Ok(())
    }

    fn name_of(&self, place: usize) -> Result<Option<Vec<u8>>, HpackError> {
        if let Some((name, _)) = STATIC_TABLE.get(place) {
            return Ok(Some(name.as_bytes().to_vec()));
        }
        match self.table.get(place - STATIC_TABLE.len()) {
            Lookup::Found(entry) => Ok(entry.name.clone()),
            Lookup::Unknown => Ok(None),
            Lookup::Invalid => Err(HpackError::Malformed),
        }
    }
}

/// An integer whose first bits are in a byte with other things (section 5.1).
pub(super) fn integer(block: &mut &[u8], prefix: u32) -> Result<usize, HpackError> {
    let mask = (1_usize << prefix) - 1;
    let mut value = usize::from(byte(block)?) & mask;
    if value < mask {
        return Ok(value);
    }
    let mut shift = 0;
    loop {
        let next = usize::from(byte(block)?);
        if shift >= INTEGER_BITS {
            return Err(HpackError::Malformed);
        }
        value += (next & 0x7f) << shift;
        if next & 0x80 == 0 {
            return Ok(value);
        }
        shift += 7;
    }
}

/// A text, with or without the Huffman code (section 5.2).
fn text(block: &mut &[u8]) -> Result<Vec<u8>, HpackError> {
    let is_huffman = block.first().ok_or(HpackError::Cut)? & 0x80 != 0;
    let length = integer(block, 7)?;
    let (raw, rest) = block.split_at_checked(length).ok_or(HpackError::Cut)?;
    *block = rest;
    if !is_huffman {
        return Ok(raw.to_vec());
    }
    let mut out = Vec::with_capacity(raw.len() * 8 / 5);
    huffman::decode(raw, &mut out).map_err(|huffman::NotHuffman| HpackError::Malformed)?;
    Ok(out)
}

fn byte(block: &mut &[u8]) -> Result<u8, HpackError> {
    let (first, rest) = block.split_first().ok_or(HpackError::Cut)?;
    *block = rest;
    Ok(*first)
}
