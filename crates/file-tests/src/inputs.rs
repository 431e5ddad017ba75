//! Files to damage, and how.

use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
};

use lzma_rust2::{XzOptions, XzWriter};
use object::{Object as _, ObjectSection as _};

use crate::payload;

/// Recorded connections.
const FIXTURES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/fixtures/protocols"
);
/// Stacks with all endings that are known.
const FOLDED: &str = "app;main;work_[i];tcp_sendmsg_[k] 12\napp;main;jit_[j] 3\n\
    app;main;guess_[inferred];[stack lost] 4\r\nother;[unknown];a b 7\n";

/// A generator of numbers (xorshift64*).
pub(crate) struct Numbers(u64);

impl Numbers {
    /// The generator of one input.
    pub(crate) fn of(input: u64) -> Self {
        let mut numbers = Self(input.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        numbers.next();
        numbers
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit.max(1)).expect("64 bits");
        usize::try_from(self.next() % limit).expect("below a usize")
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.next().to_be_bytes()[0]
    }
}

/// A sound file.
pub(crate) struct Original {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    /// Parts that are read, small ones as often as large ones.
    places: Vec<(usize, usize)>,
}

/// A value that readers like least.
fn nasty(numbers: &mut Numbers) -> u64 {
    match numbers.below(7) {
        0 => 0,
        1 => u64::MAX,
        2 => 1 << numbers.below(64),
        3 => u64::from(u32::MAX),
        4 => numbers.next() % 256,
        5 => i64::MAX.cast_unsigned(),
        _ => numbers.next(),
    }
}

impl Original {
    pub(crate) fn file(path: &str) -> Self {
        let bytes = fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        Self::of(path, bytes)
    }

    fn of(name: &str, bytes: Vec<u8>) -> Self {
        let length = bytes.len();
        let mut places = vec![(0, length)];
        if let Ok(file) = object::File::parse(&*bytes) {
            // Headers of the file and of its segments; those of sections are at the end.
            places.extend([
                (0, length.min(64)),
                (64, length.min(56 * 12)),
                (length.saturating_sub(2048), length.min(2048)),
            ]);
            for section in file.sections() {
                let Some((start, bytes)) = section.file_range() else {
                    continue;
                };
                let start = usize::try_from(start).expect("an offset");
                let bytes = usize::try_from(bytes).expect("a size");
                if bytes > 0 && start + bytes <= length {
                    places.extend([(start, bytes.min(72)), (start, bytes)]);
                }
            }
        }
        Self {
            name: name.to_owned(),
            bytes,
            places,
        }
    }

    /// The file with some bytes changed, moved, or cut off.
    pub(crate) fn damaged(&self, numbers: &mut Numbers) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        for _ in 0..=numbers.below(5) {
            let (start, length) = self.places[numbers.below(self.places.len())];
            let at = start + numbers.below(length);
            match numbers.below(12) {
                0 => bytes.truncate(at),
                1 => {
                    let from = numbers.below(bytes.len());
                    let count = numbers.below(64).min(bytes.len() - from);
                    if at + count <= bytes.len() {
                        bytes.copy_within(from..from + count, at);
                    }
                }
                _ => {
                    let width = 1 << numbers.below(4);
                    let value = nasty(numbers).to_le_bytes();
                    for (byte, new) in bytes.iter_mut().skip(at).zip(&value[..width]) {
                        *byte = *new;
                    }
                }
            }
            if bytes.is_empty() {
                break;
            }
        }
        bytes
    }
}

const C_PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
static inline int inner(int value) { return value * 3 + atoi("4"); }
struct point { int x; long y[4]; };
__attribute__((noinline)) int middle(struct point *point) { return inner(point->x) + (int)point->y[1]; }
int compare(const void *one, const void *other) { return *(const int *)one - *(const int *)other; }
int main(int count, char **arguments) {
    struct point point = { count, { 1, 2, 3, 4 } };
    int numbers[] = { 3, 1, 2 };
    qsort(numbers, 3, sizeof numbers[0], compare);
    printf("%d %s\n", middle(&point), arguments[0]);
    return 0;
}
"#;

const CLASSES: &str = r#"
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>
namespace shapes {
struct Shape { virtual ~Shape() {} virtual int area() const = 0; virtual std::string name() const { return "shape"; } };
struct Named { virtual ~Named() {} virtual void rename(const std::string &text) { text_ = text; } std::string text_; };
struct Square : Shape, Named { int area() const override { return side * side; } std::string name() const override { return text_; } int side = 2; };
struct Cube : Square { int area() const override { if (side < 0) throw std::runtime_error("source/shapes/cube.cc"); return 6 * Square::area(); } };
struct Diamond : virtual Shape { int area() const override { return 7; } };
struct Both : Cube { void rename(const std::string &text) override { text_ = text + "!"; } };
}
int main(int count, char **arguments) {
    std::vector<std::function<int(int)>> functions;
    for (int each = 0; each < count; each++) functions.push_back([each](int value) { return value + each; });
    shapes::Both both; shapes::Diamond diamond; shapes::Shape *all[] = { &both, &diamond };
    both.rename(arguments[0]);
    int sum = 0;
    for (auto *shape : all) sum += shape->area() + (int)shape->name().size();
    for (auto &function : functions) sum += function(sum);
    return sum;
}
"#;

