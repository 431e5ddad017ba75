//! Texts of a program that are paths of source files.

use super::memory::Memory;

/// Paths that are kept. Envoy has 1,600.
const PATHS_LIMIT: usize = 200_000;
/// Longest and shortest path.
const LENGTH: std::ops::RangeInclusive<usize> = 5..=512;

const SOURCES: [&str; 7] = [".cc", ".c", ".cpp", ".cxx", ".c++", ".C", ".cu"];
const HEADERS: [&str; 7] = [".h", ".hh", ".hpp", ".hxx", ".h++", ".inc", ".ipp"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    Source,
    Header,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SourcePath {
    pub(super) address: u64,
    kind: FileKind,
}

/// All texts that are paths of source files, in order of their addresses.
#[derive(Debug, Default)]
pub(super) struct Paths {
    pub(super) all: Vec<SourcePath>,
}

impl Paths {
    pub(super) fn kind(&self, path: u32) -> FileKind {
        let path = self.all.get(path as usize);
        path.map_or(FileKind::Header, |path| path.kind)
    }

    pub(super) fn text<'memory>(&self, memory: &'memory Memory, path: u32) -> &'memory str {
        let address = self.all.get(path as usize).map(|path| path.address);
        address
            .and_then(|address| memory.text(address, *LENGTH.end()))
            .unwrap_or_default()
    }
}

/// Looks for them in all data of the file.
pub(super) fn find(memory: &Memory) -> Paths {
    let mut all = Vec::new();
    for region in &memory.regions {
        let bytes = region.bytes.as_slice();
        let mut start = 0;
        for (end, byte) in bytes.iter().enumerate() {
            if *byte != 0 {
                continue;
            }
            if let Some(kind) = kind_of(&bytes[start..end])
                && all.len() < PATHS_LIMIT
            {
                all.push(SourcePath {
                    address: region.address.wrapping_add(start as u64),
                    kind,
                });
            }
            start = end + 1;
        }
    }
    Paths { all }
}

/// Says what a text is the path of. A name without a folder may be any text, so it does not count.
fn kind_of(text: &[u8]) -> Option<FileKind> {
    if !LENGTH.contains(&text.len()) {
        return None;
    }
    let dot = text.iter().rev().take(5).position(|byte| *byte == b'.')?;
    let ending = &text[text.len() - 1 - dot..];
    let is = |endings: &[&str]| endings.iter().any(|known| known.as_bytes() == ending);
    let kind = if is(&SOURCES) {
        FileKind::Source
    } else if is(&HEADERS) {
        FileKind::Header
    } else {
        return None;
    };
    let is_path = text.contains(&b'/')
        && text
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"/._-+@~".contains(byte));
    is_path.then_some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_source_files_are_told_from_other_text() {
        for (text, expected) in [
            ("source/common/http/utility.cc", Some(FileKind::Source)),
            ("./src/main.cpp", Some(FileKind::Source)),
            ("/usr/src/a.c", Some(FileKind::Source)),
            ("external/grpc+/src/core/call.h", Some(FileKind::Header)),
            ("utility.cc", None),
            ("/.c", None),
            ("envoy/config/core.proto", None),
            ("see source/common/http/utility.cc", None),
            ("a/b.cc: %s", None),
            ("a/b.cc\n", None),
            ("", None),
        ] {
            assert_eq!(kind_of(text.as_bytes()), expected, "{text}");
        }
        let long = format!("{}/b.cc", "a".repeat(600));
        assert_eq!(kind_of(long.as_bytes()), None);
    }
}
