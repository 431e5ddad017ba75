//! Names of stripped programs, from every place where they can come from, in live profiles.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use profiler_tests::{
    agent::{Agent, ServeOptions, run},
    assert_measured,
    folded::Folded,
    process::Running,
    wait::wait_until,
    workload::Workload,
};
use serde_json::{Value, json};

use crate::targets::{BUSY_PYTHON, START, Targets, burn, on_cpu, start_task};

const QUICK: Duration = Duration::from_secs(30);
/// Samples that a result is judged by, and how long they may take.
const SAMPLES: u64 = 300;
const LIMIT: Duration = Duration::from_secs(90);
const HZ: u64 = 499;

/// A program without symbols, and its parts.
struct Stripped {
    targets: Targets,
    name: String,
    program: PathBuf,
    /// The program with its symbols, and the debug file alone.
    full: PathBuf,
    debug: PathBuf,
    build_id: String,
}

impl Stripped {
    /// `name` is its `comm` as well.
    fn new(workload: Workload, name: &str) -> Self {
        let targets = Targets::new();
        let path = |suffix: &str| targets.folder.join(format!("{name}{suffix}"));
        let (program, full, debug) = (path(""), path(".full"), path(".debug"));
        fs::copy(workload.build("names-source").unwrap(), &full).unwrap();
        let stripped = Self {
            build_id: build_id(&full),
            name: name.to_owned(),
            program,
            full,
            debug,
            targets,
        };
        stripped.tool("objcopy", &["--only-keep-debug", ".full", ".debug"]);
        stripped.tool("objcopy", &["--strip-all", ".full", ""]);
        stripped
    }

