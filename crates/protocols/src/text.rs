//! Untrusted bytes to text that may be kept: bounded, without control characters.

/// At most `limit` bytes of `bytes` as text; control characters and what is not UTF-8 become `\u{fffd}`.
pub(crate) fn printable(bytes: &[u8], limit: usize) -> String {
    let mut text = String::with_capacity(bytes.len().min(limit));
    'chunks: for chunk in bytes.utf8_chunks() {
        let broken = (!chunk.invalid().is_empty()).then_some(char::REPLACEMENT_CHARACTER);
        for character in chunk.valid().chars().chain(broken) {
            let shown = printable_letter(character);
            if text.len() + shown.len_utf8() > limit {
                break 'chunks;
            }
            text.push(shown);
        }
    }
    text
}

/// The text with its control characters replaced.
pub(crate) fn printable_text(text: &str) -> String {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        // Nearly all of it.
        return text.to_owned();
    }
    text.chars().map(printable_letter).collect()
}

/// A letter that may be kept: control characters are replaced.
pub(crate) fn printable_letter(letter: char) -> char {
    if letter.is_control() {
        char::REPLACEMENT_CHARACTER
    } else {
        letter
    }
}

/// Text when it is a code of a protocol: letters, digits and `_` only, 1 to 32 of them.
pub(crate) fn code(bytes: &[u8]) -> Option<String> {
    let fits = (1..=32).contains(&bytes.len());
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    if fits && bytes.iter().all(plain) {
        return String::from_utf8(bytes.to_vec()).ok();
    }
    None
}
