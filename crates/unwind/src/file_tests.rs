//! Tests of files: what is refused, and that both ways to find descriptions lead to the same rows.

use std::{fs, io::Write as _, os::unix::fs::FileExt as _};

use profiler_image::maps::{Backing, read_mappings};

use super::*;

/// The C library that this test runs with.
fn libc() -> Vec<u8> {
    let maps = File::open("/proc/self/maps").unwrap();
    let paths = read_mappings(maps)
        .unwrap()
        .into_iter()
        .filter_map(|mapping| match mapping.backing {
            Backing::File { path, inode: _ } => String::from_utf8(path).ok(),
            Backing::Vdso | Backing::Anonymous { .. } => None,
        });
    let mut paths = paths.filter(|path| path.contains("libc.so") || path.contains("libc-"));
    fs::read(paths.next().expect("a dynamically linked test")).unwrap()
}

fn file_of(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

fn headers(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let count = usize::from(u16::from_le_bytes(bytes[56..58].try_into().unwrap()));
    let first = usize::try_from(u64::from_le_bytes(bytes[32..40].try_into().unwrap())).unwrap();
    (0..count).map(move |nth| first + 56 * nth)
}

#[test]
fn without_a_search_table_the_rows_are_the_same() {
    let mut bytes = libc();
    let with = UnwindFile::open(file_of(&bytes)).unwrap();
    let places: Vec<usize> = headers(&bytes).collect();
    for at in places {
        if bytes[at..at + 4] == 0x6474_e550_u32.to_le_bytes() {
            bytes[at..at + 4].fill(0);
        }
    }
    let without = UnwindFile::open(file_of(&bytes)).unwrap();
    assert_eq!(
        (with.method(), without.method()),
        (Method::Rows, Method::Rows)
    );
    let pages = with.code_pages();
    assert_eq!(pages, without.code_pages());
    let mut rules = RuleTable::default();
    let mut rows = 0;
    for page in pages.into_iter().take(4) {
        let decoded = with.decode_page(page, &mut rules).unwrap();
        rows += decoded.rows.len();
        assert_eq!(decoded, without.decode_page(page, &mut rules).unwrap());
    }
    assert!(rows > 100, "{rows}");
}

#[test]
fn without_any_description_frame_pointers_are_followed() {
    let mut bytes = libc();
    let places: Vec<usize> = headers(&bytes).collect();
    for at in places {
        if bytes[at..at + 4] == 0x6474_e550_u32.to_le_bytes() {
            bytes[at..at + 4].fill(0);
        }
    }
    // No section headers either.
    bytes[60..62].fill(0);
    let file = UnwindFile::open(file_of(&bytes)).unwrap();
    assert_eq!(file.method(), Method::FramePointers);
}

#[test]
fn other_files_are_refused_with_their_reason() {
    let bytes = libc();
    let mut foreign = bytes.clone();
    foreign[18] = 0xf3;
    let mut narrow = bytes[..4096].to_vec();
    narrow[4] = 1;
    for (bytes, reason) in [
        (&foreign[..], "file for machine 243"),
        (b"#!/bin/sh\n", "read headers"),
        (&bytes[..64], "read headers"),
    ] {
        let error = UnwindFile::open(file_of(bytes)).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
    assert!(UnwindFile::open(file_of(&narrow)).is_err());
}

#[test]
fn a_file_that_changes_has_no_rows_any_more() {
    let file = file_of(&libc());
    let opened = UnwindFile::open(file.try_clone().unwrap()).unwrap();
    let page = opened.code_pages()[0];
    let mut rules = RuleTable::default();
    assert!(opened.decode_page(page, &mut rules).is_ok());
    let size = file.metadata().unwrap().len();
    file.write_all_at(b"more", size).unwrap();
    let error = opened.decode_page(page, &mut rules).unwrap_err();
    assert!(matches!(error, UnwindFileError::Changed), "{error}");
}

#[test]
fn the_bias_is_that_of_the_segment_that_is_shown() {
    let file = UnwindFile::open(file_of(&libc())).unwrap();
    let code = file.segments[0];
    let base = 0x7f12_3456_0000_u64;
    // As the loader maps it: whole pages of memory.
    let offset = code.offset & !0xfff;
    let start = base + (code.address & !0xfff);
    let bias = file.bias(start, code.bytes + 0x1000, offset).unwrap();
    assert_eq!(bias, base);
    assert_eq!(file.bias(start, 0x1000, 1 << 40), None);
}