    /// Runs a tool of binutils; arguments that begin with a dot, or are empty, are suffixes of the
    /// program's name.
    fn tool(&self, tool: &str, arguments: &[&str]) {
        let arguments = arguments.iter().map(|argument| {
            if argument.is_empty() || argument.starts_with('.') {
                format!("{}{argument}", self.name)
            } else {
                (*argument).to_owned()
            }
        });
        let done = Command::new(tool)
            .args(arguments)
            .current_dir(&self.targets.folder)
            .output()
            .unwrap_or_else(|error| {
                panic!("run {tool} (Debian packages binutils, xz-utils): {error}")
            });
        assert!(
            done.status.success(),
            "{tool}: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    }

    fn start(&self) -> Running {
        self.targets
            .launch(&self.program, &self.name)
            .start()
            .unwrap()
    }

    /// A folder for `--symbol-dir` that holds the debug file under another name.
    fn symbol_folder(&self) -> PathBuf {
        let folder = self.targets.folder.join("symbols");
        fs::create_dir_all(folder.join("below")).unwrap();
        fs::copy(&self.debug, folder.join("below/any-name")).unwrap();
        folder
    }
}

/// The build-id that readelf shows.
fn build_id(path: &Path) -> String {
    let output = Command::new("readelf").arg("-n").arg(path).output();
    let output = output.expect("run readelf (Debian package binutils)");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let id = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("Build ID: "));
    id.unwrap_or_else(|| panic!("no build-id in {}: {text}", path.display()))
        .to_owned()
}

/// Profiles a process until there are enough samples, however busy the machine is; the id of the
/// ended task.
fn profile(agent: &Agent, pid: u32) -> String {
    let mut specification = on_cpu(json!({ "pids": [pid] }), 1, HZ);
    specification["duration_s"] = Value::Null;
    let id = start_task(agent, &specification);
    let enough = || agent.api.task(&id).unwrap()["samples"].as_u64() >= Some(SAMPLES);
    wait_until("there are enough samples", LIMIT, enough).unwrap();
    agent.api.stop_task(&id).unwrap();
    agent.api.wait_task(&id, &["cancelled"], LIMIT).unwrap();
    id
}

fn folded(agent: &Agent, id: &str) -> Folded {
    agent.api.folded(id, "").unwrap()
}

/// The part `names` of a task's quality.
fn names(agent: &Agent, id: &str) -> Value {
    let path = format!("/api/v1/tasks/{id}/quality");
    agent.api.get_json(&path).unwrap()["names"].clone()
}

fn frames_from(names: &Value, source: &str) -> u64 {
    let sources = names["sources"].as_array().unwrap();
    let found = sources.iter().find(|entry| entry["source"] == source);
    found.map_or(0, |entry| entry["frames"].as_u64().unwrap())
}

/// The program's three functions are named in most samples, and from this source.
#[track_caller]
fn check_named(agent: &Agent, id: &str, source: &str) {
    let (folded, names) = (folded(agent, id), names(agent, id));
    let share = folded.share("hot_sixty") + folded.share("hot_thirty") + folded.share("hot_ten");
    assert!(share > 90.0, "{share} %: {}\n{names}", folded.summary());
    let frames = frames_from(&names, source);
    assert!(
        frames > names["samples"].as_u64().unwrap() / 2,
        "{source} has named {frames}: {names}"
    );
}

#[track_caller]
fn check_unnamed(agent: &Agent, id: &str, stripped: &Stripped) {
    let (folded, names) = (folded(agent, id), names(agent, id));
    assert!(folded.share("hot_sixty") < 0.1, "{}", folded.summary());
    assert!(names["unnamed"].as_u64() > Some(100), "{names}");
    let poorest = &names["modules"][0];
    assert_eq!(poorest["build_id"], stripped.build_id, "{names}");
    assert_eq!(poorest["path"], stripped.program.to_str().unwrap());
}

fn symbol_dir(folder: &Path) -> ServeOptions {
    ServeOptions {
        arguments: vec![format!("--symbol-dir={}", folder.display())],
        ..ServeOptions::default()
    }
}

#[test]
fn a_debug_file_in_the_container_names_its_program() {
    let agent = Agent::start().unwrap();
    let stripped = Stripped::new(Workload::SharesStatic, "names-contained");
    let root = stripped.targets.folder.join("root");
    fs::create_dir(&root).unwrap();
    let contain = Workload::Contain.build("contain").unwrap();
    let target = stripped
        .targets
        .launch(&contain, &stripped.name)
        .args([&root, &stripped.program])
        .start()
        .unwrap();
    let inside = PathBuf::from(format!("/proc/{}/root", target.pid()));
    let running = inside.join("app").join(&stripped.name);
    wait_until("the program runs in its own root", START, || {
        let exe = fs::read_link(format!("/proc/{}/exe", target.pid()));
        running.exists() && exe.is_ok_and(|exe| exe.starts_with("/app"))
    })
    .unwrap();
    let (first, rest) = stripped.build_id.split_at(2);
    let folder = inside.join("usr/lib/debug/.build-id").join(first);
    fs::create_dir_all(&folder).unwrap();
    fs::copy(&stripped.debug, folder.join(format!("{rest}.debug"))).unwrap();
    let id = profile(&agent, target.pid());
    check_named(&agent, &id, "debug_file");
}

#[test]
fn a_debug_link_names_its_program_unless_the_file_was_changed() {
    let agent = Agent::start().unwrap();
    let linked = Stripped::new(Workload::SharesC, "names-link");
    linked.tool("objcopy", &["--add-gnu-debuglink=names-link.debug", ""]);
    let target = linked.start();
    let id = profile(&agent, target.pid());
    check_named(&agent, &id, "debug_file");

    let changed = Stripped::new(Workload::SharesC, "names-changed");
    changed.tool("objcopy", &["--add-gnu-debuglink=names-changed.debug", ""]);
    let mut file = fs::File::options()
        .append(true)
        .open(&changed.debug)
        .unwrap();
    file.write_all(b"x").unwrap();
    let target = changed.start();
    let id = profile(&agent, target.pid());
    check_unnamed(&agent, &id, &changed);
}

/// Programs are upgraded while they run, and a profile that begins later is to show what still runs.
#[test]
fn a_program_that_was_replaced_on_disk_keeps_its_names_and_stacks() {
    let linked = Stripped::new(Workload::SharesC, "names-gone");
    linked.tool("objcopy", &["--add-gnu-debuglink=names-gone.debug", ""]);
    let target = linked.start();
    let new = linked.targets.folder.join("next-version");
    fs::copy(&linked.full, &new).unwrap();
    fs::rename(&new, &linked.program).unwrap();
    for privileges in ["--privileges=sys-admin", "--privileges=base"] {
        let agent = Agent::start_with(ServeOptions::with_arguments([privileges])).unwrap();
        let id = profile(&agent, target.pid());
        check_named(&agent, &id, "debug_file");
        let main = folded(&agent, &id).share("main");
        assert_measured!(main > 90.0, "{privileges}: {main} % of stacks reach main");
    }
    fs::remove_file(&linked.program).unwrap();
    let agent = Agent::start().unwrap();
    let id = profile(&agent, target.pid());
    check_named(&agent, &id, "debug_file");
}

#[test]
fn a_compressed_symbol_table_names_its_program() {
    let agent = Agent::start().unwrap();
    let stripped = Stripped::new(Workload::SharesC, "names-mini");
    stripped.tool("objcopy", &["--strip-debug", ".full", ".mini"]);
    stripped.tool("xz", &[".mini"]);
    stripped.tool(
        "objcopy",
        &["--add-section=.gnu_debugdata=names-mini.mini.xz", ""],
    );
    let target = stripped.start();
    let id = profile(&agent, target.pid());
    check_named(&agent, &id, "mini_debug");
}

#[test]
fn an_uploaded_file_names_what_was_sampled_before_and_after() {
    let agent = Agent::start().unwrap();
    let stripped = Stripped::new(Workload::SharesC, "names-upload");
    let target = stripped.start();
    let before = profile(&agent, target.pid());
    check_unnamed(&agent, &before, &stripped);

    let content = fs::read(&stripped.debug).unwrap();
    let wrong = agent
        .api
        .upload("PUT", "/api/v1/symbols/0011aabb", content.clone());
    let wrong = wrong.unwrap();
    assert_eq!(wrong.status, 409, "{}", wrong.text());
    assert_eq!(wrong.json().unwrap()["code"], "build_id_mismatch");
    let useless = fs::read(&stripped.program).unwrap();
    let useless = agent
        .api
        .upload("POST", "/api/v1/symbols", useless)
        .unwrap();
    assert_eq!(useless.status, 422, "{}", useless.text());
    assert_eq!(useless.json().unwrap()["code"], "unusable_symbols");
    check_unnamed(&agent, &before, &stripped);

    let taken = agent
        .api
        .upload("POST", "/api/v1/symbols", content)
        .unwrap();
    assert_eq!(taken.status, 201, "{}", taken.text());
    assert_eq!(taken.json().unwrap()["build_id"], stripped.build_id);
    check_named(&agent, &before, "symbol_pack");
    let after = profile(&agent, target.pid());
    check_named(&agent, &after, "symbol_pack");

    let path = format!("/api/v1/symbols/{}", stripped.build_id);
    let deleted = agent.api.send("DELETE", &path, None).unwrap();
    assert_eq!(deleted.status, 204, "{}", deleted.text());
    check_unnamed(&agent, &before, &stripped);
}

#[test]
fn a_folder_of_symbols_is_used_by_serve_record_and_doctor() {
    let stripped = Stripped::new(Workload::SharesC, "names-folder");
    let folder = stripped.symbol_folder();
    let target = stripped.start();
    let agent = Agent::start_with(symbol_dir(&folder)).unwrap();
    let id = profile(&agent, target.pid());
    check_named(&agent, &id, "symbol_pack");
    let listed = agent.api.get_json("/api/v1/symbols").unwrap();
    assert_eq!(listed["items"][0]["build_id"], stripped.build_id);
    assert_eq!(listed["items"][0]["origin"], "folder");

    let pid = target.pid().to_string();
    let folder = folder.to_str().unwrap();
    let record = |more: &[&str]| {
        let given = [
            "record",
            "--pid",
            &pid,
            "--duration",
            "2s",
            "--frequency",
            "499",
            "--format",
            "folded",
        ];
        let arguments = [&given[..], &["--output", "-"], more].concat();
        let (status, output, errors) = run(&arguments, QUICK).unwrap();
        assert!(status.success(), "{errors}");
        (Folded::parse(&output).unwrap(), errors)
    };
    let (unnamed, said) = record(&[]);
    assert!(unnamed.share("hot_sixty") < 0.1, "{}", unnamed.summary());
    assert!(said.contains("% without a name"), "{said}");
    assert!(
        said.contains(&stripped.build_id),
        "the remedy is said: {said}"
    );
    let (named, said) = record(&["--symbol-dir", folder]);
    assert_measured!(named.share("hot_sixty") > 40.0, "{}", named.summary());
    assert!(
        said.contains("names: ") && !said.contains(&stripped.build_id),
        "{said}"
    );

    let doctor = |more: &[&str]| {
        let arguments = [&["doctor", "--json", "--pid", &pid][..], more].concat();
        let (status, output, errors) = run(&arguments, QUICK).unwrap();
        assert!(status.success(), "{errors}");
        let report: Value = serde_json::from_str(&output).unwrap();
        let files = report["files"].as_array().unwrap().clone();
        let own = files
            .into_iter()
            .find(|file| file["path"] == stripped.program.to_str().unwrap());
        own.unwrap_or_else(|| panic!("the program is missing: {output}"))
    };
    let plain = doctor(&[]);
    assert_eq!(plain["build_id"], stripped.build_id);
    assert_eq!(plain["complete"], false);
    assert_eq!(plain["lines"], false);
    assert_eq!(plain["eh_frame"], true);
    // It is compiled with frame pointers; what the C library adds is not.
    assert!(
        plain["frame_pointer_percent"].as_f64() > Some(50.0),
        "{plain}"
    );
    assert!(plain["remedy"].as_str().unwrap().contains("--symbol-dir"));
    let better = doctor(&["--symbol-dir", folder]);
    assert_eq!(better["complete"], true);
    assert_eq!(better["lines"], true);
    assert_eq!(better["symbols"], json!(["symbol_pack"]));
}

#[test]
fn doctor_says_why_a_process_cannot_be_looked_at() {
    let (status, _, errors) = run(&["doctor", "--pid", "4194305"], QUICK).unwrap();
    assert_eq!(status.code(), Some(1));
    assert!(errors.contains("there is no process 4194305"), "{errors}");
    let (status, _, errors) = run(&["doctor", "--pid", "2"], QUICK).unwrap();
    assert_eq!(status.code(), Some(1));
    assert!(errors.contains("a thread of the kernel"), "{errors}");
}

#[test]
fn a_stripped_go_server_is_named_by_gos_own_table() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let target = targets
        .launch(&Workload::GoServer.build("names-go").unwrap(), "names-go")
        .start()
        .unwrap();
    let id = profile(&agent, target.pid());
    let (folded, names) = (folded(&agent, &id), names(&agent, &id));
    let handled = folded.count(|stack| {
        let has = |name: &str| stack.frames.iter().any(|frame| frame == name);
        has("main.(*handler).burn") && has("net/http.(*conn).serve")
    });
    assert_measured!(
        handled * 2 > folded.total(),
        "the handler below the server: {}",
        folded.summary()
    );
    let frames = names["frames"].as_u64().unwrap();
    let from_table = frames_from(&names, "go_table");
    assert!(from_table * 100 >= frames * 98, "{names}");
}

