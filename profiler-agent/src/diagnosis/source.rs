//! The text of a file of rules: reading it, and saying where in it something is wrong.

use std::{io::Read as _, ops::Range, path::Path};

use super::rules::DiagnosisRulesError;

/// Far above what people write.
const MAX_FILE_BYTES: u64 = 1 << 20;

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

/// Reads a whole file of rules.
pub(super) fn read(path: &Path) -> Result<String, DiagnosisRulesError> {
    let failed = |source| DiagnosisRulesError::Read {
        path: path.to_owned(),
        source,
    };
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(MAX_FILE_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(failed)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(DiagnosisRulesError::Wrong {
            path: path.to_owned(),
            detail: format!("larger than {MAX_FILE_BYTES} bytes"),
        });
    }
    Ok(text)
}
