//! The one way to the terminal: all that this program writes to stdout and stderr goes through here.
//!
//! A `Text` is put together line by line. What is not printable in a line is escaped, wherever it comes from: who
//! chooses a name steers no terminal with it, and writes no line of its own. Files that were asked for on stdout are
//! written as they are. The house rules let nothing else write there.

use std::{
    fmt::{self, Write as _},
    io::{self, IsTerminal as _, Write as _},
    ops::Deref,
};

use anyhow::{Context as _, Result};
use indicatif::ProgressDrawTarget;
use profiler_model::printable::{Escaping, is_plain};
use serde::Serialize;

/// How far lines of an error are moved in that are not its first.
const ERROR_INDENT: usize = 4;

/// Lines for a terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text(String);

impl Text {
    /// Text that was put together elsewhere; its ends of lines stay.
    pub(crate) fn of(text: &str) -> Self {
        let mut lines = Self::default();
        lines.paragraph(text, 0);
        lines
    }

    /// A document as JSON.
    pub(crate) fn json(document: &impl Serialize) -> serde_json::Result<Self> {
        Ok(Self::of_json(&serde_json::to_string_pretty(document)?))
    }

    /// JSON with the same values, in which letters are escaped that JSON lets through.
    pub(crate) fn of_json(json: &str) -> Self {
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
    pub(crate) fn line(&mut self, line: fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _infallible = Escaping(&mut self.0).write_fmt(line);
        self.0.push('\n');
    }

    /// Adds an empty line.
    pub(crate) fn blank(&mut self) {
        self.0.push('\n');
    }

    /// Adds text of several lines. Those behind the first are moved in, so that they are not taken for lines of ours.
    pub(crate) fn paragraph(&mut self, text: &str, indent: usize) {
        for (number, line) in text.lines().enumerate() {
            let blanks = if number == 0 { 0 } else { indent };
            self.line(format_args!("{:blanks$}{line}", ""));
        }
    }

    /// Adds the lines of another text.
    pub(crate) fn push(&mut self, other: &Self) {
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

/// Writes to stdout; a reader that has gone away (`| head`) is not an error.
pub(crate) fn out(text: &Text) -> Result<()> {
    match write(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.context("write to stdout"),
    }
}

/// Writes a file to stdout, as it is.
pub(crate) fn out_file(bytes: &[u8]) -> Result<()> {
    write(bytes).context("write to stdout")
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush())
}

/// Writes to stderr. Errors are ignored: a closed stderr ends nothing.
pub(crate) fn err(text: &Text) {
    let _gone = io::stderr().lock().write_all(text.as_bytes());
}

/// Writes a line to stderr.
pub(crate) fn err_line(line: fmt::Arguments<'_>) {
    let mut text = Text::default();
    text.line(line);
    err(&text);
}

/// Says why the program ends.
pub(crate) fn failed(error: &impl fmt::Display) {
    err(&failure(error));
}

pub(crate) fn failure(error: &impl fmt::Display) -> Text {
    let mut text = Text::default();
    text.paragraph(&format!("profiler-agent: {error}"), ERROR_INDENT);
    text
}

/// Whether stdout is a terminal.
pub(crate) fn out_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether stderr is a terminal.
pub(crate) fn err_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Where a progress bar is drawn. What it says must be numbers and our own words.
pub(crate) fn progress_target() -> ProgressDrawTarget {
    ProgressDrawTarget::stderr_with_hz(5)
}

/// Text on stderr that is drawn over the one before.
#[derive(Debug, Default)]
pub(crate) struct Redrawn {
    /// Lines of what is on the screen.
    lines: usize,
}

impl Redrawn {
    pub(crate) fn show(&mut self, text: &Text) {
        self.erase();
        err(text);
        self.lines = text.lines().count();
    }

    /// Goes up to the first line and erases everything below (ECMA-48, CPL and ED).
    pub(crate) fn erase(&mut self) {
        if self.lines > 0 {
            let _gone = write!(io::stderr(), "\x1b[{}F\x1b[0J", self.lines);
            self.lines = 0;
        }
    }
}

/// Where the log goes: what is written at once is an event, and becomes one line. Without colours, which fields of events could
/// bring as well.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogLines;

impl io::Write for LogLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = log_line(&String::from_utf8_lossy(bytes));
        io::stderr().lock().write_all(line.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

fn log_line(event: &str) -> String {
    let mut line = Text::default();
    line.line(format_args!(
        "{}",
        event.strip_suffix('\n').unwrap_or(event)
    ));
    line.0
}

/// Panics are reported in the same way as errors: their messages may quote names.
pub fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = std::backtrace::Backtrace::capture();
        let mut text = failure(panic);
        if place.status() == std::backtrace::BacktraceStatus::Captured {
            text.paragraph(&place.to_string(), 0);
        }
        err(&text);
    }));
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

    #[test]
    fn an_event_of_the_log_is_one_line() {
        let event = "time \x1b[1;31mx\x1b[2J\ny\u{202e}\n";
        assert_eq!(
            log_line(event),
            "time \\x1b[1;31mx\\x1b[2J\\x0ay\\u{202e}\n"
        );
    }
}
