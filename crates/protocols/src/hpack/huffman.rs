//! The Huffman code of RFC 7541, appendix B.
//!
//! The code is canonical, so that the lengths of its words say all.

/// Bits of the code of each byte, and of the end of the text.
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5,
    5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6,
    6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22,
    23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22,
    21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20,
    22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19,
    21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22,
    22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];
const SHORTEST: usize = 5;
const LONGEST: usize = 30;
/// The symbol that is longer than any padding and must not occur.
const END: u16 = 256;

/// Symbols in the order of their codes.
const SYMBOLS: [u16; 257] = symbols();
/// For each length: the first code behind those of this length, aligned to 32 bits.
const LIMITS: [u64; LONGEST + 1] = limits();
/// For each length: its first code, and where its symbols begin.
const FIRST: [(u64, usize); LONGEST + 1] = first();

#[expect(clippy::cast_possible_truncation, reason = "there are 257 symbols")]
const fn symbols() -> [u16; 257] {
    let mut symbols = [0; 257];
    let (mut count, mut length) = (0, SHORTEST);
    while length <= LONGEST {
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] as usize == length {
                symbols[count] = symbol as u16;
                count += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    symbols
}

const fn count_of(length: usize) -> usize {
    let (mut count, mut symbol) = (0, 0);
    while symbol < LENGTHS.len() {
        if LENGTHS[symbol] as usize == length {
            count += 1;
        }
        symbol += 1;
    }
    count
}

const fn first() -> [(u64, usize); LONGEST + 1] {
    let mut first = [(0, 0); LONGEST + 1];
    let (mut code, mut place, mut length) = (0_u64, 0, 1);
    while length <= LONGEST {
        first[length] = (code, place);
        code = (code + count_of(length) as u64) << 1;
        place += count_of(length);
        length += 1;
    }
    first
}

const fn limits() -> [u64; LONGEST + 1] {
    let (mut limits, mut length) = ([0; LONGEST + 1], 1);
    while length <= LONGEST {
        limits[length] = (first()[length].0 + count_of(length) as u64) << (32 - length);
        length += 1;
    }
    limits
}

/// The text is none of this code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotHuffman;

/// Appends the text to `out`. Padding must be shorter than a byte and of ones (section 5.2).
pub(super) fn decode(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), NotHuffman> {
    let (mut window, mut bits) = (0_u64, 0_usize);
    let mut bytes = bytes.iter();
    loop {
        while bits <= 32 {
            let Some(byte) = bytes.next() else {
                break;
            };
            window = window << 8 | u64::from(*byte);
            bits += 8;
        }
        if bits < SHORTEST {
            return padding(window, bits);
        }
        // The next 32 bits, with ones where the text has ended: these decode to nothing shorter than it.
        let next = if bits >= 32 {
            window >> (bits - 32) & 0xffff_ffff
        } else {
            (window << (32 - bits) | ((1 << (32 - bits)) - 1)) & 0xffff_ffff
        };
        let length = (SHORTEST..=LONGEST)
            .find(|length| LIMITS.get(*length).is_some_and(|limit| next < *limit))
            .unwrap_or(LONGEST);
        if length > bits {
            return padding(window, bits);
        }
        let (code, place) = FIRST.get(length).copied().unwrap_or_default();
        let offset =
            usize::try_from((next >> (32 - length)).wrapping_sub(code)).unwrap_or(usize::MAX);
        let symbol = SYMBOLS
            .get(place.saturating_add(offset))
            .copied()
            .unwrap_or(END);
        out.push(u8::try_from(symbol).map_err(|_| NotHuffman)?);
        bits -= length;
    }
}

fn padding(window: u64, bits: usize) -> Result<(), NotHuffman> {
    let ones = (1 << bits) - 1;
    if bits < 8 && window & ones == ones {
        Ok(())
    } else {
        Err(NotHuffman)
    }
}

/// Encodes as the RFC says; for tests.
#[cfg(test)]
pub(super) fn encode(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    httlib_huffman::encode(text, &mut out).expect("a text");
    out
}

#[cfg(test)]
mod tests {
    use super::{NotHuffman, decode, encode};
    use crate::replay::Numbers;

    #[test]
    fn every_byte_and_random_texts_come_back() {
        let every: Vec<u8> = (0..=255).collect();
        check(&every);
        let mut numbers = Numbers::new(1);
        for _ in 0..2000 {
            let length = numbers.below(40);
            let text: Vec<u8> = (0..length)
                .map(|_| u8::try_from(numbers.below(256)).expect("a byte"))
                .collect();
            check(&text);
        }
        for byte in 0..=255 {
            check(&[byte]);
            check(&[byte; 9]);
        }
    }

    #[test]
    fn padding_must_be_short_and_of_ones() {
        for wrong in [
            &[0xff][..],
            // "a" and a whole byte of ones.
            &[0x1f, 0xff],
            // "a" and zeros.
            &[0x18],
            // The end of the text.
            &[0xff, 0xff, 0xff, 0xff],
            &[0xff, 0xff, 0xff, 0xfc],
        ] {
            assert_eq!(decode(wrong, &mut Vec::new()), Err(NotHuffman), "{wrong:?}");
        }
    }

    fn check(text: &[u8]) {
        let mut out = Vec::new();
        assert_eq!(decode(&encode(text), &mut out), Ok(()));
        assert_eq!(out, text);
    }
}
