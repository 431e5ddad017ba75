//! Remembers what a generated folder was made from, so that it is made again only when that changed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

/// A file that holds the version and the hash of the inputs of what lies beside it.
#[derive(Debug)]
pub(crate) struct Stamp {
    path: PathBuf,
    content: String,
}

impl Stamp {
    pub(crate) fn new(path: PathBuf, version: &str, hash: &str) -> Self {
        Self {
            path,
            content: format!("version {version}\nsha256 {hash}\n"),
        }
    }

    pub(crate) fn content(&self) -> &str {
        &self.content
    }

    /// Whether the stamp was written with the same version and hash.
    pub(crate) fn is_fresh(&self) -> bool {
        fs::read_to_string(&self.path).is_ok_and(|found| found == self.content)
    }

    /// Call after everything else succeeded.
    pub(crate) fn write(&self) -> Result<()> {
        fs::write(&self.path, &self.content)
            .with_context(|| format!("write {}", self.path.display()))
    }
}

/// SHA-256 of a file, in hexadecimal.
pub(crate) fn file_hash(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("read {}", path.display()))?;
    Ok(format!("{:x}", Sha256::digest(&bytes)))
}

/// SHA-256 of a text, in hexadecimal.
pub(crate) fn text_hash(text: &str) -> String {
    format!("{:x}", Sha256::digest(text))
}

/// SHA-256 over names and contents of all files below the given paths, except in `skipped` folders.
pub(crate) fn tree_hash(paths: &[PathBuf], skipped: &[&str]) -> Result<String> {
    let mut files = Vec::new();
    for path in paths {
        collect(path, skipped, &mut files)?;
    }
    files.sort();
    let mut hasher = Sha256::new();
    for file in files {
        hasher.update(file.to_string_lossy().as_bytes());
        hasher.update([0]);
        hasher.update(file_hash(&file)?.as_bytes());
    }
    Ok(format!("{:x}", hasher.finalize()))
}

fn collect(path: &Path, skipped: &[&str], files: &mut Vec<PathBuf>) -> Result<()> {
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    if skipped.contains(&name.as_str()) {
        return Ok(());
    }
    if path.is_file() {
        files.push(path.to_owned());
        return Ok(());
    }
    let entries = fs::read_dir(path).with_context(|| format!("list {}", path.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("list {}", path.display()))?;
        collect(&entry.path(), skipped, files)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_hash_is_sha256_in_hexadecimal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "abc").unwrap();
        assert_eq!(
            file_hash(&path).unwrap(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn tree_hash_changes_with_content_and_ignores_skipped_folders() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_owned();
        fs::create_dir_all(root.join("dist")).unwrap();
        fs::write(root.join("a"), "1").unwrap();
        let before = tree_hash(std::slice::from_ref(&root), &["dist"]).unwrap();
        fs::write(root.join("dist/b"), "2").unwrap();
        assert_eq!(
            tree_hash(std::slice::from_ref(&root), &["dist"]).unwrap(),
            before
        );
        fs::write(root.join("a"), "2").unwrap();
        assert_ne!(tree_hash(&[root], &["dist"]).unwrap(), before);
    }

    #[test]
    fn a_stamp_of_another_version_is_stale() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stamp");
        let stamp = Stamp::new(path.clone(), "1", "00");
        assert!(!stamp.is_fresh());
        stamp.write().unwrap();
        assert!(stamp.is_fresh());
        assert!(!Stamp::new(path, "2", "00").is_fresh());
    }
}
