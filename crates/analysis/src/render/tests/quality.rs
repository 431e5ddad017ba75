use std::collections::BTreeMap;

use profiler_model::ModuleKind;

use crate::render::{
    quality::{NameQuality, PoorModule, RuntimeGap, names},
    runtimes::Runtime,
};

use super::sketch::{Sketch, empty};

#[test]
fn user_frames_are_counted_by_samples_and_source() {
    let mut sketch = Sketch::new();
    let (main, kernel) = (sketch.user("main"), sketch.kernel("do_syscall_64"));
    let traced = sketch.dwarf(0x500, &[("inner", "a.c", 1), ("outer", "a.c", 2)]);
    let unnamed = sketch.unnamed("/usr/bin/stripped", ModuleKind::Elf, 0x10);
    let code = sketch.unnamed("", ModuleKind::Anonymous, 0x7000);
    sketch.sample(10, vec![main, traced, kernel]);
    sketch.sample(3, vec![main, unnamed, unnamed]);
    sketch.sample(2, vec![unnamed, code]);
    sketch.sample(4, vec![kernel]);
    let quality = names(&sketch.finish());
    let poor = |path: &str, unnamed| PoorModule {
        path: path.into(),
        build_id: Vec::new(),
        unnamed,
        inferred: 0,
    };
    let expected = NameQuality {
        exact: 10 + 10 + 3,
        inferred: 0,
        interpreter: 0,
        jit: 2,
        unnamed: 3 + 3 + 2,
        sources: BTreeMap::from([("elf_symbol", 13), ("dwarf", 10), ("none", 10)]),
        samples: 15,
        samples_with_a_name: 13,
        modules: vec![poor("/usr/bin/stripped", 8)],
        runtimes: vec![RuntimeGap {
            runtime: Runtime::Other,
            frames: 2,
            samples: 2,
        }],
    };
    assert_eq!(quality, expected);
    assert_eq!(quality.frames(), 33);
    assert!((quality.percent(quality.unnamed) - 24.24).abs() < 0.01);
}

/// Frames by class: exact, interpreter, jit, unnamed.
fn classes(quality: &NameQuality) -> [u64; 4] {
    let NameQuality {
        exact,
        inferred,
        interpreter,
        jit,
        unnamed,
        ..
    } = *quality;
    assert_eq!(inferred, 0);
    [exact, interpreter, jit, unnamed]
}

fn gap(runtime: Runtime, frames: u64, samples: u64) -> RuntimeGap {
    RuntimeGap {
        runtime,
        frames,
        samples,
    }
}

#[test]
fn the_loop_of_an_interpreter_is_no_exact_name_of_what_it_runs() {
    let mut sketch = Sketch::new();
    sketch.exe = "/usr/bin/python3.11";
    let (main, run) = (sketch.user("main"), sketch.user("_PyEval_EvalFrameDefault"));
    let add = sketch.user("PyNumber_Add");
    sketch.sample(10, vec![main, run, run, add]);
    sketch.sample(5, vec![main]);
    let quality = names(&sketch.finish());
    assert_eq!(classes(&quality), [10 + 10 + 5, 20, 0, 0]);
    assert_eq!(quality.runtimes, [gap(Runtime::Python311, 20, 10)]);
}

#[test]
fn a_function_of_python_in_a_perf_map_names_the_loop_that_it_calls() {
    let mut sketch = Sketch::new();
    sketch.exe = "/usr/bin/python3.12";
    let run = sketch.user("_PyEval_EvalFrameDefault");
    let (main, function) = (sketch.user("main"), sketch.jit("py::inner:/app.py"));
    sketch.sample(3, vec![main, function, run]);
    // Not that of the loop above.
    sketch.sample(1, vec![main, run, function, run]);
    let quality = names(&sketch.finish());
    assert_eq!(classes(&quality), [3 * 3 + 3, 1, 0, 0]);
    assert_eq!(quality.runtimes, [gap(Runtime::Python312, 1, 1)]);
}

#[test]
fn code_made_at_run_time_belongs_to_the_runtime_of_its_process_or_stack() {
    let mut sketch = Sketch::new();
    sketch.exe = "/usr/bin/node";
    let code = sketch.unnamed("[anon]", ModuleKind::Anonymous, 0x7000);
    let entry = sketch.user("Builtins_InterpreterEntryTrampoline");
    sketch.sample(4, vec![entry, code]);
    sketch.exe = "/usr/bin/work";
    let jvm = sketch.unnamed("/opt/jdk/lib/server/libjvm.so", ModuleKind::Elf, 0x10);
    sketch.pid = 200;
    sketch.sample(2, vec![jvm, code, code]);
    let listed = sketch.jit("Interpreter");
    sketch.sample(1, vec![jvm, listed]);
    // The kernel's page for old programs is not code that a program made.
    let vsyscall = sketch.unnamed("[vsyscall]", ModuleKind::Anonymous, 0x20);
    sketch.sample(1, vec![vsyscall]);
    let quality = names(&sketch.finish());
    assert_eq!(classes(&quality), [0, 4 + 1, 4 + 4, 2 + 1 + 1]);
    assert_eq!(quality.samples_with_a_name, 0);
    let expected = [
        gap(Runtime::Node, 8, 4),
        gap(Runtime::Java, 4, 2),
        gap(Runtime::JavaInterpreter, 1, 1),
    ];
    assert_eq!(quality.runtimes, expected);
}

#[test]
fn a_profile_without_samples_has_no_share() {
    let quality = names(&empty());
    assert_eq!(quality, NameQuality::default());
    assert!(quality.percent(quality.exact).abs() < f64::EPSILON);
}
