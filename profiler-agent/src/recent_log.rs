//! The last lines of the log, kept in memory for the support bundle.

use std::{
    collections::VecDeque,
    io::{self, Write},
    sync::Arc,
};

use parking_lot::{Mutex, MutexGuard};
use profiler_model::printable::printable;
use tracing_subscriber::fmt::MakeWriter;

/// Lines that are kept.
const MOST_LINES: usize = 500;
/// Longer lines are cut.
const MOST_LINE_BYTES: usize = 2048;

/// See the module. Cheap to clone; all clones hold the same lines.
#[derive(Clone, Debug, Default)]
pub struct RecentLog {
    lines: Arc<Mutex<VecDeque<String>>>,
}

/// The log of this process.
static OWN: std::sync::LazyLock<RecentLog> = std::sync::LazyLock::new(RecentLog::default);

impl RecentLog {
    /// What this process has logged.
    pub fn own() -> Self {
        OWN.clone()
    }

    /// The lines, oldest first, each with its end.
    pub fn text(&self) -> String {
        self.lock().iter().flat_map(|line| [line, "\n"]).collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.lines.lock()
    }
}

impl Write for RecentLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The subscriber writes each event at once; an event is a line.
        let text = String::from_utf8_lossy(bytes);
        let line = printable(text.strip_suffix('\n').unwrap_or(&text));
        let end = line.floor_char_boundary(MOST_LINE_BYTES);
        let mut lines = self.lock();
        if lines.len() == MOST_LINES {
            lines.pop_front();
        }
        lines.push_back(line.get(..end).unwrap_or_default().to_owned());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for RecentLog {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_kept_and_long_ones_are_cut() {
        let mut log = RecentLog::default();
        for number in 0..MOST_LINES + 3 {
            log.write_all(format!("line {number}\n").as_bytes())
                .unwrap();
        }
        log.write_all("ä".repeat(MOST_LINE_BYTES).as_bytes())
            .unwrap();
        let text = log.text();
        assert_eq!(text.lines().count(), MOST_LINES);
        assert!(text.starts_with("line 4\n"), "{text}");
        assert!(text.lines().last().unwrap().len() <= MOST_LINE_BYTES);
        log.write_all(b"one\x1b[31m\nevent\n").unwrap();
        assert!(log.text().ends_with("\none\\x1b[31m\\x0aevent\n"));
    }
}
