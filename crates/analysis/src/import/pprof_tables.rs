//! The tables of a pprof file: strings, functions, mappings, locations and what its samples count.

use std::collections::HashMap;

use prost::Message as _;

use super::{
    ImportError, MAX_ITEMS, MAX_TEXT_BYTES, Memory,
    fields::{Field, Fields, Malformed},
};
use crate::render::pprof::message;

// Numbers of the fields of `Profile` in profile.proto.
const SAMPLE_TYPE: u64 = 1;
pub(super) const SAMPLE: u64 = 2;
const MAPPING: u64 = 3;
const LOCATION: u64 = 4;
const FUNCTION: u64 = 5;
const STRING: u64 = 6;
const TIME_NANOS: u64 = 9;
const DURATION_NANOS: u64 = 10;
const PERIOD_TYPE: u64 = 11;
const PERIOD: u64 = 12;
const COMMENT: u64 = 13;
const DEFAULT_SAMPLE_TYPE: u64 = 14;

/// More kinds of values than any program writes.
const MAX_VALUES: usize = 64;
/// Lines of one location: functions that were inlined into one another.
const MAX_LINES: usize = 1024;

/// Everything of the file but its samples.
#[derive(Debug, Default)]
pub(super) struct Tables<'a> {
    strings: Vec<&'a [u8]>,
    pub(super) types: Vec<message::ValueType>,
    pub(super) functions: HashMap<u64, message::Function>,
    pub(super) mappings: HashMap<u64, message::Mapping>,
    pub(super) locations: HashMap<u64, message::Location>,
    pub(super) time_ns: u64,
    pub(super) duration_ns: u64,
    pub(super) period_type: Option<message::ValueType>,
    pub(super) period: u64,
    comments: Vec<i64>,
    pub(super) default_type: i64,
    /// About the memory that these tables take.
    pub(super) bytes: u64,
}

/// What an entry costs beside its value.
const OVERHEAD: usize = 32;

impl<'a> Tables<'a> {
    pub(super) fn read(raw: &'a [u8], memory: Memory) -> Result<Self, ImportError> {
        let mut tables = Self::default();
        for field in Fields::of(raw) {
            let (number, value) = field.map_err(|error| malformed(error, raw))?;
            memory.check(tables.bytes)?;
            match value {
                Field::Bytes(bytes) => tables.take(number, bytes)?,
                Field::Number(value) => tables.take_number(number, value),
                Field::Fixed => {}
            }
        }
        if tables.strings.first().is_none_or(|first| !first.is_empty()) {
            return Err(not_a_profile(
                "its string table does not begin with an empty string",
            ));
        }
        if tables.types.is_empty() {
            return Err(not_a_profile("it does not say what its samples count"));
        }
        Ok(tables)
    }

    fn take(&mut self, number: u64, bytes: &'a [u8]) -> Result<(), ImportError> {
        match number {
            SAMPLE_TYPE => {
                bounded("kinds of values", self.types.len(), MAX_VALUES)?;
                self.types.push(decode(bytes)?);
            }
            MAPPING => {
                bounded("mappings", self.mappings.len(), MAX_ITEMS)?;
                let mapping: message::Mapping = decode(bytes)?;
                self.count::<message::Mapping>(0);
                self.mappings.insert(mapping.id, mapping);
            }
            LOCATION => {
                bounded("locations", self.locations.len(), MAX_ITEMS)?;
                // A line takes two bytes at least.
                if Fields::of(bytes).count() > MAX_LINES {
                    return Err(ImportError::TooMany {
                        what: "functions at one location",
                        limit: MAX_LINES,
                    });
                }
                let location: message::Location = decode(bytes)?;
                self.count::<message::Location>(size_of_val(location.line.as_slice()));
                self.locations.insert(location.id, location);
            }
            FUNCTION => {
                bounded("functions", self.functions.len(), MAX_ITEMS)?;
                let function: message::Function = decode(bytes)?;
                self.count::<message::Function>(0);
                self.functions.insert(function.id, function);
            }
            STRING => {
                bounded("strings", self.strings.len(), MAX_ITEMS)?;
                if bytes.len() > MAX_TEXT_BYTES {
                    return Err(not_a_profile(&format!(
                        "a string is longer than {MAX_TEXT_BYTES} bytes"
                    )));
                }
                self.strings.push(bytes);
                self.count::<&[u8]>(0);
            }
            PERIOD_TYPE => self.period_type = Some(decode(bytes)?),
            COMMENT => {
                // Packed numbers; a long list is cut, as the notes are.
                for number in packed(bytes).take(MAX_VALUES) {
                    self.comments.push(number.cast_signed());
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Counts an entry that holds `bytes` outside of itself.
    fn count<T>(&mut self, bytes: usize) {
        self.bytes += (size_of::<T>() + OVERHEAD + bytes) as u64;
    }

    fn take_number(&mut self, number: u64, value: u64) {
        let positive = u64::try_from(value.cast_signed()).unwrap_or(0);
        match number {
            TIME_NANOS => self.time_ns = positive,
            DURATION_NANOS => self.duration_ns = positive,
            PERIOD => self.period = positive,
            COMMENT if self.comments.len() < MAX_VALUES => self.comments.push(value.cast_signed()),
            DEFAULT_SAMPLE_TYPE => self.default_type = value.cast_signed(),
            _ => {}
        }
    }

    /// A string by its number; what is not UTF-8 is replaced, and a number without a string is
    /// empty.
    pub(super) fn text(&self, number: i64) -> std::borrow::Cow<'a, str> {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let bytes: &'a [u8] = self.strings.get(index).copied().unwrap_or_default();
        String::from_utf8_lossy(bytes)
    }

    pub(super) fn comments(&self) -> Vec<String> {
        self.comments
            .iter()
            .map(|number| self.text(*number).into_owned())
            .collect()
    }
}

/// Numbers of a packed field.
fn packed(mut bytes: &[u8]) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || {
        let mut value = 0_u64;
        for position in 0..10_u32 {
            let (byte, rest) = bytes.split_first()?;
            bytes = rest;
            value |= u64::from(byte & 0x7f) << (7 * position);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    })
}

fn bounded(what: &'static str, have: usize, limit: usize) -> Result<(), ImportError> {
    if have >= limit {
        return Err(ImportError::TooMany { what, limit });
    }
    Ok(())
}

fn decode<M: prost::Message + Default>(bytes: &[u8]) -> Result<M, ImportError> {
    M::decode(bytes).map_err(|error| not_a_profile(&error.to_string()))
}

pub(super) fn decode_sample(bytes: &[u8]) -> Result<message::Sample, prost::DecodeError> {
    message::Sample::decode(bytes)
}

pub(super) fn malformed(error: Malformed, raw: &[u8]) -> ImportError {
    let at = raw.len().saturating_sub(error.left);
    not_a_profile(&format!("its data breaks off at byte {at}"))
}

fn not_a_profile(problem: &str) -> ImportError {
    ImportError::NotAProfile(problem.to_owned())
}
