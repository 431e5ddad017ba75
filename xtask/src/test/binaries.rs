//! Test binaries: built once for all steps, then started by path.

use std::{
    collections::BTreeMap,
    fs,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::{libtest::Reader, steps::STEPS, tally::Tally};
use crate::{exec, workspace::Workspace};

/// Which of the two builds of tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// With the checks of a debug build, and without the eBPF object: tests that need no kernel.
    Checked,
    /// The integration tests, and the programs that they start and profile: as fast as what they stand for.
    Integration,
}

/// Packages whose own tests need nothing but what [`FILE_TESTS`] are given.
pub(super) const UNIT_PACKAGES: [&str; 22] = [
    "profiler-common",
    "profiler-access-logs",
    "profiler-analysis",
    "profiler-clock",
    "profiler-engine",
    "profiler-file-tests",
    "profiler-host",
    "profiler-image",
    "profiler-memory",
    "profiler-model",
    "profiler-network",
    "profiler-protocols",
    "profiler-recorder",
    "profiler-recording",
    "profiler-sandbox",
    "profiler-symbolize",
    "profiler-test-programs",
    "profiler-server-tls",
    "profiler-tls-sites",
    "profiler-unwind",
    "profiler-agent",
    "xtask",
];
/// The module of `crates/file-tests` with tests that need files of other programs: steps of their own run them.
const FILE_TESTS: &str = "file_tests::";

/// The targets of these packages whose tests need nothing. The agent's program holds none; `hostile` measures the memory of
/// its process, which it must have for itself.
const UNIT_TARGETS: [&str; 5] = ["--lib", "--bin", "xtask", "--test", "hostile"];

/// A built test binary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Binary {
    executable: PathBuf,
    /// The folder of its package, in which it expects to run.
    folder: PathBuf,
}

/// Binaries by the name of their package's folder and of their target.
type Binaries = BTreeMap<String, Binary>;

/// A line of `cargo --message-format=json`, as far as it matters here.
#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

impl Build {
    fn record(self, workspace: &Workspace) -> PathBuf {
        let name = match self {
            Self::Checked => "checked",
            Self::Integration => "integration",
        };
        workspace.target.join(format!("test-binaries-{name}.json"))
    }

    /// Compiles, and notes where cargo put what.
    pub(crate) fn make(self, workspace: &Workspace) -> Result<()> {
        let mut command = exec::cargo(&workspace.root);
        command.args([
            "test",
            "--no-run",
            "--locked",
            "--message-format=json-render-diagnostics",
        ]);
        match self {
            Self::Checked => {
                for package in UNIT_PACKAGES {
                    command.args(["--package", package]);
                }
                command.args(UNIT_TARGETS);
                command.env("PROFILER_SKIP_EBPF", "1");
            }
            Self::Integration => {
                // Of this package, so that each of its programs is built as well.
                command.args(["--release", "--package", "profiler-tests", "--test", "it"]);
                command.args(["--lib", "--bin", "profiler-bench"]);
            }
        }
        let messages = exec::output_shown(&mut command).context("build tests")?;
        let text = serde_json::to_vec(&binaries(&messages)).context("encode binaries")?;
        let record = self.record(workspace);
        fs::write(&record, text).with_context(|| format!("write {}", record.display()))
    }

