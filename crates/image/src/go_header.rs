//! The header of `.gopclntab` and its variable-length numbers, for the readers of names and of
//! frame sizes. Formats of Go 1.18 (magic ending in f0) and of 1.20 and later (f1).

use super::elf_layout::{Layout, Section};

pub const MAGIC_1_18: u32 = 0xffff_fff0;
pub const MAGIC_1_20: u32 = 0xffff_fff1;

/// Bytes of the header.
pub const HEADER_BYTES: usize = 72;
/// The word of the runtime's `moduledata` that says where the code begins.
pub const MODULE_TEXT_WORD: usize = 22;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoVersion {
    From1_18,
    From1_20,
}

/// What the header says. Places are from the beginning of the table; none of them is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoHeader {
    pub version: GoVersion,
    /// Smallest step of code, in bytes.
    pub quantum: u64,
    pub pointer_bytes: u8,
    pub functions: u64,
    /// Address at which the code begins, before the program was moved; 0 since Go 1.22.
    pub text: u64,
    pub names_at: u64,
    pub units_at: u64,
    pub files_at: u64,
    pub values_at: u64,
    pub index_at: u64,
}

impl GoHeader {
    /// None when it is of no format that is known.
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let version = match u32::from_le_bytes(*bytes.first_chunk()?) {
            MAGIC_1_18 => GoVersion::From1_18,
            MAGIC_1_20 => GoVersion::From1_20,
            _ => return None,
        };
        // Two bytes of padding, the size of the smallest instruction, the size of a pointer.
        let [quantum, pointer_bytes] = [bytes[6], bytes[7]];
        let word = |index: usize| {
            let at = 8 + index * 8;
            Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
        };
        Some(Self {
            version,
            quantum: u64::from(quantum),
            pointer_bytes,
            functions: word(0)?,
            text: word(2)?,
            names_at: word(3)?,
            units_at: word(4)?,
            files_at: word(5)?,
            values_at: word(6)?,
            index_at: word(7)?,
        })
    }

    pub fn section(layout: &Layout) -> Option<&Section> {
        layout
            .section(".gopclntab")
            .or_else(|| layout.section(".data.rel.ro.gopclntab"))
    }
}

/// A number of seven bits to a byte, the lowest first; none when it has more than 32 bits.
pub fn varint(mut next: impl FnMut() -> Option<u8>) -> Option<u32> {
    let mut value = 0_u64;
    for shift in (0..35).step_by(7) {
        let byte = next()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return u32::try_from(value).ok();
        }
    }
    None
}

/// The difference that a number of a pc-value table stands for: the sign is in the lowest bit.
pub fn difference(number: u32) -> i32 {
    // Shifted, it has 31 bits.
    let magnitude = (number >> 1).cast_signed();
    if number & 1 == 0 {
        magnitude
    } else {
        !magnitude
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_go_writes_them() {
        let read = |bytes: &[u8]| {
            let mut bytes = bytes.iter().copied();
            varint(|| bytes.next())
        };
        assert_eq!(read(&[0]), Some(0));
        assert_eq!(read(&[0xac, 0x02]), Some(300));
        assert_eq!(read(&[0xff, 0xff, 0xff, 0xff, 0x0f]), Some(u32::MAX));
        assert_eq!(read(&[0xff, 0xff, 0xff, 0xff, 0x1f]), None, "33 bits");
        assert_eq!(read(&[0x80; 6]), None, "too long");
        assert_eq!(read(&[0x80]), None, "cut off");
    }

    #[test]
    fn differences_have_their_sign_in_the_lowest_bit() {
        let pairs = [(0, 0), (2, 1), (1, -1), (3, -2), (u32::MAX, i32::MIN)];
        for (number, expected) in pairs {
            assert_eq!(difference(number), expected);
        }
    }

    #[test]
    fn only_known_formats_are_read() {
        let mut bytes = [0; HEADER_BYTES];
        assert_eq!(GoHeader::parse(&bytes), None);
        bytes[..8].copy_from_slice(&[0xf1, 0xff, 0xff, 0xff, 0, 0, 4, 8]);
        bytes[8] = 7;
        bytes[64] = 9;
        let header = GoHeader::parse(&bytes).expect("a format");
        assert_eq!(header.version, GoVersion::From1_20);
        assert_eq!((header.quantum, header.pointer_bytes), (4, 8));
        assert_eq!((header.functions, header.index_at), (7, 9));
    }
}
