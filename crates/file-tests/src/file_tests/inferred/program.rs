//! A C++ program whose right answers are known: deep hierarchies with single, multiple and virtual
//! inheritance, templates, lambdas, and functions that name source files.
//!
//! It is written by rules, so that there is much of it: each class is in one file, each function's
//! name says which file it is from.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::Path,
    process::Command,
    sync::{Mutex, OnceLock},
};

/// Source files; each has one hierarchy of its own.
pub(crate) const FILES: usize = 7;
/// Classes below each other.
const DEPTH: usize = 6;
/// Virtual functions of a class.
const METHODS: usize = 7;

const SHARED_HEADER: &str = r"
#pragma once
#include <array>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <thread>

extern volatile long sink;
void note(const char *file, int line);
#define NOTE() note(__FILE__, __LINE__)

// Laid out and named as in LLVM's standard library, which is not on every machine.
namespace std { inline namespace __1 { namespace __function {
template <class Signature> struct __base;
template <class R, class... A> struct __base<R(A...)> {
  virtual ~__base() {}
  virtual R call(A...) = 0;
};
template <class F, class Alloc, class Signature> struct __func;
template <class F, class Alloc, class R, class... A>
struct __func<F, Alloc, R(A...)> final : __base<R(A...)> {
  explicit __func(F f) : f_(f) {}
  R call(A... a) override { return f_(a...); }
  F f_;
};
}}}
template <class F> __attribute__((noinline)) std::__1::__function::__base<long(long)> *hold(F f) {
  return new std::__1::__function::__func<F, std::allocator<F>, long(long)>(f);
}

// An interface without a table of its own, and functions that several classes inherit from it.
struct Interface {
  virtual ~Interface() = default;
  virtual long required(long x) = 0;
  virtual long optional_one(long x) { sink = sink + x * 3; return sink; }
  virtual long optional_two(long x) { sink = sink - x * 5; return sink; }
};

template <class T> struct Box : Interface {
  T value{};
  long required(long x) override { sink = sink + sizeof(T) + x; return sink; }
  virtual T get(long x) { sink = sink + sizeof(T) * 7 + x; return value; }
};

// Named by its header, inlined into its callers.
__attribute__((noinline)) static long header_function(long x) { NOTE(); return x + sink; }
";

/// Writes the program's files below `folder` and returns the names of those to compile.
fn write(folder: &Path) -> Vec<String> {
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::write(folder.join("src/shared.h"), SHARED_HEADER).unwrap();
    let mut names = Vec::new();
    for file in 0..FILES {
        let name = format!("src/part_{file}.cc");
        fs::write(folder.join(&name), part(file)).unwrap();
        names.push(name);
    }
    let mut main = String::from("#include \"shared.h\"\nvolatile long sink;\n");
    main.push_str(
        "void note(const char *file, int line) { sink = sink + line; if (sink == -1) puts(file); }\n",
    );
    // A table of functions that lies among the tables of classes.
    main.push_str(
        "static long one(long x) { return x + 1; }\nstatic long two(long x) { return x + 2; }\n",
    );
    main.push_str("long (*const plain_table[])(long) = {one, two, one, two};\n");
    for file in 0..FILES {
        writeln!(main, "long run_{file}(long);").unwrap();
    }
    main.push_str("int main(int argc, char **) {\n  long x = plain_table[argc & 3](argc);\n");
    for file in 0..FILES {
        writeln!(main, "  x += run_{file}(x);").unwrap();
    }
    main.push_str("  return x == 42;\n}\n");
    fs::write(folder.join("src/main.cc"), main).unwrap();
    names.push("src/main.cc".to_owned());
    names
}

fn part(file: usize) -> String {
    let mut text = format!("#include \"shared.h\"\nnamespace part{file} {{\n");
    deep(&mut text, file);
    virtual_bases(&mut text, file);
    let out = &mut text;
    // Free functions: the first and last ones name their file, those between do not.
    for index in 0..6 {
        let note = if index % 5 == 0 { "NOTE();" } else { "" };
        writeln!(
            out,
            "__attribute__((noinline)) long free_{index}(long x) {{ {note} sink = sink * {}; return x + sink; }}",
            file * 10 + index + 3
        )
        .unwrap();
    }
    writeln!(
        out,
        "__attribute__((noinline)) long two_files(long x) {{ NOTE(); note(\"src/part_{}.cc\", 1); return x; }}",
        (file + 1) % FILES
    )
    .unwrap();
    writeln!(
        out,
        "struct Secret : Interface {{ long required(long x) override {{ sink = sink ^ (x + {file}); return sink; }} }};"
    )
    .unwrap();
    writeln!(out, "long lambdas(long x) {{").unwrap();
    for index in 0..4 {
        writeln!(
            out,
            "  {{ auto *held = hold([x](long y) {{ sink = sink + x * {} + y; return sink; }}); x += held->call(x); delete held; }}",
            file * 100 + index + 11
        )
        .unwrap();
    }
    writeln!(out, "  return x;\n}}\n}}").unwrap();
    writeln!(
        out,
        "long run_{file}(long x) {{\n  NOTE();\n  using namespace part{file};"
    )
    .unwrap();
    for class in [
        format!("Level{}", DEPTH - 1),
        "Bottom".to_owned(),
        "Box<Bottom>".to_owned(),
        "Box<int>".to_owned(),
        format!("Box<std::array<char, {}>>", file + 1),
        "Secret".to_owned(),
    ] {
        writeln!(
            out,
            "  {{ std::unique_ptr<Interface> p(new {class}()); x += p->required(x) + p->optional_one(x) + p->optional_two(x); }}"
        )
        .unwrap();
    }
    for level in 0..DEPTH {
        writeln!(
            out,
            "  {{ Level{level} *p = new Level{level}(); x += call_all(p, x); delete p; }}"
        )
        .unwrap();
    }
    writeln!(out, "  try {{ std::thread([&] {{ sink = sink + x; }}).join(); }} catch (const std::exception &) {{ x++; }}").unwrap();
    writeln!(
        out,
        "  x += header_function(x) + lambdas(x) + two_files(x);"
    )
    .unwrap();
    for index in 0..6 {
        writeln!(out, "  x += free_{index}(x);").unwrap();
    }
    writeln!(out, "  return x;\n}}").unwrap();
    text
}

