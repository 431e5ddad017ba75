use profiler_model::{LoopRules, RequestOptions, Target, TaskKind, TaskSpec, WaitMode, WaitRules};

use crate::task::{TaskError, validate};

fn check(
    target: Target,
    duration_s: Option<u64>,
    frequency_hz: u32,
    expected: Option<(&str, &str)>,
) {
    let spec = TaskSpec {
        kind: TaskKind::OnCpu,
        target,
        duration_s,
        frequency_hz,
        wakers: false,
        event_loop: None,
        requests: None,
        timed: false,
        waits: WaitRules::default(),
    };
    match (validate(&spec), expected) {
        (Ok(()), None) => {}
        (Err(TaskError::InvalidSpec { field, detail }), Some(expected)) => {
            assert_eq!((field, detail.as_str()), expected);
        }
        (result, expected) => panic!("{spec:?}: {result:?} instead of {expected:?}"),
    }
}

#[test]
fn bounds_of_duration_and_frequency() {
    for duration in [None, Some(1), Some(3600)] {
        check(Target::All, duration, 99, None);
    }
    for frequency in [1, 4999] {
        check(Target::All, Some(1), frequency, None);
    }
    check(
        Target::All,
        Some(1_000_000_000),
        99,
        Some((
            "duration_s",
            "duration_s must be between 1 and 3600, got 1000000000",
        )),
    );
    check(
        Target::All,
        Some(0),
        99,
        Some(("duration_s", "duration_s must be between 1 and 3600, got 0")),
    );
    for frequency in [0, 5000, u32::MAX] {
        let text = format!("frequency_hz must be between 1 and 4999, got {frequency}");
        check(Target::All, None, frequency, Some(("frequency_hz", &text)));
    }
}

#[test]
fn pids() {
    let check = |pids: Vec<u32>, expected: Option<&str>| {
        check(
            Target::Pids(pids),
            None,
            99,
            expected.map(|text| ("target.pids", text)),
        );
    };
    check(vec![1], None);
    check((1..=4096).collect(), None);
    check(vec![], Some("target.pids must name at least one process"));
    check(
        (1..=4097).collect(),
        Some("target.pids must name at most 4096 processes, got 4097"),
    );
    check(
        vec![5, 0],
        Some("target.pids must be between 1 and 2147483647, got 0"),
    );
    check(
        vec![u32::MAX],
        Some("target.pids must be between 1 and 2147483647, got 4294967295"),
    );
}

#[test]
fn names_of_containers_cgroups_and_commands() {
    let container = |id: &str, expected: Option<&str>| {
        let expected = expected.map(|text| ("target.container", text));
        check(Target::Container(id.to_owned()), None, 99, expected);
    };
    container(&"0123456789ab".repeat(5), None);
    container("0123456789ab", None);
    container(
        "0123",
        Some("target.container must be 12 to 128 characters of a container id, got 4"),
    );
    container(
        "0123456789ab/../..",
        Some("target.container must consist of letters, digits, '-', '_' and '.'"),
    );
    let cgroup = |path: &str, expected: Option<&str>| {
        check(
            Target::Cgroup(path.to_owned()),
            None,
            99,
            expected.map(|text| ("target.cgroup", text)),
        );
    };
    cgroup("/", None);
    cgroup("/system.slice/a b", None);
    cgroup(
        "",
        Some("target.cgroup must be an absolute path, as /system.slice"),
    );
    cgroup(
        "/a/../b",
        Some("target.cgroup must not contain \"..\" or NUL"),
    );
    cgroup(
        &format!("/{}", "x".repeat(4096)),
        Some("target.cgroup must be at most 4096 bytes, got 4097"),
    );
    let comm = |comm: &str, expected: Option<&str>| {
        check(
            Target::Comm(comm.to_owned()),
            None,
            99,
            expected.map(|text| ("target.comm", text)),
        );
    };
    comm("envoy", None);
    comm("", Some("target.comm must not be empty"));
    comm(
        "sixteen-letters!",
        Some("target.comm must be at most 15 bytes, got 16"),
    );
    comm("a\0b", Some("target.comm must not contain NUL"));
}

#[test]
fn event_loops_are_watched_beside_samples_with_a_threshold_within_bounds() {
    let check = |kind, threshold_ms, expected: Option<(&str, &str)>| {
        let spec = TaskSpec {
            kind,
            target: Target::All,
            duration_s: Some(1),
            frequency_hz: 99,
            wakers: false,
            event_loop: Some(LoopRules { threshold_ms }),
            requests: None,
            timed: false,
            waits: WaitRules::default(),
        };
        let refused = match validate(&spec) {
            Ok(()) => None,
            Err(TaskError::InvalidSpec { field, detail }) => Some((field, detail)),
            Err(error) => panic!("{error}"),
        };
        let refused = refused
            .as_ref()
            .map(|(field, detail)| (*field, detail.as_str()));
        assert_eq!(refused, expected);
    };
    for kind in TaskKind::PROFILES {
        check(kind, 1, None);
        check(kind, 60_000, None);
    }
    let bounds = |got| format!("event_loop.threshold_ms must be between 1 and 60000, got {got}");
    for threshold_ms in [0, 60_001] {
        let detail = bounds(threshold_ms);
        check(
            TaskKind::OnCpu,
            threshold_ms,
            Some(("event_loop.threshold_ms", &detail)),
        );
    }
    check(
        TaskKind::Network,
        20,
        Some((
            "event_loop",
            "event loops are watched beside samples, which network does not take: take on_cpu, \
             off_cpu or wall",
        )),
    );
}