/// A program with DWARF and a link to a debug file.
pub(crate) fn with_debug_information() -> Original {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "gcc", "c", C_PROGRAM, &["-g", "-O1"]);
    objcopy(
        &program,
        &format!("--add-gnu-debuglink={}", program.display()),
    );
    Original::of("a program with DWARF", fs::read(&program).expect("it"))
}

/// A stripped program whose symbols are compressed in `.gnu_debugdata`.
pub(crate) fn with_debug_data() -> Original {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "gcc", "c", C_PROGRAM, &["-O1"]);
    let symbols = fs::read(&program).expect("it");
    let mut writer = XzWriter::new(Vec::new(), XzOptions::with_preset(0)).expect("an encoder");
    writer.write_all(&symbols).expect("compress");
    let section = folder.path().join("debugdata");
    fs::write(&section, writer.finish().expect("compress")).expect("write");
    objcopy(&program, "--strip-all");
    objcopy(
        &program,
        &format!("--add-section=.gnu_debugdata={}", section.display()),
    );
    Original::of("a stripped program", fs::read(&program).expect("it"))
}

/// A stripped C++ program with classes.
pub(crate) fn with_classes() -> Original {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "g++", "cc", CLASSES, &["-Os", "-s"]);
    Original::of("a C++ program", fs::read(&program).expect("it"))
}

/// A program whose code is followed because nothing describes it.
pub(crate) fn musl_program() -> Original {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "musl-gcc", "c", C_PROGRAM, &["-static"]);
    Original::of("a musl program", fs::read(&program).expect("it"))
}

/// An answer of a name server, with an alias and many addresses.
pub(crate) fn name_answer() -> Original {
    let mut bytes = vec![7, 7, 0x81, 0x80, 0, 1, 0, 31, 0, 0, 0, 0];
    bytes.extend(b"\x07service\x07example\x00\x00\x01\x00\x01");
    bytes.extend(b"\xc0\x0c\x00\x05\x00\x01\x00\x00\x00\x3c\x00\x08\x05alias\xc0\x14");
    for host in 0..30 {
        bytes.extend(b"\xc0\x2d\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04");
        bytes.extend([192, 0, 2, host]);
    }
    Original::of("an answer of a name server", bytes)
}

/// A profile as this program exports it, unpacked.
pub(crate) fn pprof() -> Original {
    let imported =
        profiler_analysis::import::read(FOLDED.as_bytes(), "file", 0, None).expect("a profile");
    let format = profiler_analysis::render::Format::Pprof;
    let packed =
        profiler_analysis::render::render(&imported.profile, format, "title").expect("an export");
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(
        &mut flate2::read::GzDecoder::new(packed.as_slice()),
        &mut bytes,
    )
    .expect("gzip");
    Original::of("a pprof file", bytes)
}

/// Recorded connections of a protocol, with how they are cut into pieces.
pub(crate) fn transcript(protocol: &str) -> Original {
    let path = format!("{FIXTURES}/{protocol}.txt");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    Original::of(&path, payload::input(&text))
}

pub(crate) fn folded() -> Original {
    Original::of("folded stacks", FOLDED.as_bytes().to_vec())
}

pub(crate) fn perf_map() -> Original {
    let mut text = String::new();
    for entry in 0..2000_u64 {
        let start = 0x7f00_0000_0000 + entry * 0x40;
        writeln!(text, "{start:x} 40 LazyCompile:~f{entry} /app/x.js:{entry}").unwrap();
    }
    Original::of("a perf-map", text.into_bytes())
}

/// A conversation that was recorded from real peers: how many bytes the client said, these, and those of
/// the server. The file holds one record for each read: the direction, the length in four bytes, the bytes.
pub(crate) fn conversation(name: &str) -> Original {
    let file = fs::read(format!("{FIXTURES}/{name}.bin")).expect("a fixture");
    let (mut client, mut server) = (Vec::new(), Vec::new());
    let mut rest = file.as_slice();
    while let [side, behind @ ..] = rest {
        let (length, behind) = behind.split_first_chunk().expect("a length");
        let length = usize::try_from(u32::from_be_bytes(*length)).expect("a size");
        let (bytes, behind) = behind.split_at(length);
        let speaker = if *side == 0 { &mut client } else { &mut server };
        speaker.extend_from_slice(bytes);
        rest = behind;
    }
    let length = u16::try_from(client.len()).expect("a short conversation");
    let bytes = [&length.to_be_bytes()[..], &client, &server].concat();
    Original::of(name, bytes)
}

fn compile(
    folder: &Path,
    compiler: &str,
    suffix: &str,
    text: &str,
    flags: &[&str],
) -> std::path::PathBuf {
    let source = folder.join(format!("source.{suffix}"));
    fs::write(&source, text).expect("write");
    let program = folder.join("program");
    let mut command = Command::new(compiler);
    command.args(flags).arg("-o").args([&program, &source]);
    run(&mut command);
    program
}

fn objcopy(program: &Path, change: &str) {
    run(Command::new("objcopy").arg(change).arg(program));
}

fn run(command: &mut Command) {
    let status = command.stdin(Stdio::null()).status();
    let status = status.unwrap_or_else(|error| {
        panic!("{command:?}: {error} (Debian packages: g++, musl-tools, binutils)")
    });
    assert!(status.success(), "{command:?}: {status}");
}