/// A chain of classes, each with a second base of its own, each overriding some functions.
fn deep(out: &mut String, file: usize) {
    for level in 0..DEPTH {
        let number = |method: usize| (file * DEPTH + level) * METHODS + method;
        writeln!(out, "struct Mixin{level} {{ virtual ~Mixin{level}(); virtual long mix_{level}(long x); long data = {level}; }};").unwrap();
        writeln!(
            out,
            "Mixin{level}::~Mixin{level}() {{ sink = sink + {}; }}",
            number(0) + 1
        )
        .unwrap();
        writeln!(out, "long Mixin{level}::mix_{level}(long x) {{ NOTE(); sink = sink - {} * x; return sink; }}", number(1) + 5).unwrap();
        let base = match level {
            0 => "Interface".to_owned(),
            _ => format!("Level{}", level - 1),
        };
        writeln!(
            out,
            "struct Level{level} : {base}, Mixin{level} {{\n  ~Level{level}() override;"
        )
        .unwrap();
        // Level 0 declares all, deeper ones override every other.
        let own: Vec<usize> = (0..METHODS)
            .filter(|method| level == 0 || (method + level) % 2 == 0)
            .collect();
        for method in &own {
            writeln!(out, "  virtual long method_{method}(long x);").unwrap();
        }
        writeln!(out, "  long required(long x) override;\n  long mix_{level}(long x) override;\n  long data_{level} = 1;\n}};").unwrap();
        writeln!(
            out,
            "Level{level}::~Level{level}() {{ sink = sink * {}; }}",
            number(2) + 3
        )
        .unwrap();
        writeln!(
            out,
            "long Level{level}::required(long x) {{ sink = sink + {} * x; return sink; }}",
            number(3) + 7
        )
        .unwrap();
        writeln!(out, "long Level{level}::mix_{level}(long x) {{ sink = sink ^ {} * x; return data_{level} + Mixin{level}::data; }}", number(4) + 7).unwrap();
        for method in own {
            let note = if method % 3 == 0 { "NOTE();" } else { "" };
            writeln!(out, "long Level{level}::method_{method}(long x) {{ {note} sink = sink + {} - x; return sink; }}", number(method) * 9 + 2).unwrap();
        }
    }
    writeln!(
        out,
        "__attribute__((noinline)) long call_all(Level0 *p, long x) {{"
    )
    .unwrap();
    for method in 0..METHODS {
        writeln!(out, "  x += p->method_{method}(x);").unwrap();
    }
    writeln!(out, "  return x + p->mix_0(x) + p->required(x);\n}}").unwrap();
}

/// A diamond.
fn virtual_bases(out: &mut String, file: usize) {
    let body = |number: usize| {
        format!(
            "{{ sink = sink + x * {}; return sink; }}",
            file * 50 + number
        )
    };
    writeln!(
        out,
        "struct Root : Interface {{ virtual long root_one(long x) {} virtual long root_two(long x) {} long r = 1; }};
struct Left : virtual Root {{ long root_one(long x) override; virtual long left(long x); long l = 2; }};
struct Right : virtual Root {{ long root_two(long x) override; virtual long right(long x); long q = 3; }};
struct Bottom : Left, Right {{ long required(long x) override; long left(long x) override; virtual long bottom(long x); long b = 4; }};
long Left::root_one(long x) {}\nlong Left::left(long x) {}
long Right::root_two(long x) {}\nlong Right::right(long x) {}
long Bottom::required(long x) {}\nlong Bottom::left(long x) {}\nlong Bottom::bottom(long x) {}",
        body(2), body(3), body(4), body(5), body(6), body(7), body(8), body(9), body(10)
    )
    .unwrap();
}

/// The program with symbols, and a stripped copy of it.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) program: Vec<u8>,
    pub(crate) stripped: Vec<u8>,
}

/// Compiles the program, once for all tests that want it with the same flags.
pub(crate) fn compiled(flags: &[&str]) -> &'static Compiled {
    type Slot = &'static OnceLock<Compiled>;
    static ALL: Mutex<BTreeMap<String, Slot>> = Mutex::new(BTreeMap::new());
    let name = flags.concat().replace(['/', ','], "_");
    let slot = *ALL
        .lock()
        .unwrap()
        .entry(name.clone())
        .or_insert_with(|| Box::leak(Box::default()));
    slot.get_or_init(|| compile(&name, flags))
}

fn compile(name: &str, flags: &[&str]) -> Compiled {
    let folder = super::scratch().join(format!("program{name}"));
    let sources = write(&folder);
    let mut compiler = Command::new("g++");
    compiler
        .args(["-std=c++17", "-pthread", "-w"])
        .args(flags)
        .args(["-o", "program"])
        .args(&sources)
        .current_dir(&folder);
    let done = compiler
        .output()
        .expect("this test needs g++: apt-get install g++");
    assert!(
        done.status.success(),
        "g++: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    let mut strip = Command::new("strip");
    strip
        .args(["--strip-all", "-o", "stripped", "program"])
        .current_dir(&folder);
    let done = strip
        .status()
        .expect("this test needs strip: apt-get install binutils");
    assert!(done.success());
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    Compiled {
        program: read("program"),
        stripped: read("stripped"),
    }
}