    fn read(self, workspace: &Workspace) -> Result<Binaries> {
        let record = self.record(workspace);
        let text =
            fs::read(&record).with_context(|| format!("read {}: not built", record.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("parse {}", record.display()))
    }

    /// One of them, by the name of its package's folder and its own.
    fn binary(self, workspace: &Workspace, name: &str) -> Result<Binary> {
        let found = self.read(workspace)?.remove(name);
        found.with_context(|| format!("cargo named no test binary {name}"))
    }
}

fn binaries(messages: &str) -> Binaries {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .filter(|message| message.profile.as_ref().is_some_and(|profile| profile.test))
        .filter_map(|message| {
            let folder = message.manifest_path?.parent()?.to_owned();
            let package = folder.file_name()?.to_string_lossy().into_owned();
            let binary = Binary {
                executable: message.executable?,
                folder,
            };
            Some((format!("{package}/{}", message.target?.name), binary))
        })
        .collect()
}

/// Unit tests: all binaries of the checked build that no other step runs.
pub(super) fn unit(workspace: &Workspace, tally: &mut Tally) -> Result<()> {
    let mut reader = Reader::default();
    let mut endings = Vec::new();
    for (name, binary) in Build::Checked.read(workspace)? {
        println!("{name}");
        endings.extend(run(
            command(&binary).args(["--skip", FILE_TESTS]),
            &mut reader,
        )?);
    }
    finish(reader, endings, tally)
}

/// A module of tests with files, of the checked build.
pub(super) fn checked(
    workspace: &Workspace,
    module: &str,
    variables: &[(&str, &Path)],
    tally: &mut Tally,
) -> Result<()> {
    let mut command = file_tests(workspace, module)?;
    command.envs(variables.iter().copied());
    counted(&mut command, tally)
}

/// The same with one test at a time.
pub(super) fn in_one_thread(workspace: &Workspace, module: &str, tally: &mut Tally) -> Result<()> {
    let mut command = file_tests(workspace, module)?;
    command.arg("--test-threads=1");
    counted(&mut command, tally)
}

fn file_tests(workspace: &Workspace, module: &str) -> Result<Command> {
    let binary = Build::Checked.binary(workspace, "file-tests/profiler_file_tests")?;
    let mut command = command(&binary);
    command.arg(format!("{FILE_TESTS}{module}::"));
    // What they print are figures that people read.
    command.arg("--show-output");
    Ok(command)
}

/// The recorder's tests on this kernel, built with the eBPF object from other sources than this checkout's.
pub(super) fn kernel(workspace: &Workspace, sources: &Path, tally: &mut Tally) -> Result<()> {
    let mut build = exec::cargo(sources);
    build.args([
        "test",
        "--no-run",
        // Cargo.lock changes with the version of the copy.
        "--offline",
        "--message-format=json-render-diagnostics",
        "--test",
        "kernel",
    ]);
    // One of them has the tests. With the packages of the checked build, crates from elsewhere have the same features and
    // are there already.
    for package in UNIT_PACKAGES {
        build.args(["--package", package]);
    }
    build
        .env("CARGO_TARGET_DIR", &workspace.target)
        .env_remove("PROFILER_SKIP_EBPF");
    let messages = exec::output_shown(&mut build).context("build tests")?;
    let binary = binaries(&messages).remove("recorder/kernel");
    let binary = binary.context("cargo named no test binary recorder/kernel")?;
    counted(&mut command(&binary), tally)
}

/// The unit tests of what the integration tests and the benches judge with.
pub(super) fn of_judges(workspace: &Workspace, tally: &mut Tally) -> Result<()> {
    for name in ["tests/profiler_tests", "tests/profiler-bench"] {
        let binary = Build::Integration.binary(workspace, name)?;
        counted(&mut command(&binary), tally)?;
    }
    Ok(())
}

/// One module of tests/it, or one test of it.
pub(super) fn integration(workspace: &Workspace, name: &str, tally: &mut Tally) -> Result<()> {
    integration_with(workspace, name, &[], tally)
}

/// One function of tests/it that is not a test by itself.
pub(super) fn ignored(workspace: &Workspace, test: &str, tally: &mut Tally) -> Result<()> {
    let mut command = command(&it(workspace)?);
    command
        .args(["--exact", test, "--ignored", "--test-threads=1"])
        .env("PROFILER_AGENT", workspace.agent_under_test());
    counted(&mut command, tally)
}

/// The same with variables for the tests.
pub(crate) fn integration_with(
    workspace: &Workspace,
    name: &str,
    variables: &[(&str, &str)],
    tally: &mut Tally,
) -> Result<()> {
    let mut command = integration_of(workspace, name)?;
    command.envs(variables.iter().copied());
    counted(&mut command, tally)
}

/// The binary of the integration tests.
pub(crate) fn integration_binary(workspace: &Workspace) -> Result<PathBuf> {
    it(workspace).map(|binary| binary.executable)
}

fn it(workspace: &Workspace) -> Result<Binary> {
    Build::Integration.binary(workspace, "tests/it")
}

/// Set to the whole name of a test: the step runs that one alone.
pub(super) const ONLY: &str = "PROFILER_TEST_ONLY";

/// Tests of a module share files and ports, so they run one after the other.
fn integration_of(workspace: &Workspace, name: &str) -> Result<Command> {
    let mut command = command(&it(workspace)?);
    command
        .arg("--test-threads=1")
        .env("PROFILER_AGENT", workspace.agent_under_test());
    if let Some(test) = std::env::var_os(ONLY) {
        command.arg("--exact").arg(test);
    } else {
        command
            .arg(filter_of(name))
            .args(left_out(name, STEPS.iter().map(|step| step.name)));
    }
    Ok(command)
}

/// What the name of a step ends with that runs the tests in `mod alone` of a module.
pub(super) const ALONE: &str = "-alone";

/// What the names of a step's tests begin with.
fn filter_of(name: &str) -> String {
    match name.strip_suffix(ALONE) {
        Some(module) => format!("{}::alone::", module.replace('-', "_")),
        None => format!("{}::", name.replace('-', "_")),
    }
}

/// Arguments that leave out the tests of other steps that its filter would run: those that need the machine for
/// themselves, and modules whose names end like this one's, as a filter holds anywhere in a name: `mesh::` would run
/// `network_mesh::` too.
fn left_out<'a>(name: &str, steps: impl Iterator<Item = &'a str>) -> Vec<String> {
    let (end, alone) = (format!("-{name}"), format!("{name}{ALONE}"));
    steps
        .filter(|step| step.ends_with(&end) || *step == alone)
        .flat_map(|step| ["--skip".to_owned(), filter_of(step)])
        .collect()
}

