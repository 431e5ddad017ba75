//! Where the code of programs lies in their files, by build-id.
//!
//! A profile keeps file offsets. To look one up in a debug file, which has addresses only, one
//! must know how the program's file was mapped; the debug file has forgotten that. So it is noted
//! when the program runs, in a text file of one line for each build-id:
//!
//! ```text
//! 0a1b2c.. 1000:1000:2f31 <- offset:address:bytes of each executable segment, in hexadecimal
//! 4d5e6f.. -              <- two programs claim this build-id and differ: nothing is believed
//! ```

use std::{
    collections::{HashMap, VecDeque},
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use profiler_image::{build_id, elf_layout::Segment};
use profiler_sandbox::broker;

/// Programs that are noted. When there are more, the older half is forgotten.
const ENTRIES_LIMIT: usize = 20_000;
/// Segments of one program; linkers make one or two.
const SEGMENTS_LIMIT: usize = 16;
/// Bytes of the file that are read.
const FILE_LIMIT: u64 = 16 << 20;

#[derive(Debug)]
pub(super) struct SegmentBook {
    path: Option<PathBuf>,
    /// `None` for build-ids of programs that differ.
    entries: HashMap<Vec<u8>, Option<Vec<Segment>>>,
    /// Build-ids, the one that was noted first in front.
    order: VecDeque<Vec<u8>>,
    limit: usize,
}

impl SegmentBook {
    /// Reads what earlier runs have noted; without a path it is kept in memory.
    pub(super) fn open(path: Option<PathBuf>) -> Self {
        let mut book = Self {
            path,
            entries: HashMap::new(),
            order: VecDeque::new(),
            limit: ENTRIES_LIMIT,
        };
        let noted = book.path.as_deref().map(read).unwrap_or_default();
        for (build_id, entry) in noted {
            book.insert(build_id, entry);
        }
        book
    }

    pub(super) fn get(&self, build_id: &[u8]) -> Option<Vec<Segment>> {
        self.entries.get(build_id)?.clone()
    }

    pub(super) fn add(&mut self, build_id: &[u8], segments: &[Segment]) {
        if segments.is_empty() || segments.len() > SEGMENTS_LIMIT {
            return;
        }
        let entry = match self.entries.get(build_id) {
            Some(None) => return,
            Some(Some(known)) if known == segments => return,
            Some(Some(_)) => None,
            None => Some(segments.to_vec()),
        };
        if let Some(path) = &self.path
            && let Err(error) = broker::append(path, line(build_id, entry.as_deref()))
        {
            tracing::debug!(path = %path.display(), %error, "note where a program's code lies");
        }
        if self.insert(build_id.to_vec(), entry) {
            self.write_anew();
        }
    }

    /// True when others were forgotten for it.
    fn insert(&mut self, build_id: Vec<u8>, entry: Option<Vec<Segment>>) -> bool {
        if self.entries.insert(build_id.clone(), entry).is_none() {
            self.order.push_back(build_id);
        }
        if self.order.len() <= self.limit {
            return false;
        }
        for forgotten in self.order.drain(..self.limit / 2) {
            self.entries.remove(&forgotten);
        }
        true
    }

    /// Replaces the file by one with what is still known.
    fn write_anew(&self) {
        let Some(path) = &self.path else {
            return;
        };
        let lines = self.order.iter().filter_map(|build_id| {
            let entry = self.entries.get(build_id)?;
            Some(line(build_id, entry.as_deref()))
        });
        let text: String = lines.collect();
        if let Err(error) = broker::replace(path, text) {
            tracing::debug!(path = %path.display(), %error, "forget older programs");
        }
    }
}

fn line(build_id: &[u8], segments: Option<&[Segment]>) -> String {
    let text = match segments {
        None => "-".to_owned(),
        Some(segments) => segments
            .iter()
            .map(|segment| {
                format!(
                    "{:x}:{:x}:{:x}",
                    segment.offset, segment.address, segment.bytes
                )
            })
            .collect::<Vec<_>>()
            .join(","),
    };
    format!("{} {text}\n", build_id::hexadecimal(build_id))
}

/// Later lines replace earlier ones. A line that was cut by a crash is skipped.
fn read(path: &Path) -> Vec<(Vec<u8>, Option<Vec<Segment>>)> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(FILE_LIMIT).read_to_string(&mut text));
    if read.is_err() {
        return Vec::new();
    }
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<(Vec<u8>, Option<Vec<Segment>>)> {
    let (id, segments) = line.split_once(' ')?;
    let id = build_id::parse(id)?;
    if segments == "-" {
        return Some((id, None));
    }
    let segments: Option<Vec<Segment>> = segments.split(',').map(parse_segment).collect();
    Some((id, Some(segments?)))
}

fn parse_segment(text: &str) -> Option<Segment> {
    let mut numbers = text
        .splitn(3, ':')
        .map(|number| u64::from_str_radix(number, 16).ok());
    let (offset, address, bytes) = (numbers.next()??, numbers.next()??, numbers.next()??);
    // As for segments of a file: later sums must not overflow.
    offset.checked_add(bytes)?;
    address.checked_add(bytes)?;
    Some(Segment {
        offset,
        address,
        bytes,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn segment(offset: u64) -> Segment {
        Segment {
            offset,
            address: offset + 0x1000,
            bytes: 0x2000,
        }
    }

    #[test]
    fn what_was_noted_is_known_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("symbols/segments");
        let mut book = SegmentBook::open(Some(path.clone()));
        book.add(&[1, 2, 3], &[segment(0x1000), segment(0x9000)]);
        book.add(&[4, 5], &[segment(0)]);
        book.add(&[6, 7], &[]);
        fs::write(
            &path,
            fs::read_to_string(&path).unwrap() + "xyz 1\n0809 1:2\n0a0b 1:2:3:4\n0c0d 1000:2000",
        )
        .unwrap();
        let book = SegmentBook::open(Some(path));
        assert_eq!(
            book.get(&[1, 2, 3]),
            Some(vec![segment(0x1000), segment(0x9000)])
        );
        assert_eq!(book.get(&[4, 5]), Some(vec![segment(0)]));
        for absent in [[6, 7], [8, 9], [10, 11], [12, 13]] {
            assert_eq!(book.get(&absent), None, "{absent:?}");
        }
    }

    #[test]
    fn the_older_half_makes_room() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("segments");
        let mut book = SegmentBook::open(Some(path.clone()));
        book.limit = 8;
        for number in 0..9 {
            book.add(&[7, number], &[segment(0x1000)]);
        }
        let known = |book: &SegmentBook| -> Vec<u8> {
            (0..9)
                .filter(|number| book.get(&[7, *number]).is_some())
                .collect()
        };
        assert_eq!(known(&book), [4, 5, 6, 7, 8]);
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 5);
        assert_eq!(known(&SegmentBook::open(Some(path))), [4, 5, 6, 7, 8]);
    }

    #[test]
    fn programs_that_claim_one_build_id_and_differ_are_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("segments");
        let mut book = SegmentBook::open(Some(path.clone()));
        book.add(&[1, 2], &[segment(0x1000)]);
        book.add(&[1, 2], &[segment(0x1000)]);
        assert!(book.get(&[1, 2]).is_some());
        book.add(&[1, 2], &[segment(0x2000)]);
        assert_eq!(book.get(&[1, 2]), None);
        book.add(&[1, 2], &[segment(0x1000)]);
        assert_eq!(SegmentBook::open(Some(path)).get(&[1, 2]), None);
    }
}
