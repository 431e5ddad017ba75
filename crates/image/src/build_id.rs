//! Build-ids as text.

pub use profiler_model::hexadecimal;

/// Longest build-id that is taken, in bytes; linkers write 8 to 32.
pub const LIMIT: usize = 64;

/// The bytes of a text in hexadecimal digits of either case; `None` for anything else. At least two
/// bytes, which is what the folders of debug files need.
pub fn parse(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || !(4..=2 * LIMIT).contains(&digits.len()) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    digits
        .chunks_exact(2)
        .map(|pair| u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_bytes_belong_to_each_other() {
        assert_eq!(parse("00ffAb"), Some(vec![0, 255, 0xab]));
        assert_eq!(hexadecimal(&[0, 255, 0xab]), "00ffab");
        for refused in ["", "ab", "abc", "0g00", "../..", "+1+1", "é0"] {
            assert_eq!(parse(refused), None, "{refused}");
        }
        assert_eq!(parse(&"ab".repeat(LIMIT)).map(|id| id.len()), Some(LIMIT));
        assert_eq!(parse(&"ab".repeat(LIMIT + 1)), None);
    }
}
