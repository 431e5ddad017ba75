//! Text for a terminal, put together line by line. What is not printable in a line is escaped, wherever it comes from:
//! who chooses a name steers no terminal with it, and writes no line of its own.

use std::{
    fmt::{self, Write as _},
    ops::Deref,
};

use profiler_model::printable::{Escaping, is_plain};
use serde::Serialize;

/// Lines for a terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text(String);

impl Text {
    /// Text that was put together elsewhere; its ends of lines stay.
    pub fn of(text: &str) -> Self {
        let mut lines = Self::default();
        lines.paragraph(text, 0);
        lines
    }

    /// A document as JSON.
    pub fn json(document: &impl Serialize) -> serde_json::Result<Self> {
        Ok(Self::of_json(&serde_json::to_string_pretty(document)?))
    }

    /// JSON with the same values, in which letters are escaped that JSON lets through.
    pub fn of_json(json: &str) -> Self {
        let mut text = String::with_capacity(json.len() + 1);
        for letter in json.trim_end().chars() {
            match letter {
                // Only between values: a string of JSON has it as an escape.
                '\n' => text.push('\n'),
                '\t' | '\r' => text.push(' '),
                letter if is_plain(letter) => text.push(letter),
                letter => {
                    for unit in letter.encode_utf16(&mut [0; 2]) {
                        // Writing to a String cannot fail.
                        let _infallible = write!(text, "\\u{unit:04x}");
                    }
                }
            }
        }
        text.push('\n');
        Self(text)
    }

    /// Adds a line; ends of lines within it are escaped as well.
    pub fn line(&mut self, line: fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _infallible = Escaping(&mut self.0).write_fmt(line);
        self.0.push('\n');
    }

    /// Adds an empty line.
    pub fn blank(&mut self) {
        self.0.push('\n');
    }

    /// Adds text of several lines. Those behind the first are moved in, so that they are not taken for lines of ours.
    pub fn paragraph(&mut self, text: &str, indent: usize) {
        for (number, line) in text.lines().enumerate() {
            let blanks = if number == 0 { 0 } else { indent };
            self.line(format_args!("{:blanks$}{line}", ""));
        }
    }

    /// Adds the lines of another text.
    pub fn push(&mut self, other: &Self) {
        self.0.push_str(&other.0);
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\x1b[2J\nforged\u{9b}\u{202e}\u{e0041}";

    #[test]
    fn a_line_is_one_line_whatever_is_in_it() {
        let mut text = Text::default();
        text.line(format_args!("{HOSTILE}|"));
        assert_eq!(&*text, "a\\x1b[2J\\x0aforged\\u{9b}\\u{202e}\\u{e0041}|\n");
    }

    #[test]
    fn lines_of_others_are_moved_in() {
        let mut text = Text::default();
        text.paragraph("first\nsecond\x07\r\nthird", 2);
        assert_eq!(&*text, "first\n  second\\x07\n  third\n");
        assert_eq!(&*Text::of("a\n\nb\n"), "a\n\nb\n");
        assert_eq!(&*Text::of(""), "");
    }

    #[test]
    fn json_has_the_same_values_and_steers_nothing() {
        let document = serde_json::json!({ "name": HOSTILE, HOSTILE: ["\u{7f}", "plain \u{e4}"] });
        let text = Text::json(&document).unwrap();
        assert!(
            text.chars()
                .all(|letter| letter == '\n' || is_plain(letter))
        );
        assert!(text.contains("plain \u{e4}"), "{text}");
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read, document);
        let foreign = "{\r\n\t\"a\": \"\u{202e}\"}\n\n";
        assert_eq!(&*Text::of_json(foreign), "{ \n \"a\": \"\\u202e\"}\n");
    }
}
