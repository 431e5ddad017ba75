//! Language runtimes whose functions a native stack does not name, and what gives them names.
//!
//! An interpreter runs every function in one loop of its own: the frame has the name of the loop, which says nothing
//! of the function. A just-in-time compiler puts code into memory without a file, where only its own list
//! (`/tmp/perf-PID.map`) has names.

use profiler_model::NameSource;

/// A runtime with its switch for names. Python's came with 3.12.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Runtime {
    /// Of a version that is not known.
    Python,
    Python312,
    Python311,
    Node,
    Java,
    /// Methods that `HotSpot` interprets, in its perf map.
    JavaInterpreter,
    Ruby,
    Php,
    Lua,
    Perl,
    /// Code made at run time by a program that is none of these.
    Other,
}

impl Runtime {
    /// The interpreter whose loop is the function `name`.
    ///
    /// Sources: `CPython` `Python/ceval.c` (`_PyEval_EvalFrameDefault` since 3.6, `PyEval_EvalFrameEx` before) and
    /// `Python/ceval_macros.h` (`_TAIL_CALL_*`, one function for each instruction, 3.14 built by clang); V8
    /// `src/builtins` (embedded in the program as `Builtins_*`); the perf map of `HotSpot`, where all interpreted methods are
    /// `Interpreter`; Ruby `vm_exec.c`; PHP `Zend/zend_vm_execute.h`; Lua `lvm.c`; Perl `run.c`.
    pub(super) fn of_loop(name: &str, source: NameSource) -> Option<Self> {
        if source == NameSource::PerfMap {
            return (name == "Interpreter").then_some(Self::JavaInterpreter);
        }
        // Compilers split and copy functions: `vm_exec_core.isra.0`, `_PyEval_EvalFrameDefault.cold`.
        match name.split('.').next().unwrap_or(name) {
            "_PyEval_EvalFrameDefault" | "PyEval_EvalFrameEx" => Some(Self::Python),
            "Builtins_InterpreterEntryTrampoline" => Some(Self::Node),
            "vm_exec_core" => Some(Self::Ruby),
            "execute_ex" => Some(Self::Php),
            "luaV_execute" => Some(Self::Lua),
            "Perl_runops_standard" => Some(Self::Perl),
            other => other.starts_with("_TAIL_CALL_").then_some(Self::Python),
        }
    }

    /// The runtime that a file belongs to, by the last part of its path.
    pub fn of_file(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let name = name.strip_prefix("lib").unwrap_or(name);
        let is = |stem: &str| {
            // `node`, `ruby3.1`, `php-fpm`, but not `nodepool`.
            let rest = name.strip_prefix(stem);
            rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_alphabetic()))
        };
        if is("python") {
            Some(Self::Python.with_version(path))
        } else if is("node") || is("nodejs") {
            Some(Self::Node)
        } else if is("java") || is("jvm") {
            Some(Self::Java)
        } else if is("ruby") {
            Some(Self::Ruby)
        } else if is("php") {
            Some(Self::Php)
        } else if is("lua") || is("luajit") {
            Some(Self::Lua)
        } else if is("perl") {
            Some(Self::Perl)
        } else {
            None
        }
    }

    /// The same with the version of Python that the path of its file tells, as `libpython3.11.so.1.0`.
    pub(super) fn with_version(self, path: &str) -> Self {
        if self != Self::Python {
            return self;
        }
        let name = path.rsplit('/').next().unwrap_or(path);
        let Some((_, version)) = name.split_once("python") else {
            return self;
        };
        let mut numbers = version.split(|letter: char| !letter.is_ascii_digit());
        let mut number = || numbers.next().and_then(|digits| digits.parse::<u32>().ok());
        match (number(), number()) {
            (Some(3), Some(minor)) if minor >= 12 => Self::Python312,
            (Some(3), Some(_)) | (Some(2), _) => Self::Python311,
            _ => self,
        }
    }

    pub(super) fn is_python(self) -> bool {
        matches!(self, Self::Python | Self::Python311 | Self::Python312)
    }

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Python => "Python",
            Self::Python312 => "Python 3.12 or newer",
            Self::Python311 => "Python 3.11 or older",
            Self::Node => "Node",
            Self::Java => "Java",
            Self::JavaInterpreter => "Java's interpreter",
            Self::Ruby => "Ruby",
            Self::Php => "PHP",
            Self::Lua => "Lua",
            Self::Perl => "Perl",
            Self::Other => "code made at run time",
        }
    }

    /// What gives names, or that nothing does.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Python => {
                "start it with python -X perf or PYTHONPERFSUPPORT=1 (Python 3.12 and newer; older ones have no way to \
                 give names)"
            }
            Self::Python312 => "start it with python -X perf or PYTHONPERFSUPPORT=1",
            Self::Python311 => {
                "this version has no way to give names; Python 3.12 and newer do with python -X perf"
            }
            Self::Node => {
                "start it with node --perf-basic-prof --interpreted-frames-native-stack, or with both in NODE_OPTIONS"
            }
            Self::Java => {
                "jcmd PID Compiler.perfmap gives names to methods that are compiled by then (JDK 17 and newer), and \
                 java -XX:+PreserveFramePointer gives whole stacks"
            }
            Self::JavaInterpreter => {
                "interpreted methods have no names; those that run often are compiled and have"
            }
            Self::Ruby | Self::Php | Self::Lua | Self::Perl => {
                "its interpreter has no way to give names"
            }
            Self::Other => "its runtime must write /tmp/perf-PID.map, by a switch of its own",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_are_known_by_their_names_also_in_parts() {
        let elf = |name| Runtime::of_loop(name, NameSource::ElfSymbol);
        assert_eq!(elf("_PyEval_EvalFrameDefault"), Some(Runtime::Python));
        assert_eq!(elf("_PyEval_EvalFrameDefault.cold"), Some(Runtime::Python));
        assert_eq!(elf("_TAIL_CALL_BINARY_OP"), Some(Runtime::Python));
        assert_eq!(elf("vm_exec_core.isra.0"), Some(Runtime::Ruby));
        assert_eq!(elf("execute_exact"), None);
        // Only HotSpot's list means its interpreter by that.
        assert_eq!(elf("Interpreter"), None);
        let listed = |name| Runtime::of_loop(name, NameSource::PerfMap);
        assert_eq!(listed("Interpreter"), Some(Runtime::JavaInterpreter));
        assert_eq!(listed("execute_ex"), None);
    }

    #[test]
    fn files_tell_the_runtime_and_the_version_of_python() {
        let cases = [
            ("/usr/bin/python3.11", Some(Runtime::Python311)),
            ("/usr/bin/python3", Some(Runtime::Python)),
            ("/usr/bin/python2.7", Some(Runtime::Python311)),
            (
                "/usr/lib/libpython3.12.so.1.0 (deleted)",
                Some(Runtime::Python312),
            ),
            ("/opt/libpython3.6m.so.1.0", Some(Runtime::Python311)),
            ("/usr/bin/python3.99999999999", Some(Runtime::Python)),
            ("/usr/bin/node", Some(Runtime::Node)),
            ("/usr/bin/nodepool", None),
            ("/opt/jdk/lib/server/libjvm.so", Some(Runtime::Java)),
            ("/usr/sbin/php-fpm8.2", Some(Runtime::Php)),
            ("/usr/lib/libluajit-5.1.so.2", Some(Runtime::Lua)),
            ("", None),
        ];
        for (path, runtime) in cases {
            assert_eq!(Runtime::of_file(path), runtime, "{path}");
        }
    }
}