/// What a result reports about the runtime whose functions it does not name most.
fn runtime(names: &Value) -> (&str, u64, u64) {
    let gap = &names["runtimes"][0];
    let number = |field: &str| gap[field].as_u64().unwrap_or_default();
    (
        gap["runtime"].as_str().unwrap_or_default(),
        number("frames"),
        number("samples"),
    )
}

fn number(names: &Value, field: &str) -> u64 {
    let found = names[field].as_u64();
    found.unwrap_or_else(|| panic!("no {field}: {names}"))
}

#[test]
fn the_loop_of_python_is_no_exact_name_and_record_says_what_helps() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let target = targets
        .launch(Path::new("/usr/bin/python3"), "names-python")
        .args(["-c", BUSY_PYTHON])
        .start()
        .unwrap();
    burn(&target, Duration::from_millis(200));
    let id = profile(&agent, target.pid());
    let names = names(&agent, &id);
    let (title, frames, samples) = runtime(&names);
    assert!(title.starts_with("Python 3."), "{names}");
    assert_eq!(frames, number(&names, "interpreter"), "{names}");
    assert!(samples * 10 >= number(&names, "samples") * 9, "{names}");
    let pid = target.pid().to_string();
    let output = targets.folder.join("python.folded");
    let arguments = ["record", "--duration=1s", "--format=folded", "--pid", &pid];
    let output = ["--output", output.to_str().unwrap()];
    let (status, _, said) = run(&[&arguments[..], &output].concat(), QUICK).unwrap();
    assert!(status.success(), "{said}");
    assert!(said.contains("the loop of an interpreter"), "{said}");
    let note = format!("note: {title}: ");
    assert!(said.contains(&note), "{said}");
    let (status, said, errors) = run(&["doctor", "--pid", &pid], QUICK).unwrap();
    assert!(status.success(), "{errors}");
    let line = format!("{title}: native stacks do not say which of its functions runs");
    assert!(said.contains(&line), "{said}");
}

