//! Small programs that unit tests compile, run and look into. For tests alone: no crate depends on it otherwise.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test whose program does not come up has failed"
)]

use std::{
    collections::HashMap,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use profiler_model::ProcessKey;
use tempfile::TempDir;

/// Prints addresses by name, says `ready`, and waits until its standard input is closed.
pub const PROGRAM: &str = r#"
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

volatile int sink;

__attribute__((noinline, used)) int cpp(int x) __asm__("_ZN5shape4areaEii");
int cpp(int x) { sink += x; return sink; }
__attribute__((noinline, used)) int rust(int x) __asm__("_RNvCs1234_7mycrate3foo");
int rust(int x) { sink -= x; return sink; }

static inline __attribute__((always_inline)) int inlined(int x) {
    __asm__ volatile(".globl inlined_mark\ninlined_mark: nop"); /* line 14 */
    return x + 1;
}
__attribute__((noinline, used)) int outer(int x) {
    sink = x;
    return inlined(sink) + sink; /* line 19 */
}
__attribute__((noinline, used)) int exported(int x) { sink = x; return x; }
__attribute__((noinline, used, visibility("hidden"))) int hidden(int x) { sink = x + 2; return x; }

/* A function without a size: it must not be named, nor take the name of its neighbour. */
__asm__(".text\n.globl bare\n.type bare, @function\nbare: nop\nnop\nret\n.zero 64, 0x90\n");
/* Neither has this one, but the unwind table says where it ends. */
__asm__(".globl framed\n.type framed, @function\nframed: .cfi_startproc\nnop\nnop\nret\n.cfi_endproc\n"
        ".zero 64, 0x90\n");
extern char bare[], framed[], inlined_mark[];

/* Class tables as a C++ compiler lays them out, with those of the C++ runtime: shape::Square has
   `tabled` in slot 1. */
__attribute__((noinline, used, visibility("hidden"))) int tabled(int x) { sink = x * 3; return x; }
static const char kind_name[] = "N10__cxxabiv117__class_type_infoE";
static const void *const kind_table[3];
static const void *const kind_info[] = {&kind_table[2], kind_name};
__attribute__((used)) static const void *const kind_table[3] = {0, kind_info, 0};
static const void *const square_info[] = {&kind_table[2], "N5shape6SquareE"};
__attribute__((used)) static const void *const square_table[] = {0, square_info, exported, tabled};

int main(void) {
    void *jit = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cpp(1); rust(1); outer(1); exported(1); hidden(1);
    printf("cpp %p\nrust %p\ninlined %p\nouter %p\nexported %p\nhidden %p\nbare %p\njit %p\n",
           cpp, rust, inlined_mark, outer, exported, hidden, bare, jit);
    tabled(1);
    printf("framed %p\nmain %p\ntabled %p\nready 0\n", framed, main, tabled);
    fflush(stdout);
    return getchar() == EOF ? 0 : 1;
}
"#;

/// Compiles [`PROGRAM`] with gcc.
pub fn compile(dir: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let source = dir.join(format!("{name}.c"));
    std::fs::write(&source, PROGRAM).unwrap();
    let output = dir.join(name);
    let done = Command::new("gcc")
        .args(["-O1", "-fno-omit-frame-pointer"])
        .args(flags)
        .arg("-o")
        .args([&output, &source])
        .output()
        .expect("these tests need gcc: apt-get install gcc libc6-dev");
    assert!(
        done.status.success(),
        "gcc: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    output
}

/// Runs a tool of binutils; file names are below `dir`.
pub fn tool(dir: &Path, name: &str, arguments: &[&str]) {
    let done = Command::new(name)
        .args(arguments)
        .current_dir(dir)
        .output()
        .expect("these tests need binutils: apt-get install binutils");
    assert!(
        done.status.success(),
        "{name} {arguments:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
}

/// Compiles [`PROGRAM`] with debug information, and strips it into another file:
/// `program.full`, `program.debug` and `program`.
pub fn compile_stripped(dir: &Path, flags: &[&str]) -> PathBuf {
    let program = compile(dir, "program", &[&["-g"], flags].concat());
    std::fs::rename(&program, dir.join("program.full")).unwrap();
    tool(
        dir,
        "objcopy",
        &["--only-keep-debug", "program.full", "program.debug"],
    );
    tool(dir, "objcopy", &["--strip-all", "program.full", "program"]);
    program
}

/// A running [`PROGRAM`]; killed when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    pub key: ProcessKey,
    addresses: HashMap<String, u64>,
    pub path: PathBuf,
    pub dir: TempDir,
}

impl Running {
    pub fn start(flags: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = compile(dir.path(), "program", flags);
        Self::run(dir, path)
    }

    /// Runs a program in the folder that is kept with it.
    pub fn of(dir: TempDir, path: PathBuf) -> Self {
        Self::run(dir, path)
    }

    /// Runs a program that is compiled already.
    pub fn again(path: PathBuf) -> Self {
        Self::run(tempfile::tempdir().unwrap(), path)
    }

    fn run(dir: TempDir, path: PathBuf) -> Self {
        let mut command = Command::new(&path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = loop {
            match command.spawn() {
                // A process that another test starts holds it open for writing until it runs its program.
                Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
                started => break started.unwrap(),
            }
        };
        let mut addresses = HashMap::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            let (name, address) = line.split_once(' ').unwrap();
            if name == "ready" {
                break;
            }
            let address = u64::from_str_radix(address.trim_start_matches("0x"), 16).unwrap();
            addresses.insert(name.to_owned(), address);
        }
        let pid = child.id();
        let key = ProcessKey {
            pid,
            start_ticks: procfs::process::Process::new(pid.cast_signed())
                .and_then(|process| process.stat())
                .unwrap()
                .starttime,
        };
        Self {
            child,
            key,
            addresses,
            path,
            dir,
        }
    }

    pub fn address(&self, name: &str) -> u64 {
        self.addresses[name]
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_program_says_where_its_functions_are() {
        let program = Running::start(&[]);
        assert!(program.key.pid > 0 && program.key.start_ticks > 0);
        assert!(program.address("outer") > 0);
    }
}
