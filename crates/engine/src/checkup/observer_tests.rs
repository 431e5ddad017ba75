use std::{net::TcpListener, process::Command};

use profiler_model::RequestPoint;

use super::*;

fn observe_for(target: Target, asks_envoys: bool, time: Duration) -> CheckupRecord {
    let observer = Observer::start(target, ProcessTable::new(), asks_envoys).unwrap();
    std::thread::sleep(time);
    observer.finish()
}

/// CPU time and time on the run queue of a process with one thread, from the file itself.
fn schedstat(pid: u32) -> [u64; 2] {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    let mut fields = text.split_whitespace().map(|field| field.parse().unwrap());
    [fields.next().unwrap(), fields.next().unwrap()]
}

#[test]
fn what_a_busy_program_uses_is_what_the_kernel_accounts() {
    let mut busy = Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .spawn()
        .unwrap();
    let pid = busy.id();
    let targets = Targets::new(Target::Pids(vec![pid]));
    let mut watched = WatchedTarget::new(targets, ProcessTable::new(), true);
    let before = schedstat(pid);
    watched.read();
    let began = schedstat(pid);
    // On a busy machine the program may get no CPU for a while.
    let deadline = Instant::now() + Duration::from_mins(1);
    let mut ending = began;
    while ending[0] < began[0] + 50_000_000 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
        ending = schedstat(pid);
    }
    watched.read();
    let after = schedstat(pid);
    busy.kill().unwrap();
    busy.wait().unwrap();
    let Observed {
        from_ns,
        to_ns,
        processes,
        gaps,
    } = watched.finish().observed;
    assert_eq!(gaps, Vec::<String>::new());
    let [process] = processes.as_slice() else {
        panic!("{processes:?}");
    };
    assert_eq!(
        (process.key.pid, process.from_ns, process.to_ns),
        (pid, from_ns, to_ns)
    );
    let thread = &process.threads[0];
    let cpu = process.cpu_ns.difference();
    assert_eq!(thread.cpu_ns.difference(), cpu);
    // However busy the machine is: no less than between the inner readings, no more than between the outer ones.
    let waited = thread.run_queue_ns.unwrap().difference();
    for (index, observed) in [cpu, waited].into_iter().enumerate() {
        let least = ending[index] - began[index];
        let most = after[index] - before[index];
        assert!(
            (least..=most).contains(&observed),
            "{observed} of {least} to {most}"
        );
    }
    assert!(cpu >= 50_000_000, "{cpu}");
    assert!(process.requests.is_none() && process.configuration.is_none());
}

#[test]
fn a_process_that_ends_keeps_its_last_reading() {
    let mut child = Command::new("sleep").arg("30").spawn().unwrap();
    let targets = Targets::new(Target::Pids(vec![child.id()]));
    let mut watched = WatchedTarget::new(targets, ProcessTable::new(), true);
    watched.read();
    watched.read();
    child.kill().unwrap();
    child.wait().unwrap();
    watched.read();
    let observed = watched.finish().observed;
    assert_eq!(observed.processes.len(), 1, "{observed:?}");
    assert_eq!(observed.gaps, Vec::<String>::new());

    let none = observe_for(
        Target::Pids(vec![4_194_305]),
        true,
        Duration::from_millis(50),
    );
    assert!(none.observed.processes.is_empty());
    assert!(
        none.observed.gaps[0].contains("could not be read"),
        "{none:?}"
    );
}

/// A program that is called `envoy` and is none.
fn impostor(folder: &std::path::Path) -> std::process::Child {
    let program = folder.join("envoy");
    std::fs::copy("/bin/sleep", &program).unwrap();
    Command::new(program).arg("30").spawn().unwrap()
}

#[test]
fn an_envoy_without_admin_interface_is_said_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let mut envoy = impostor(folder.path());
    let _unrelated = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = Target::Pids(vec![envoy.id()]);
    let automatic = observe_for(target.clone(), true, Duration::from_millis(200));
    let off = observe_for(target, false, Duration::from_millis(200));
    envoy.kill().unwrap();
    envoy.wait().unwrap();
    for (record, wanted) in [
        (
            automatic,
            "listens on no address that could be its admin interface",
        ),
        (off, "envoy_admin is off"),
    ] {
        let gaps = &record.observed.gaps;
        assert!(gaps.len() == 1 && gaps[0].contains(wanted), "{gaps:?}");
        assert!(record.series.is_empty());
        assert!(record.observed.processes[0].requests.is_none());
        assert!(record.observed.processes[0].configuration.is_none());
    }
}

#[test]
fn requests_and_cpu_time_are_of_the_same_readings() {
    let account = || ProcessAccount::read(std::process::id()).unwrap();
    let at = Instant::now();
    let (first, newest) = (account(), account());
    let mut known = Account {
        first: (at, first.clone()),
        newest: (at + Duration::from_secs(9), newest.clone()),
        cpu_ns: 999,
        quotas: Vec::new(),
    };
    let point = |at_ns, cpu_ns, requests| RequestPoint {
        at_ns,
        cpu_ns,
        requests,
    };
    let counted = Counted {
        first: (at + Duration::from_secs(1), first.clone()),
        newest: (at + Duration::from_secs(3), newest),
        series: RequestSeries {
            key: first.key,
            points: vec![point(0, 0, 100), point(1, 40, 104), point(2, 90, 111)],
        },
    };
    let mut all = Vec::new();
    assert_eq!(known.take(counted, &mut all), 11);
    assert_eq!(all.len(), 1);
    let moment = |time: Instant| nanoseconds(time.duration_since(at));
    let process = known.observed(moment);
    assert_eq!(
        (process.from_ns, process.to_ns),
        (1_000_000_000, 3_000_000_000)
    );
    assert_eq!(process.cpu_ns.difference(), 90);
}
