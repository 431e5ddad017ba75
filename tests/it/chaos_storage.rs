//! A data directory that is full or cannot be written: the agent goes on, says so, and needs no restart.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use profiler_tests::{
    agent::{Agent, ServeOptions, launch_serve},
    cleanup::{Guard, scratch_directory},
    process::Running,
    wait::{wait_for, wait_until},
};
use serde_json::{Value, json};

use crate::targets::{
    EXIT, START, Targets, endless, finish_task, on_cpu, start_task, stop_task, wait_samples,
};

/// Room for some minutes of results.
const MEGABYTES: u32 = 16;
/// For the agent to see that the disk takes nothing, or takes writes again.
const SEEN: Duration = Duration::from_mins(1);

/// A file system of its own, for a data directory.
struct Disk {
    mounted: PathBuf,
    _folder: Guard,
}

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
}

impl Disk {
    fn mount(arguments: &[&str], folder: &Path, guards: Guard) -> Self {
        let mounted = folder.join("mounted");
        fs::create_dir(&mounted).unwrap();
        let place = mounted.to_str().unwrap();
        run("mount", &[arguments, &[place]].concat());
        Self {
            mounted,
            _folder: guards,
        }
    }

    fn in_memory() -> Self {
        let (folder, guards) = scratch_directory("disk").unwrap();
        let size = format!("size={MEGABYTES}m");
        Self::mount(&["-t", "tmpfs", "-o", &size, "tmpfs"], &folder, guards)
    }

    /// ext4 in a file.
    fn ext4() -> Self {
        let (folder, guards) = scratch_directory("disk").unwrap();
        let image = folder.join("image");
        let file = fs::File::create(&image).unwrap();
        file.set_len(u64::from(MEGABYTES) << 20).unwrap();
        let image = image.to_str().unwrap();
        run("mkfs.ext4", &["-q", "-F", image]);
        Self::mount(&["-o", "loop", image], &folder, guards)
    }

    fn remount(&self, options: &str) {
        let options = format!("remount,{options}");
        run("mount", &["-o", &options, self.mounted.to_str().unwrap()]);
    }

    fn data(&self) -> PathBuf {
        self.mounted.join("data")
    }

    fn filler(&self) -> PathBuf {
        self.mounted.join("filler")
    }

    /// Takes all the room that is left.
    fn fill(&self) {
        let mut file = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.filler())
            .unwrap();
        for size in [1 << 16, 1 << 12] {
            while file.write_all(&vec![1; size]).is_ok() {}
        }
    }

    fn agent(&self) -> Agent {
        Agent::start_with(ServeOptions {
            data_dir: Some(self.data()),
            ..ServeOptions::with_arguments(["--profile=always", "--network=always"])
        })
        .unwrap()
    }
}

/// An agent with a result from before the trouble, and a task that lives through it.
struct Scene {
    agent: Agent,
    /// The finished task, and its profile.
    before: (String, String),
    running: String,
}

impl Scene {
    fn new(disk: &Disk, target: &Running) -> Self {
        let agent = disk.agent();
        let pids = json!({ "pids": [target.pid()] });
        let id = start_task(&agent, &on_cpu(pids.clone(), 1, 499));
        finish_task(&agent, &id, 1);
        let folded = agent.api.profile(&id, "folded", "").unwrap().text();
        let running = start_task(&agent, &on_cpu(pids, 600, 499));
        wait_until("the task has samples", START, || {
            samples(&agent, &running) > 200
        })
        .unwrap();
        assert_eq!(ready(&agent), (200, "ready".to_owned()));
        Self {
            agent,
            before: (id, folded),
            running,
        }
    }

    fn notes(&self) -> String {
        self.agent.api.task(&self.running).unwrap()["notes"].to_string()
    }

    /// The agent says what is wrong, answers, and shows what was stored before.
    fn assert_refused(&self, expected: &str, code: u64) {
        let (agent, (id, folded)) = (&self.agent, &self.before);
        wait_until("the agent says that it cannot store", SEEN, || {
            ready(agent) == (503, "cannot_store".to_owned())
        })
        .unwrap_or_else(|error| panic!("{error:#}: {:?}\n{}", ready(agent), agent.log()));
        let notes = wait_for("the task says it", SEEN, || {
            Some(self.notes()).filter(|notes| notes.contains(expected))
        });
        let notes = notes.unwrap_or_else(|error| panic!("{error:#}: {}", self.notes()));
        assert!(notes.contains("kept in memory"), "{notes}");
        for _ in 0..5 {
            assert_eq!(agent.api.profile(id, "folded", "").unwrap().text(), *folded);
            let table = agent.api.get_json("/api/v1/network/edges").unwrap();
            assert_eq!(table["state"], "running", "{}", agent.log());
            assert_eq!(agent.api.get("/healthz").unwrap().status, 200);
            assert_eq!(agent.api.get("/").unwrap().status, 200);
        }
        let seen = samples(agent, &self.running);
        wait_until("the running task goes on", SEEN, || {
            samples(agent, &self.running) > seen + 200
        })
        .unwrap();
        let shown = agent.api.folded(&self.running, "").unwrap().total();
        assert!(shown > seen, "{shown} of {seen}");
        let new = on_cpu(json!({ "all": true }), 1, 99).to_string();
        let refused = agent.api.send("POST", "/api/v1/tasks", Some(&new)).unwrap();
        assert_eq!(u64::from(refused.status), code, "{}", refused.text());
        assert!(refused.text().contains("--data-dir"), "{}", refused.text());
    }
}