#[test]
fn only_network_tasks_are_timed() {
    let spec = |kind| TaskSpec {
        kind,
        target: Target::All,
        duration_s: Some(1),
        frequency_hz: 99,
        wakers: false,
        event_loop: None,
        requests: None,
        timed: true,
        waits: WaitRules::default(),
    };
    validate(&spec(TaskKind::Network)).unwrap();
    validate(&spec(TaskKind::Requests)).unwrap();
    for kind in TaskKind::PROFILES {
        let Err(TaskError::InvalidSpec { field, detail }) = validate(&spec(kind)) else {
            panic!("{kind:?} cannot be timed");
        };
        let name = kind.name();
        assert_eq!(field, "timed");
        assert_eq!(
            detail,
            format!("timed measures system calls on sockets, which {name} does not: take network")
        );
    }
}

#[test]
fn fields_about_samples_and_waits_are_not_for_tasks_without_them() {
    let spec = |kind, frequency_hz, waits| TaskSpec {
        kind,
        target: Target::All,
        duration_s: Some(1),
        frequency_hz,
        wakers: false,
        event_loop: None,
        requests: None,
        timed: false,
        waits,
    };
    let none = WaitRules::default();
    let least = WaitRules { min_ns: 5, ..none };
    let most = WaitRules {
        max_ns: Some(5),
        ..none
    };
    let mode = WaitRules {
        mode: Some(WaitMode::Every),
        ..none
    };
    for (kind, frequency_hz, waits, refused) in [
        (TaskKind::Network, 99, none, None),
        (TaskKind::Network, 100, none, Some("frequency_hz")),
        (TaskKind::Network, 99, least, Some("min_wait_ns")),
        (TaskKind::Network, 99, most, Some("max_wait_ns")),
        (TaskKind::Network, 99, mode, Some("off_cpu_mode")),
        (TaskKind::Requests, 99, none, None),
        (TaskKind::Requests, 100, none, Some("frequency_hz")),
        (TaskKind::Requests, 99, mode, Some("off_cpu_mode")),
        (TaskKind::OnCpu, 100, mode, None),
        (TaskKind::OnCpu, 100, least, Some("min_wait_ns")),
        (TaskKind::OnCpu, 100, most, Some("max_wait_ns")),
        (TaskKind::OffCpu, 100, least, None),
        (TaskKind::Wall, 100, most, None),
    ] {
        let found = match validate(&spec(kind, frequency_hz, waits)) {
            Err(TaskError::InvalidSpec { field, .. }) => Some(field),
            Err(other) => panic!("{other}"),
            Ok(()) => None,
        };
        assert_eq!(found, refused, "{kind:?} {frequency_hz} {waits:?}");
    }
}

#[test]
fn options_of_requests_are_within_bounds_and_only_for_them() {
    let none = RequestOptions::default();
    let with = |change: fn(&mut RequestOptions)| {
        let mut options = none.clone();
        change(&mut options);
        options
    };
    for (kind, options, refused) in [
        (TaskKind::Requests, none.clone(), None),
        (TaskKind::Network, none.clone(), Some("requests")),
        (TaskKind::OnCpu, none.clone(), Some("requests")),
        (
            TaskKind::Requests,
            with(|options| options.tls_duty_percent = 0),
            Some("tls_duty_percent"),
        ),
        (
            TaskKind::Requests,
            with(|options| options.tls_duty_percent = 101),
            Some("tls_duty_percent"),
        ),
        (
            TaskKind::Requests,
            with(|options| options.capture_bytes = 63),
            Some("capture_bytes"),
        ),
        (
            TaskKind::Requests,
            with(|options| options.capture_bytes = 16_321),
            Some("capture_bytes"),
        ),
        (
            TaskKind::Requests,
            with(|options| options.cpu_percent = 0),
            Some("cpu_percent"),
        ),
        (
            TaskKind::Requests,
            with(|options| options.cpu_percent = 101),
            Some("cpu_percent"),
        ),
    ] {
        let spec = TaskSpec {
            kind,
            target: Target::All,
            duration_s: Some(1),
            frequency_hz: 99,
            wakers: false,
            event_loop: None,
            requests: Some(options.clone()),
            timed: false,
            waits: WaitRules::default(),
        };
        let found = match validate(&spec) {
            Err(TaskError::InvalidSpec { field, .. }) => Some(field),
            Err(other) => panic!("{other}"),
            Ok(()) => None,
        };
        assert_eq!(found, refused, "{kind:?} {options:?}");
    }
}

/// Any other path would be opened with the agent's capabilities, and its error would tell what is there.
#[test]
fn nothing_but_a_namespace_is_a_network_namespace() {
    let check = |path: &str| {
        let spec = TaskSpec {
            kind: TaskKind::Network,
            target: Target::NetworkNamespace(path.to_owned()),
            duration_s: Some(1),
            frequency_hz: 99,
            wakers: false,
            event_loop: None,
            requests: None,
            timed: false,
            waits: WaitRules::default(),
        };
        validate(&spec).map_err(|error| error.to_string())
    };
    for usual in ["/run/netns/blue", "/var/run/netns/cni-1", "/proc/1/ns/net"] {
        check(usual).unwrap();
    }
    let refused = "target.network_namespace must be /run/netns/NAME, /run/docker/netns/NAME or /proc/PID/ns/net";
    for other in ["/etc/shadow", "/tmp/fifo", "x", "/run/netns/../../tmp/fifo"] {
        assert!(check(other).unwrap_err().ends_with(refused), "{other}");
    }
}
