//! Foreign text as it may be shown: what is not printable, or changes how other letters are shown, is escaped.
//!
//! This is the one spelling of such letters, for the terminal, for exported files and for the log. An escape says
//! that something was there; it is not meant to be read back, and backslashes stay as they are. Text that is
//! printable already stays as it is.

use std::{borrow::Cow, fmt};

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Whether a letter is shown as itself and leaves those around it alone.
pub fn is_plain(letter: char) -> bool {
    // Control characters are C0, DEL and C1.
    !letter.is_control() && !is_invisible(letter)
}

/// Unicode's `Default_Ignorable_Code_Point` (directions of writing, letters of no width, selectors, tags), the
/// separators of lines and paragraphs, and the marks of annotations.
fn is_invisible(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Whether a text may be shown as it is.
pub fn is_printable(text: &str) -> bool {
    text.chars().all(is_plain)
}

/// Adds a letter, as `\xNN` or `\u{N}` when it is not to be shown.
pub fn push_printable(text: &mut String, letter: char) {
    if is_plain(letter) {
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

/// A text with its escapes.
pub fn printable(text: &str) -> Cow<'_, str> {
    if is_printable(text) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        push_printable(&mut shown, letter);
    }
    Cow::Owned(shown)
}

/// The same of bytes; those that are not UTF-8 are escaped.
pub fn printable_bytes(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            push_printable(&mut text, letter);
        }
        text.extend(chunk.invalid().escape_ascii().map(char::from));
    }
    text
}

/// A text in at most `most` columns of a terminal; one that is cut ends in an ellipsis. Reads no more of it than is
/// shown.
pub fn printable_within(text: &str, most: usize) -> String {
    let mut shown = String::new();
    let mut used = 0;
    // The end of what leaves room for an ellipsis.
    let mut kept = 0;
    for letter in text.chars() {
        let start = shown.len();
        push_printable(&mut shown, letter);
        used += room(shown.get(start..).unwrap_or_default());
        if used > most {
            shown.truncate(kept);
            shown.push('\u{2026}');
            break;
        }
        if used < most {
            kept = shown.len();
        }
    }
    shown
}

/// Columns that letters may take. Marks on the letter before take none, and count as one: thousands may follow one
/// letter.
fn room(letters: &str) -> usize {
    letters
        .chars()
        .map(|letter| letter.width().unwrap_or(1).max(1))
        .sum()
}

/// Columns that a printable text takes in a terminal.
pub fn columns(text: &str) -> usize {
    text.width()
}

/// A printable text with blanks behind it, up to a number of columns.
pub fn left(text: &str, width: usize) -> String {
    let blanks = width.saturating_sub(columns(text));
    format!("{text}{:blanks$}", "")
}

/// The same with the blanks before it.
pub fn right(text: &str, width: usize) -> String {
    let blanks = width.saturating_sub(columns(text));
    format!("{:blanks$}{text}", "")
}

/// Escapes what is formatted into a text.
#[derive(Debug)]
pub struct Escaping<'a>(pub &'a mut String);

impl fmt::Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.push_str(&printable(text));
        Ok(())
    }
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
            // The beginning of a letter, and half of a surrogate pair.
            (b"a\xc3", "a\\xc3"),
            (b"\xed\xa0\x80", "\\xed\\xa0\\x80"),
        ] {
            assert_eq!(printable_bytes(bytes), expected);
        }
    }

    #[test]
    fn text_and_bytes_have_one_spelling_and_stay_as_they_are_the_second_time() {
        for number in 0..=u32::from(char::MAX) {
            let Some(letter) = char::from_u32(number) else {
                continue;
            };
            let text = letter.to_string();
            let shown = printable(&text);
            assert!(is_printable(&shown), "{number:x}");
            assert_eq!(printable_bytes(text.as_bytes()), shown, "{number:x}");
            assert_eq!(shown == text, is_printable(&text), "{number:x}");
            assert_eq!(printable(&shown), shown, "{number:x}");
        }
    }

    #[test]
    fn letters_that_steer_or_hide_are_escaped() {
        let steering = (0..0x20)
            .chain(0x7f..0xa0)
            .chain(0x200b..=0x200f)
            .chain(0x2028..=0x202e)
            .chain(0x2060..=0x2069)
            .chain([0xad, 0x61c, 0xfeff, 0xfe0f, 0xe0001, 0xe007f]);
        for number in steering {
            let letter = char::from_u32(number).unwrap();
            assert!(!is_printable(&letter.to_string()), "{number:x}");
        }
        for letter in [
            'a',
            ' ',
            '\\',
            '\u{e4}',
            '\u{5d0}',
            '\u{4e2d}',
            '\u{301}',
            '\u{1f525}',
            '\u{fffd}',
        ] {
            assert!(is_printable(&letter.to_string()), "{letter:?}");
        }
    }

    #[test]
    fn a_long_text_is_cut_to_columns_and_says_so() {
        let marks = "\u{301}".repeat(4096);
        for (text, most, expected) in [
            ("", 3, ""),
            ("abc", 3, "abc"),
            ("abcd", 3, "ab\u{2026}"),
            // Each takes two columns.
            ("\u{4e2d}\u{6587}", 4, "\u{4e2d}\u{6587}"),
            ("\u{4e2d}\u{6587}", 3, "\u{4e2d}\u{2026}"),
            // An escape is whole or not there.
            ("a\u{1b}b", 6, "a\\x1bb"),
            ("a\u{1b}b", 5, "a\u{2026}"),
            ("\u{1b}", 1, "\u{2026}"),
            (marks.as_str(), 3, "\u{301}\u{301}\u{2026}"),
        ] {
            let shown = printable_within(text, most);
            assert_eq!(shown, expected, "{text:?} within {most}");
            assert!(columns(&shown) <= most, "{text:?} within {most}");
        }
    }

    #[test]
    fn blanks_are_counted_in_columns() {
        assert_eq!(left("\u{4e2d}", 4), "\u{4e2d}  ");
        assert_eq!(right("e\u{301}", 3), "  e\u{301}");
        assert_eq!(
            (left("abc", 2), right("abc", 2)),
            ("abc".into(), "abc".into())
        );
    }
}
