//! The text of a file of rules: saying where in it something is wrong.

use std::ops::Range;

/// The text that spans point into.
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
}

impl Source<'_> {
    /// The error of a place in the text.
    pub(super) fn wrong<T>(
        &self,
        span: &Range<usize>,
        problem: impl Into<String>,
    ) -> Result<T, String> {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        Err(format!("line {line}: {}", problem.into()))
    }
}