const SCRIPT: &str = "
function burns(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) % 65537; return s; }
function outer() { const a = []; for (let i = 0; i < 200; i++) a.push(burns(2000)); return a.sort().length; }
for (;;) outer();
";

#[test]
fn code_of_node_has_names_with_the_switches_that_are_advised() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let start = |label: &str, switches: &[&str]| {
        let program = targets.launch(Path::new("/usr/bin/node"), label);
        let target = program
            .args(switches)
            .args(["--no-turbo-inlining", "-e", SCRIPT])
            // It leaves a log there.
            .current_dir(&targets.folder)
            .start()
            .unwrap();
        burn(&target, Duration::from_secs(1));
        target
    };
    let target = start("names-node", &[]);
    let id = profile(&agent, target.pid());
    let plain = names(&agent, &id);
    drop(target);
    let (title, frames, samples) = runtime(&plain);
    assert_eq!(title, "Node", "{plain}");
    let lacking = number(&plain, "jit") + number(&plain, "interpreter");
    assert_eq!(frames, lacking, "{plain}");
    assert!(samples * 10 >= number(&plain, "samples") * 9, "{plain}");
    let advised = plain["runtimes"][0]["remedy"].as_str().unwrap().to_owned();
    let switches = ["--perf-basic-prof", "--interpreted-frames-native-stack"];
    assert!(switches.iter().all(|switch| advised.contains(switch)));

    let target = start("names-node-told", &switches);
    let id = profile(&agent, target.pid());
    let (told, folded) = (names(&agent, &id), folded(&agent, &id));
    let _removed = fs::remove_file(format!("/tmp/perf-{}.map", target.pid()));
    let lacking = number(&told, "jit") + number(&told, "interpreter");
    assert!(lacking * 20 <= number(&told, "frames"), "{told}");
    let whole = folded.count(|stack| {
        let has = |name: &str| stack.frames.iter().any(|frame| frame.contains(name));
        has("burns") && has("outer")
    });
    assert_measured!(whole * 10 >= folded.total() * 8, "{}", folded.summary());
}

