//! Untrusted text as it may be shown: what is not printable, or changes how other letters are shown, is
//! escaped.

/// Letters that change how others are shown: directions of writing, and those of no width.
fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Adds a letter, as `\xNN` or `\u{N}` when it is not to be shown.
pub(crate) fn push_printable(text: &mut String, letter: char) {
    if !letter.is_control() && !is_invisible(letter) {
        text.push(letter);
        return;
    }
    let number = u32::from(letter);
    let escaped = if letter.is_ascii() {
        format!("\\x{number:02x}")
    } else {
        format!("\\u{{{number:x}}}")
    };
    text.push_str(&escaped);
}

/// Text of untrusted bytes.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            push_printable(&mut text, letter);
        }
        text.extend(chunk.invalid().escape_ascii().map(char::from));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_printable_stays() {
        for (bytes, expected) in [
            (&b"plain name"[..], "plain name"),
            (b"\x1b[31m\x7f", "\\x1b[31m\\x7f"),
            ("a\u{202e}b\u{85}".as_bytes(), "a\\u{202e}b\\u{85}"),
            (b"\xff\xc3\xa4", "\\xff\u{e4}"),
        ] {
            assert_eq!(printable(bytes), expected);
        }
    }
}
