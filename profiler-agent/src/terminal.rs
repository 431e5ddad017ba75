//! The one way to the terminal: all that this program writes to stdout and stderr goes through here.
//!
//! A [`Text`] is put together line by line and has nothing in it that steers a terminal. Files that were asked for on
//! stdout are written as they are. The house rules let nothing else write there.

use std::{
    fmt,
    io::{self, IsTerminal as _, Write as _},
};

use anyhow::{Context as _, Result};
use indicatif::ProgressDrawTarget;
pub(crate) use profiler_analysis::render::text::Text;

/// How far lines of an error are moved in that are not its first.
const ERROR_INDENT: usize = 4;

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
    line.to_string()
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

    #[test]
    fn an_event_of_the_log_is_one_line() {
        let event = "time \x1b[1;31mx\x1b[2J\ny\u{202e}\n";
        assert_eq!(
            log_line(event),
            "time \\x1b[1;31mx\\x1b[2J\\x0ay\\u{202e}\n"
        );
    }
}