const BURN: &str = "
public class Burn {
    static int burns(int n) { int s = 0; for (int i = 0; i < n; i++) s = (s * 31 + i) % 65537; return s; }
    static int outer() { int s = 0; for (int i = 0; i < 2000; i++) s += burns(2000); return s; }
    public static void main(String[] arguments) { int s = 0; while (s != 7) s = outer() | 8; }
}
";

#[test]
fn code_of_java_has_names_after_what_is_advised() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let source = targets.folder.join("Burn.java");
    fs::write(&source, BURN).unwrap();
    let compiled = Command::new("/usr/bin/javac").arg(&source).output();
    let compiled = compiled.expect("run javac (Debian package default-jdk-headless)");
    assert!(compiled.status.success(), "{compiled:?}");
    let target = targets
        .launch(Path::new("/usr/bin/java"), "names-java")
        .args(["-XX:+PreserveFramePointer", "-cp"])
        .args([&targets.folder])
        .args(["Burn"])
        .start()
        .unwrap();
    burn(&target, Duration::from_secs(2));
    let id = profile(&agent, target.pid());
    let plain = names(&agent, &id);
    let (title, frames, samples) = runtime(&plain);
    assert_eq!(title, "Java", "{plain}");
    assert_eq!(frames, number(&plain, "jit"), "{plain}");
    assert!(samples * 10 >= number(&plain, "samples") * 9, "{plain}");
    let remedy = plain["runtimes"][0]["remedy"].as_str().unwrap();
    assert!(remedy.contains("jcmd PID Compiler.perfmap"), "{remedy}");

    let asked = Command::new("/usr/bin/jcmd")
        .args([&target.pid().to_string(), "Compiler.perfmap"])
        .output()
        .expect("run jcmd (Debian package default-jdk-headless)");
    assert!(asked.status.success(), "{asked:?}");
    let id = profile(&agent, target.pid());
    let (told, folded) = (names(&agent, &id), folded(&agent, &id));
    let _removed = fs::remove_file(format!("/tmp/perf-{}.map", target.pid()));
    assert!(
        number(&told, "jit") * 20 <= number(&told, "frames"),
        "{told}"
    );
    let burns = folded.count(|stack| {
        let leaf = stack.frames.last();
        leaf.is_some_and(|leaf| leaf.contains("Burn.burns") || leaf.contains("Burn.outer"))
    });
    assert_measured!(burns * 10 >= folded.total() * 8, "{}", folded.summary());
}