fn command(binary: &Binary) -> Command {
    let mut command = Command::new(&binary.executable);
    command
        .current_dir(&binary.folder)
        .env("CARGO_MANIFEST_DIR", &binary.folder)
        // They bury the assertion and the agent's log.
        .env("RUST_BACKTRACE", "0");
    command
}

fn counted(command: &mut Command, tally: &mut Tally) -> Result<()> {
    let mut reader = Reader::default();
    let ending = run(command, &mut reader)?;
    finish(reader, ending.into_iter().collect(), tally)
}

fn finish(reader: Reader, endings: Vec<String>, tally: &mut Tally) -> Result<()> {
    reader.finish(tally, endings.is_empty(), &endings.join(", "))
}

/// Runs a binary to its end; how it ended, unless it was well. Its output is passed on as it comes: of a test that
/// hangs there is only its name.
fn run(command: &mut Command, reader: &mut Reader) -> Result<Option<String>> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("start {}", command.get_program().display()))?;
    let mut output = child
        .stdout
        .take()
        .context("a piped child has a standard output")?;
    let mut stdout = std::io::stdout();
    let (mut rest, mut block) = (Vec::new(), [0; 8192]);
    loop {
        let length = output.read(&mut block).context("read the test's output")?;
        if length == 0 {
            break;
        }
        let bytes = &block[..length];
        stdout
            .write_all(bytes)
            .context("write to standard output")?;
        stdout.flush().context("write to standard output")?;
        rest.extend_from_slice(bytes);
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            reader.read(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']));
        }
    }
    let status = child.wait().context("wait for the test binary")?;
    Ok((!status.success()).then(|| status.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_does_not_run_those_of_other_steps() {
        let steps = [
            "mesh",
            "mesh-alone",
            "network-mesh",
            "mesh-profile",
            "remesh",
        ];
        assert_eq!(
            left_out("mesh", steps.into_iter()),
            ["--skip", "mesh::alone::", "--skip", "network_mesh::"]
        );
        assert_eq!(filter_of("mesh-alone"), "mesh::alone::");
        assert!(left_out("mesh-alone", steps.into_iter()).is_empty());
        assert!(left_out("network-mesh", steps.into_iter()).is_empty());
    }

    #[test]
    fn each_crate_has_its_unit_tests_run() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
        for entry in fs::read_dir(crates).unwrap() {
            let manifest = entry.unwrap().path().join("Cargo.toml");
            let text = fs::read_to_string(&manifest).unwrap();
            assert!(
                UNIT_PACKAGES
                    .iter()
                    .any(|package| text.contains(&format!("name = \"{package}\"\n"))),
                "{}",
                manifest.display()
            );
        }
    }

    #[test]
    fn each_test_target_of_a_crate_is_run() {
        // By the step `new-probe`.
        const OF_ANOTHER_STEP: &str = "kernel";
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
        for folder in fs::read_dir(crates).unwrap() {
            // Most crates have none.
            let Ok(targets) = fs::read_dir(folder.unwrap().path().join("tests")) else {
                continue;
            };
            for target in targets {
                let path = target.unwrap().path();
                let name = path.file_stem().unwrap().to_str().unwrap();
                let is_run = UNIT_TARGETS.contains(&name) || name == OF_ANOTHER_STEP;
                assert!(is_run, "{}", path.display());
            }
        }
    }

    #[test]
    fn test_binaries_are_those_that_cargo_names() {
        let messages = r#"{"reason":"compiler-artifact","manifest_path":"/w/tests/Cargo.toml","target":{"name":"mesh-server"},"profile":{"test":false},"executable":"/target/release/mesh-server"}
not json
{"reason":"compiler-artifact","manifest_path":"/w/tests/Cargo.toml","target":{"name":"it"},"profile":{"test":true},"executable":"/target/release/deps/it-1"}
{"reason":"build-finished","success":true}"#;
        let found = binaries(messages);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found["tests/it"].executable,
            PathBuf::from("/target/release/deps/it-1")
        );
        assert!(binaries("").is_empty());
    }
}
