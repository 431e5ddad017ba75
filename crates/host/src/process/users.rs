//! Names of user ids, from the agent's own `/etc/passwd`.

use std::{collections::HashMap, path::PathBuf, time::SystemTime};

use profiler_image::proc_dir;

/// Largest passwd file that is read; what lies beyond has no names.
const PASSWD_LIMIT: usize = 1 << 20;
/// Longest name that is kept.
const NAME_LIMIT: usize = 64;

/// Uid to name, read again when the file changes.
#[derive(Debug)]
pub(super) struct Users {
    path: PathBuf,
    names: HashMap<u32, String>,
    modified: Option<SystemTime>,
}

impl Default for Users {
    fn default() -> Self {
        Self::new(PathBuf::from("/etc/passwd"))
    }
}

impl Users {
    /// Reads the file at once: a process may be asked for before the first look around.
    pub(super) fn new(path: PathBuf) -> Self {
        let mut users = Self {
            path,
            names: HashMap::new(),
            modified: None,
        };
        users.reload_if_changed();
        users
    }

    pub(super) fn reload_if_changed(&mut self) {
        let modified = std::fs::metadata(&self.path)
            .and_then(|meta| meta.modified())
            .ok();
        if modified == self.modified {
            return;
        }
        self.modified = modified;
        let bytes = self
            .path
            .to_str()
            .map(|path| proc_dir::read_path(path, PASSWD_LIMIT));
        self.names = bytes
            .and_then(Result::ok)
            .map(|bytes| parse(&bytes))
            .unwrap_or_default();
    }

    pub(super) fn name(&self, uid: u32) -> Option<String> {
        self.names.get(&uid).cloned()
    }
}

fn parse(bytes: &[u8]) -> HashMap<u32, String> {
    let mut names = HashMap::new();
    for line in String::from_utf8_lossy(bytes).lines() {
        let mut fields = line.split(':');
        let (Some(name), Some(uid)) = (fields.next(), fields.nth(1)) else {
            continue;
        };
        let Ok(uid) = uid.parse() else { continue };
        if !name.is_empty() && name.len() <= NAME_LIMIT {
            // The first entry of an id counts, as in getpwuid(3).
            names.entry(uid).or_insert_with(|| name.to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_entry_of_an_id_counts_and_broken_lines_are_skipped() {
        let text = b"root:x:0:0:root:/root:/bin/sh\ntoor:x:0:0::/:\nbad\n:x:5:\nweb:x:33:33\n\
            n:x:-1:\n\xff\xfe:x:7:\n";
        let names = parse(text);
        assert_eq!(names.get(&0).map(String::as_str), Some("root"));
        assert_eq!(names.get(&33).map(String::as_str), Some("web"));
        assert_eq!(names.get(&5), None);
        assert_eq!(names.len(), 3);
    }

    #[test]
    fn a_changed_file_is_read_again_and_a_missing_one_has_no_names() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("passwd");
        let mut users = Users::new(path.clone());
        users.reload_if_changed();
        assert_eq!(users.name(1), None);
        std::fs::write(&path, "one:x:1:1::/:\n").unwrap();
        users.reload_if_changed();
        assert_eq!(users.name(1).as_deref(), Some("one"));
        std::fs::remove_file(&path).unwrap();
        users.reload_if_changed();
        assert_eq!(users.name(1), None);
    }
}
