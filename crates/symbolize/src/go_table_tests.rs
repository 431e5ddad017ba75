//! A small table made by hand, in both formats. Real ones are in the test step `names`.

use std::io::Write as _;

use profiler_image::{
    elf_layout::Section,
    go_header::{MAGIC_1_18, MAGIC_1_20},
};

use super::*;

const TEXT_AT: u64 = 0x40_1000;
const TABLE_AT: u64 = 0x50_0000;
const MODULE_AT: u64 = 0x60_0000;
const TREES_AT: u64 = 0x70_0000;

#[derive(Clone, Copy, PartialEq)]
enum Version {
    Go18,
    Go20,
}

/// A file whose sections follow each other.
#[derive(Default)]
struct Image {
    bytes: Vec<u8>,
    sections: Vec<Option<Section>>,
}

impl Image {
    fn add(&mut self, name: &str, address: u64, content: &[u8]) {
        self.sections.push(Some(Section {
            name: name.into(),
            address,
            offset: self.bytes.len() as u64,
            bytes: content.len() as u64,
            compressed: false,
            link: 0,
        }));
        self.bytes.extend_from_slice(content);
        self.bytes.resize(self.bytes.len().next_multiple_of(16), 0);
    }

    fn read(self) -> Option<GoTable> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&self.bytes).unwrap();
        let layout = Layout {
            wide: true,
            segments: vec![Segment {
                offset: 0x1000,
                address: TEXT_AT,
                bytes: 0x1000,
            }],
            sections: self.sections,
            ..Layout::default()
        };
        GoTable::read(&file, &layout, &std::hash::RandomState::new())
    }
}

/// Two functions: `main.one` at 0 to 0x40, into which `strings.Two` is inlined from 0x10 to 0x20,
/// and `main.last` from 0x40 to 0x50. `fields` are the header's words, `records` follow the index.
fn table(version: Version) -> Vec<u8> {
    let names = b"main.one\0strings.Two\0main.last\0";
    let units: Vec<u8> = [0u32, 10].into_iter().flat_map(u32::to_le_bytes).collect();
    let files = b"/a/one.go\0/b/two.go\0";
    // Tables begin at 1; each is "value, steps" pairs as the linker writes them.
    let mut values = vec![0u8];
    let mut add = |pairs: &[(i32, u32)]| {
        let at = u32::try_from(values.len()).unwrap();
        let mut last = -1;
        for (value, step) in pairs {
            let change = value - last;
            last = *value;
            let zigzag = u32::try_from(if change < 0 {
                !(change << 1)
            } else {
                change << 1
            })
            .unwrap();
            for mut number in [zigzag, *step] {
                while number >= 0x80 {
                    values.push(u8::try_from(number & 0x7f).unwrap() | 0x80);
                    number >>= 7;
                }
                values.push(u8::try_from(number).unwrap());
            }
        }
        values.push(0);
        at
    };
    let file = add(&[(0, 0x10), (1, 0x10), (0, 0x20)]);
    let line = add(&[(7, 0x10), (300, 0x10), (8, 0x20)]);
    let call = add(&[(-1, 0x10), (0, 0x10), (-1, 0x20)]);
    let (last_file, last_line) = (add(&[(0, 0x10)]), add(&[(20, 0x10)]));

    let record = |entry: u32, name: u32, file, line, tables: &[u32], others: &[u32]| {
        let mut words = vec![
            entry,
            name,
            0,
            0,
            0,
            file,
            line,
            u32::try_from(tables.len()).unwrap(),
            0,
        ];
        if version == Version::Go20 {
            words.push(1);
        }
        let mut bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        bytes.extend([0, 0, 0, u8::try_from(others.len()).unwrap()]);
        bytes.extend(
            tables
                .iter()
                .chain(others)
                .flat_map(|word| word.to_le_bytes()),
        );
        bytes
    };
    let one = record(
        0,
        0,
        file,
        line,
        &[0, 0, call],
        &[u32::MAX, u32::MAX, u32::MAX, 0],
    );
    let last = record(0x40, 21, last_file, last_line, &[], &[]);
    let index_bytes = 2 * 8 + 4;
    let second = index_bytes + u32::try_from(one.len()).unwrap();
    let index: Vec<u8> = [0, index_bytes, 0x40, second, 0x50]
        .into_iter()
        .flat_map(u32::to_le_bytes)
        .collect();

    let parts: [&[u8]; 4] = [names, &units, files, &values];
    let mut starts = vec![72u64];
    for part in parts {
        starts.push(starts.last().unwrap() + part.len() as u64);
    }
    let magic = match version {
        Version::Go18 => MAGIC_1_18,
        Version::Go20 => MAGIC_1_20,
    };
    let mut bytes = magic.to_le_bytes().to_vec();
    bytes.extend([0, 0, 1, 8]);
    for word in [2, 2, 0].into_iter().chain(starts) {
        bytes.extend(u64::to_le_bytes(word));
    }
    for part in parts {
        bytes.extend_from_slice(part);
    }
    [bytes, index, one, last].concat()
}

