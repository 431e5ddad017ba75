//! Reads the files of rules that a user gives.

use std::{
    io::{self, Read as _},
    path::Path,
};

use profiler_analysis::{
    diagnosis::{DiagnosisRules, DiagnosisRulesError},
    idle::{IdleRules, IdleRulesError},
};

/// Far above what people write.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The rules of `path`, or the embedded ones.
pub fn idle(path: Option<&Path>) -> Result<IdleRules, IdleRulesError> {
    let Some(path) = path else {
        return IdleRules::new(None);
    };
    let text = read(path).map_err(|source| IdleRulesError::Read {
        path: path.to_owned(),
        source,
    })?;
    let text = text.map_err(|detail| IdleRulesError::Wrong {
        path: path.to_owned(),
        detail,
    })?;
    IdleRules::new(Some((path, &text)))
}

/// The embedded rules, and on top of them those of the user's file at `path`.
pub fn diagnosis(path: Option<&Path>) -> Result<DiagnosisRules, DiagnosisRulesError> {
    let Some(path) = path else {
        return DiagnosisRules::new(None);
    };
    let text = read(path).map_err(|source| DiagnosisRulesError::Read {
        path: path.to_owned(),
        source,
    })?;
    let text = text.map_err(|detail| DiagnosisRulesError::Wrong {
        path: path.to_owned(),
        detail,
    })?;
    DiagnosisRules::new(Some((path, &text)))
}

/// The text of a file, or why it is too much.
fn read(path: &Path) -> io::Result<Result<String, String>> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Ok(Err(format!("larger than {MAX_FILE_BYTES} bytes")));
    }
    Ok(Ok(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINE: &str = "[[rule]]\nname = \"mine\"\nsets = [\"envoy\"]\nfeature = \"lua\"\nframes = [\"Envoy::Router::*\"]\n";

    #[test]
    fn files_of_idle_rules_are_read_with_their_path_in_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("idle.toml");
        let error = idle(Some(&path)).unwrap_err().to_string();
        assert!(error.starts_with("read idle rules ") && error.contains("idle.toml"));
        std::fs::write(&path, "version = 1\nrule = 3\n").unwrap();
        let error = idle(Some(&path)).unwrap_err().to_string();
        assert!(
            error.contains("idle.toml: ") && error.contains("line 2"),
            "{error}"
        );
        std::fs::write(&path, "#".repeat((1 << 20) + 1)).unwrap();
        let error = idle(Some(&path)).unwrap_err().to_string();
        assert!(error.contains("larger than"), "{error}");
    }

    #[test]
    fn files_are_read_with_their_path_in_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        let error = diagnosis(Some(&path)).unwrap_err().to_string();
        assert!(
            error.starts_with("read diagnosis rules ") && error.contains("mine.toml"),
            "{error}"
        );
        std::fs::write(&path, "version = 1\nrule = 3\n").unwrap();
        let error = diagnosis(Some(&path)).unwrap_err().to_string();
        assert!(
            error.contains("mine.toml: ") && error.contains("line 2"),
            "{error}"
        );
        std::fs::write(&path, "#".repeat((1 << 20) + 1)).unwrap();
        let error = diagnosis(Some(&path)).unwrap_err().to_string();
        assert!(error.contains("larger than"), "{error}");
        std::fs::write(&path, format!("version = 1\n{MINE}")).unwrap();
        let rules = diagnosis(Some(&path)).unwrap();
        assert_eq!(rules.list().user_file, Some(path.display().to_string()));
    }
}