#[test]
fn a_perf_map_of_an_earlier_process_is_not_believed_and_said() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let target = targets
        .launch(Path::new("/usr/bin/node"), "names-old-map")
        .args(["-e", SCRIPT])
        .start()
        .unwrap();
    let path = format!("/tmp/perf-{}.map", target.pid());
    fs::write(&path, "1000 7ffffffff000 of_another\n").unwrap();
    let old = std::time::SystemTime::now() - Duration::from_hours(1);
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(old).unwrap();
    burn(&target, Duration::from_secs(1));
    let id = profile(&agent, target.pid());
    let (folded, task) = (folded(&agent, &id), agent.api.task(&id).unwrap());
    fs::remove_file(&path).unwrap();
    assert!(folded.share("of_another") < 0.1, "{}", folded.summary());
    let note = format!(
        "the perf map of process {} was last written before",
        target.pid()
    );
    assert!(task["notes"].to_string().contains(&note), "{task}");
}

/// A debuginfod server that has one file.
fn debuginfod(build_id: &str, content: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let known = format!("GET /buildid/{build_id}/debuginfo ");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let request = lines.next().unwrap().unwrap();
            while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
            let (status, body) = if request.starts_with(&known) {
                ("200 OK", content.as_slice())
            } else {
                ("404 Not Found", &[][..])
            };
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(body).unwrap();
        }
    });
    url
}

#[test]
fn a_debuginfod_server_is_asked_only_when_one_is_configured() {
    let stripped = Stripped::new(Workload::SharesC, "names-fetched");
    let url = debuginfod(&stripped.build_id, fs::read(&stripped.full).unwrap());
    let target = stripped.start();
    let agent = Agent::start_with(ServeOptions {
        arguments: vec![format!("--debuginfod={url}")],
        ..ServeOptions::default()
    })
    .unwrap();
    // The first look at the program makes the agent ask; the answer names what was sampled.
    let id = profile(&agent, target.pid());
    let has_file = || {
        let list = agent.api.get_json("/api/v1/symbols").unwrap();
        let items = list["items"].as_array().unwrap().clone();
        items.iter().any(|item| {
            item["build_id"] == stripped.build_id.as_str() && item["origin"] == "debuginfod"
        })
    };
    wait_until("the debug file is fetched", START, has_file).unwrap();
    check_named(&agent, &id, "debuginfod");
}