fn samples(agent: &Agent, id: &str) -> u64 {
    agent.api.task(id).unwrap()["samples"].as_u64().unwrap()
}

/// Status of `/readyz`, and what it says.
fn ready(agent: &Agent) -> (u16, String) {
    let answer = agent.api.get("/readyz").unwrap();
    let json = answer.json().unwrap();
    let said = if answer.status == 200 {
        &json["status"]
    } else {
        &json["code"]
    };
    (answer.status, said.as_str().unwrap_or_default().to_owned())
}

fn losses(task: &Value) -> u64 {
    let all = task["losses"].as_array().unwrap();
    let of_store = all
        .iter()
        .filter(|loss| loss["kind"] == "store_write_failed");
    of_store.filter_map(|loss| loss["count"].as_u64()).sum()
}

#[test]
fn a_full_disk_takes_nothing_and_needs_no_restart() {
    let disk = Disk::in_memory();
    let targets = Targets::new();
    let target = targets.busy("shares-full");
    let mut scene = Scene::new(&disk, &target);
    disk.fill();
    // What redb has in the file already is used up first.
    wait_until("the disk is full for the agent", EXIT, || {
        disk.fill();
        ready(&scene.agent).0 == 503
    })
    .unwrap();
    scene.assert_refused("No space left on device", 507);
    let stopped = stop_task(&scene.agent, &scene.running);
    assert!(losses(&stopped) > 0, "{stopped:#}");

    // With room again it writes the pending data without any request.
    fs::remove_file(disk.filler()).unwrap();
    wait_until("the agent can store again", SEEN, || {
        ready(&scene.agent).0 == 200
    })
    .unwrap();
    let written = wait_for("what waited is written", SEEN, || {
        let task = scene.agent.api.task(&scene.running).ok()?;
        (losses(&task) == 0).then_some(task)
    })
    .unwrap();
    let notes = written["notes"].to_string();
    assert!(
        notes.contains("has been written to the data directory"),
        "{notes}"
    );
    let next = start_task(
        &scene.agent,
        &endless(json!({ "pids": [target.pid()] }), 499),
    );
    wait_samples(&scene.agent, &next, 200);
    stop_task(&scene.agent, &next);
    let total = scene.agent.api.folded(&scene.running, "").unwrap().total();
    assert_eq!(Some(total), written["samples"].as_u64());
    assert!(
        !scene.agent.log().contains("panicked"),
        "{}",
        scene.agent.log()
    );

    assert!(scene.agent.stop().unwrap().success());
    let again = disk.agent();
    assert_eq!(again.api.folded(&scene.running, "").unwrap().total(), total);
    assert!(again.api.folded(&next, "").unwrap().total() > 100);
}

#[test]
fn a_file_system_that_becomes_read_only_is_said_and_what_it_holds_is_shown() {
    let disk = Disk::ext4();
    let targets = Targets::new();
    let target = targets.busy("shares-ro");
    let mut scene = Scene::new(&disk, &target);
    // As after a disk error: the kernel refuses all writes.
    disk.remount("abort");
    scene.assert_refused("Read-only file system", 503);
    let stopped = stop_task(&scene.agent, &scene.running);
    assert!(losses(&stopped) > 0, "{stopped:#}");
    assert!(
        !scene.agent.log().contains("panicked"),
        "{}",
        scene.agent.log()
    );
    // It ends in time, and says what is gone.
    let status = scene.agent.stop().unwrap();
    assert!(status.success(), "{status}");
    assert!(
        scene.agent.log().contains("could not"),
        "{}",
        scene.agent.log()
    );
}

#[test]
fn a_data_directory_that_cannot_be_written_is_refused_at_start() {
    let disk = Disk::in_memory();
    let mut first = disk.agent();
    assert!(first.stop().unwrap().success());
    drop(first);
    let (logs, _guard) = scratch_directory("refused").unwrap();
    disk.remount("ro");
    let refused = |options: &ServeOptions, expected: &[&str]| {
        let mut second = launch_serve(options, &disk.data(), &logs).unwrap();
        let status = second.wait(START).unwrap();
        let errors = second.errors();
        assert_eq!(status.code(), Some(1), "{errors}");
        for text in expected {
            assert!(errors.contains(text), "no {text:?} in {errors}");
        }
    };
    let place = disk.data().display().to_string();
    refused(
        &ServeOptions::default(),
        &[
            &place,
            "Read-only file system",
            "mount it for writing",
            "--data-dir",
        ],
    );
    disk.remount("rw");
    fs::remove_dir_all(disk.data()).unwrap();
    disk.fill();
    refused(
        &ServeOptions::default(),
        &[
            &place,
            "No space left on device",
            "make room there",
            "--data-dir",
        ],
    );
}