fn module(version: Version) -> Vec<u8> {
    let mut words = [0u64; MODULE_WORDS];
    words[0] = TABLE_AT;
    words[1] = TABLE_AT + 72;
    words[MODULE_TEXT_WORD] = TEXT_AT;
    words[match version {
        Version::Go18 => FORMAT_1_18.trees_word,
        Version::Go20 => FORMAT_1_20.trees_word,
    }] = TREES_AT;
    let before = [0u64; 5];
    before
        .into_iter()
        .chain(words)
        .flat_map(u64::to_le_bytes)
        .collect()
}

/// One call: `strings.Two`, called at 0x0f.
fn trees(version: Version) -> Vec<u8> {
    let words: &[u32] = match version {
        Version::Go18 => &[0xffff, 0, 0, 9, 0x0f],
        Version::Go20 => &[0, 9, 0x0f, 1],
    };
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn image(version: Version, table: &[u8]) -> Image {
    let mut image = Image::default();
    image.add(".gopclntab", TABLE_AT, table);
    image.add(".noptrdata", MODULE_AT, &module(version));
    image.add(".rodata", TREES_AT, &trees(version));
    image
}

/// Function, file and line of each, the innermost first.
fn shown(table: &GoTable, offset: u64) -> Vec<String> {
    let names = table.names(TEXT_AT + offset);
    let show =
        |function: &NamedFunction| format!("{} {}:{}", function.name, function.file, function.line);
    names.map_or_else(Vec::new, |names| {
        assert_eq!(names.source, NameSource::GoTable);
        names.functions.iter().map(show).collect()
    })
}

#[test]
fn functions_have_names_files_lines_and_inlined_calls() {
    for version in [Version::Go18, Version::Go20] {
        let table = image(version, &table(version)).read().unwrap();
        for (offset, expected) in [
            (0, vec!["main.one /a/one.go:7"]),
            (0x0f, vec!["main.one /a/one.go:7"]),
            (
                0x10,
                vec!["strings.Two /b/two.go:300", "main.one /a/one.go:7"],
            ),
            (
                0x1f,
                vec!["strings.Two /b/two.go:300", "main.one /a/one.go:7"],
            ),
            (0x20, vec!["main.one /a/one.go:8"]),
            (0x3f, vec!["main.one /a/one.go:8"]),
            (0x40, vec!["main.last /a/one.go:20"]),
            (0x4f, vec!["main.last /a/one.go:20"]),
            (0x50, vec![]),
            (u64::MAX - TEXT_AT, vec![]),
        ] {
            assert_eq!(shown(&table, offset), expected, "{offset:#x}");
        }
        assert!(table.names(0).is_none());
    }
}

#[test]
fn without_module_data_the_headers_own_start_is_used_or_nothing() {
    let mut bytes = table(Version::Go20);
    let mut image = Image::default();
    image.add(".gopclntab", TABLE_AT, &bytes);
    assert!(image.read().is_none(), "where the code begins is not known");
    bytes[24..32].copy_from_slice(&TEXT_AT.to_le_bytes());
    let mut image = Image::default();
    image.add(".gopclntab", TABLE_AT, &bytes);
    let table = image.read().unwrap();
    // Without the trees the inlined functions are not known.
    assert_eq!(shown(&table, 0x10), ["main.one /b/two.go:300"]);
}

#[test]
fn damaged_tables_neither_panic_nor_take_long() {
    let began = std::time::Instant::now();
    for version in [Version::Go18, Version::Go20] {
        let sound = table(version);
        for at in 0..sound.len() {
            for value in [0x00, 0x7f, 0x80, 0xff] {
                let mut bytes = sound.clone();
                bytes[at] = value;
                if let Some(table) = image(version, &bytes).read() {
                    for offset in [0, 0x10, 0x3f, 0x40, 0x4f, 0x50] {
                        drop(table.names(TEXT_AT + offset));
                    }
                }
            }
            drop(image(version, &sound[..at]).read());
        }
    }
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
}
