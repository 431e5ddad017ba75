use std::{
    collections::BTreeMap,
    process::{Child, Command, Stdio},
    thread::sleep,
};

use profiler_model::{Container, ContainerNames, ContainerRole, NamedBy};

use super::*;
use crate::process::{ContainerMatch, FindContainerError, containers::container_of};

const ID: &str = "4f1c0e6b7a2d98533d1e0a7b6c5d4e3f2a1b0c9d8e7f60514233241506f7e8d9";
const TWIN: &str = "4f1c0e6b7a2d98533d1e0a7b6c5d4e3f2a1b0c9d8e7f60514233241506f7ffff";

/// A child that is killed when the test ends.
struct Running(Child);

impl Running {
    fn start(program: &str, arguments: &[&str]) -> Self {
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .spawn();
        Self(child.unwrap_or_else(|error| panic!("start {program}: {error}")))
    }

    fn key(&self) -> ProcessKey {
        ProcessKey {
            pid: self.0.id(),
            start_ticks: read_stat(self.0.id()).unwrap().start_ticks,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn event(kind: ProcessEventKind, key: ProcessKey, parent_pid: u32) -> ProcessEvent {
    let ProcessKey { pid, start_ticks } = key;
    ProcessEvent {
        kind,
        pid,
        parent_pid,
        start_ticks,
        time_ns: 0,
    }
}

/// Waits until a child's exec is complete. The kernel sets the new name first and the new arguments
/// a moment later; the tracepoint that reports an exec comes after both.
fn wait_for_exec(pid: u32, comm: &str) {
    let deadline = Instant::now() + Duration::from_mins(1);
    let arguments = format!("/proc/{pid}/cmdline");
    while read_stat(pid).unwrap().comm != comm || std::fs::read(&arguments).unwrap().is_empty() {
        assert!(Instant::now() < deadline, "{pid} never became {comm}");
        std::thread::yield_now();
    }
}

fn table_with(processes: &[(u32, &str, &str)]) -> ProcessTable {
    let table = ProcessTable::new();
    for (pid, comm, cgroup) in processes {
        let process = Arc::new(Process {
            key: ProcessKey {
                pid: *pid,
                start_ticks: 1,
            },
            parent_pid: 1,
            comm: (*comm).into(),
            exe: Some("/bin/parent".into()),
            cmdline: vec!["parent".into()],
            uid: 0,
            user: None,
            cgroup: (*cgroup).into(),
            container: container_of(cgroup).map(|seen| seen.container),
            network_namespace: Some(1),
            threads: 3,
            rss_bytes: 4096,
            cpu_percent: Some(1.0),
            kernel_thread: false,
        });
        table.write_entries().insert(
            *pid,
            Entry {
                process,
                reading: None,
                inherited: false,
            },
        );
    }
    table
}

#[test]
fn refresh_reads_all_of_a_process() {
    let child = Running::start("/bin/sleep", &["1000"]);
    wait_for_exec(child.0.id(), "sleep");
    let table = ProcessTable::new();
    table.refresh();
    let process = table.get(child.0.id()).unwrap();
    assert_eq!(process.key, child.key());
    assert_eq!(process.parent_pid, std::process::id());
    assert_eq!(process.comm, "sleep");
    assert_eq!(process.cmdline, ["/bin/sleep", "1000"]);
    assert!(
        process.exe.as_deref().unwrap().starts_with('/'),
        "{process:?}"
    );
    assert_eq!(process.uid, rustix::process::geteuid().as_raw());
    assert!(process.cgroup.starts_with('/'));
    assert!(process.network_namespace.is_some() && process.rss_bytes > 0);
    assert_eq!((process.threads, process.kernel_thread), (1, false));
    assert_eq!(process.cpu_percent, None, "one reading is not enough");
    let pids: Vec<u32> = table
        .snapshot()
        .iter()
        .map(|process| process.key.pid)
        .collect();
    assert!(pids.is_sorted() && pids.contains(&child.0.id()));
    assert!(table.pids_named("sleep").contains(&child.0.id()));
    assert_eq!(table.pids_named("no such name"), Vec::<u32>::new());
}

#[test]
fn cpu_share_covers_the_last_interval_only() {
    let table = ProcessTable::new();
    let start = Instant::now();
    let at = |seconds: f64, ticks| Reading {
        ticks,
        at: start + Duration::from_secs_f64(seconds),
    };
    let per_second = rustix::param::clock_ticks_per_second();
    let (share, kept) = table.cpu_share(None, Some(at(0.0, 1000)), at(2.0, 1000 + per_second));
    assert!((share.unwrap() - 50.0).abs() < 1e-9, "{share:?}");
    assert_eq!(kept.ticks, 1000 + per_second);
    // Too soon: the older share and the older reading stay.
    let (share, kept) = table.cpu_share(Some(7.0), Some(at(0.0, 10)), at(0.1, 20));
    assert_eq!((share, kept.ticks), (Some(7.0), 10));
    // Too long ago.
    let (share, _) = table.cpu_share(Some(7.0), Some(at(0.0, 10)), at(60.0, 20));
    assert_eq!(share, None);
    assert_eq!(table.cpu_share(None, None, at(0.0, 0)).0, None);
}

#[test]
fn a_busy_process_shows_its_share() {
    let child = Running::start("/bin/sh", &["-c", "while :; do :; done"]);
    let table = ProcessTable::new();
    table.refresh();
    sleep(Duration::from_millis(500));
    table.refresh();
    let share = table.get(child.0.id()).unwrap().cpu_percent.unwrap();
    // Other programs may have most of the CPU at this moment.
    assert!(share > 0.0 && share < 115.0, "{share}");
}

#[test]
fn fork_inherits_from_the_parent_without_reading() {
    let table = table_with(&[(900_000_000, "parent", "/docker/x")]);
    let mut changes = table.subscribe();
    let key = ProcessKey {
        pid: 900_000_001,
        start_ticks: 5,
    };
    table.observe(&event(ProcessEventKind::Fork, key, 900_000_000));
    let child = table.get(key.pid).unwrap();
    assert_eq!(child.key, key);
    assert_eq!(
        (child.comm.as_str(), child.cgroup.as_str()),
        ("parent", "/docker/x")
    );
    assert_eq!(
        (child.parent_pid, child.threads, child.cpu_percent),
        (900_000_000, 1, None)
    );
    assert!(matches!(changes.try_recv(), Ok(ProcessChange::Started(seen)) if seen.key == key));
    // A repeated event changes nothing.
    table.observe(&event(ProcessEventKind::Fork, key, 900_000_000));
    assert!(changes.try_recv().is_err());
}

#[test]
fn exec_is_read_again() {
    let mut child = Running::start("/bin/sh", &["-c", "read x; exec sleep 1000"]);
    let key = child.key();
    let table = ProcessTable::new();
    table.observe(&event(ProcessEventKind::Fork, key, 0));
    drop(child.0.stdin.take());
    wait_for_exec(key.pid, "sleep");
    table.observe(&event(ProcessEventKind::Exec, key, 0));
    let process = table.get(key.pid).unwrap();
    assert_eq!((process.key, process.comm.as_str()), (key, "sleep"));
    assert_eq!(process.cmdline, ["sleep", "1000"]);
}

#[test]
fn exit_removes_only_the_same_process() {
    let table = table_with(&[(900_000_000, "old", "/")]);
    let mut changes = table.subscribe();
    let other = ProcessKey {
        pid: 900_000_000,
        start_ticks: 99,
    };
    table.observe(&event(ProcessEventKind::Exit, other, 0));
    assert!(table.get(900_000_000).is_some());
    let same = ProcessKey {
        pid: 900_000_000,
        start_ticks: 1,
    };
    table.observe(&event(ProcessEventKind::Exit, same, 0));
    assert!(table.get(900_000_000).is_none());
    assert!(matches!(changes.try_recv(), Ok(ProcessChange::Exited(key)) if key == same));
}

#[test]
fn a_reused_pid_is_another_process() {
    let table = table_with(&[(900_000_000, "old", "/"), (900_000_001, "parent", "/")]);
    let mut changes = table.subscribe();
    let new = ProcessKey {
        pid: 900_000_000,
        start_ticks: 2,
    };
    table.observe(&event(ProcessEventKind::Fork, new, 900_000_001));
    assert_eq!(table.get(900_000_000).unwrap().key, new);
    let first = changes.try_recv().unwrap();
    assert!(
        matches!(first, ProcessChange::Exited(key) if key.start_ticks == 1),
        "{first:?}"
    );
    let second = changes.try_recv().unwrap();
    assert!(
        matches!(&second, ProcessChange::Started(seen) if seen.key == new),
        "{second:?}"
    );
}

#[test]
fn refresh_reports_what_started_and_what_exited_unseen() {
    let table = table_with(&[(900_000_000, "gone", "/")]);
    let mut changes = table.subscribe();
    table.refresh();
    let mut started = 0;
    let mut exited = Vec::new();
    loop {
        match changes.try_recv() {
            Ok(ProcessChange::Started(_)) => started += 1,
            Ok(ProcessChange::Exited(key)) => exited.push(key.pid),
            Ok(ProcessChange::Refreshed) => break,
            Err(error) => panic!("no Refreshed: {error}"),
        }
    }
    assert!(started > 0);
    assert_eq!(exited, [900_000_000]);
}

#[test]
fn threads_have_names_and_times() {
    let handle = std::thread::Builder::new().name("my-thread".into());
    let (stop, wait) = std::sync::mpsc::channel::<()>();
    let (ready, started) = std::sync::mpsc::channel();
    let handle = handle
        .spawn(move || {
            ready.send(()).unwrap();
            wait.recv().unwrap_err();
        })
        .unwrap();
    started.recv().unwrap();
    let pid = std::process::id();
    let key = ProcessKey {
        pid,
        start_ticks: read_stat(pid).unwrap().start_ticks,
    };
    let table = ProcessTable::new();
    let threads = table.threads(key);
    assert!(
        threads.iter().any(|thread| thread.name == "my-thread"),
        "{threads:?}"
    );
    assert!(threads.iter().any(|thread| thread.tid == pid));
    assert!(threads.is_sorted_by_key(|thread| thread.tid));
    drop(stop);
    handle.join().unwrap();
    let other = ProcessKey {
        start_ticks: key.start_ticks + 1,
        ..key
    };
    assert_eq!(table.threads(other), []);
}

#[test]
fn containers_are_found_by_id_and_by_unambiguous_prefix() {
    let docker = format!("/docker/{ID}");
    let nested = format!("/docker/{ID}/init");
    let scope = format!("/x.slice/cri-containerd-{TWIN}.scope");
    let table = table_with(&[(9, "a", &docker), (8, "b", &nested), (7, "c", &scope)]);
    let seen = table.find_container(ID).unwrap();
    let expected = ContainerMatch {
        id: ID.into(),
        runtime: "docker".into(),
        cgroups: vec![docker],
        pids: vec![8, 9],
    };
    assert_eq!(seen, expected);
    assert_eq!(table.find_container(&ID[..61]).unwrap().id, ID);
    assert_eq!(
        table
            .find_container(&TWIN[..62].to_uppercase())
            .unwrap()
            .cgroups,
        [scope]
    );
    let shared = &ID[..12];
    assert_eq!(
        table.find_container(shared),
        Err(FindContainerError::Ambiguous {
            prefix: shared.into(),
            matches: 2
        })
    );
    let missing = "ffffffffffff";
    assert_eq!(
        table.find_container(missing),
        Err(FindContainerError::NotFound {
            prefix: missing.into()
        })
    );
    for prefix in ["", "4f1c0e6b7a2", "4f1c0e6b7a2/", "../../../../../.."] {
        let seen = table.find_container(prefix);
        assert!(
            matches!(seen, Err(FindContainerError::InvalidPrefix { .. })),
            "{seen:?}"
        );
    }
}

#[test]
fn container_of_a_process_follows_its_cgroup() {
    let table = table_with(&[(9, "a", &format!("/docker/{ID}"))]);
    let container = table.get(9).unwrap().container.clone();
    assert_eq!(
        container,
        Some(Container {
            id: ID.into(),
            runtime: "docker".into(),
            pod_uid: None,
        })
    );
}

#[test]
fn a_cgroup_inside_of_a_container_is_another_one_only_when_a_runtime_says_so() {
    const VICTIM: &str = "bbbb0e6b7a2d98533d1e0a7b6c5d4e3f2a1b0c9d8e7f60514233241506f7e8d9";
    const INNER: &str = "cccc0e6b7a2d98533d1e0a7b6c5d4e3f2a1b0c9d8e7f60514233241506f7e8d9";
    let forged = format!("/docker/{ID}/docker-{VICTIM}.scope");
    let real = format!("/docker/{ID}/docker/{INNER}/init");
    let table = table_with(&[
        (1, "victim", &format!("/docker/{VICTIM}")),
        (2, "attacker", &forged),
        (3, "nested", &real),
        (
            4,
            "unknown",
            &format!("/docker/{ID}/docker/{}", "d".repeat(64)),
        ),
    ]);
    let named = |name: &str| ContainerNames {
        name: name.to_owned(),
        role: ContainerRole::Main,
        image: None,
        pod: None,
        labels: BTreeMap::new(),
        workload: None,
        named_by: NamedBy::Docker,
    };
    // The runtime knows all but one.
    let known = [ID, VICTIM, INNER].map(|id| (id.to_owned(), named(id)));
    table.names().restore(known.to_vec());
    table.confirm_nested(&mut table.write_entries());
    let id_of = |pid| table.get(pid).unwrap().container.clone().unwrap().id;
    assert_eq!([1, 2, 3].map(id_of), [VICTIM, ID, INNER]);
    assert_eq!(id_of(4), ID);
    let found = table.find_container(VICTIM).unwrap();
    assert_eq!(found.pids, [1]);
    let inner = table.find_container(INNER).unwrap();
    assert_eq!(inner.cgroups, [format!("/docker/{ID}/docker/{INNER}")]);
}

/// Not a benchmark, but a bound that a rescan with full reads of every process would break.
#[test]
fn refresh_of_known_processes_is_cheap() {
    let table = ProcessTable::new();
    table.refresh();
    let count = u32::try_from(table.snapshot().len()).unwrap();
    let before = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    for _ in 0..20 {
        table.refresh();
    }
    let after = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let spent = Duration::try_from(after - before).unwrap();
    let each = spent / 20 / count;
    println!("{each:?} for each of {count} processes and refresh");
    assert!(
        each < Duration::from_millis(1),
        "{each:?} for each of {count} processes"
    );
}
