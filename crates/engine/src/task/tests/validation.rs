use profiler_model::{
    EdgeSpec, LoopRules, Recording, RequestOptions, RequestSpec, SampleKind, SampleSpec, Target,
    TaskSpec, WaitMode, WaitRules,
};

use crate::task::{TaskError, validate};

fn on_node(recording: Recording) -> TaskSpec {
    TaskSpec {
        target: Target::All,
        duration_s: Some(1),
        recording,
    }
}

fn samples(samples: SampleSpec) -> TaskSpec {
    on_node(Recording::Samples(samples))
}

/// The field that is refused, and why.
fn refusal(spec: &TaskSpec) -> Option<(&'static str, String)> {
    match validate(spec) {
        Ok(()) => None,
        Err(TaskError::InvalidSpec { field, detail }) => Some((field, detail)),
        Err(error) => panic!("{error}"),
    }
}

fn check(
    target: Target,
    duration_s: Option<u64>,
    frequency_hz: u32,
    expected: Option<(&str, &str)>,
) {
    let spec = TaskSpec {
        target,
        duration_s,
        recording: Recording::Samples(SampleSpec {
            frequency_hz,
            ..SampleKind::OnCpu.into()
        }),
    };
    let refused = refusal(&spec);
    let refused = refused
        .as_ref()
        .map(|(field, detail)| (*field, detail.as_str()));
    assert_eq!(refused, expected, "{spec:?}");
}

type Change = fn(&mut RequestOptions);

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
fn the_threshold_of_event_loops_is_within_bounds() {
    let spec = |kind: SampleKind, threshold_ms| {
        samples(SampleSpec {
            event_loop: Some(LoopRules { threshold_ms }),
            ..kind.into()
        })
    };
    for kind in SampleKind::ALL {
        for threshold_ms in [1, 60_000] {
            assert_eq!(refusal(&spec(kind, threshold_ms)), None);
        }
    }
    for threshold_ms in [0, 60_001] {
        let detail =
            format!("event_loop.threshold_ms must be between 1 and 60000, got {threshold_ms}");
        assert_eq!(
            refusal(&spec(SampleKind::OnCpu, threshold_ms)),
            Some(("event_loop.threshold_ms", detail))
        );
    }
}

#[test]
fn what_has_no_fields_of_its_own_holds() {
    for timed in [false, true] {
        let edges = EdgeSpec { timed };
        let requests = RequestSpec {
            edges,
            options: RequestOptions::default(),
        };
        assert_eq!(refusal(&on_node(Recording::Edges(edges))), None);
        assert_eq!(refusal(&on_node(Recording::Requests(requests))), None);
    }
}

#[test]
fn fields_about_waits_are_not_for_kinds_without_them() {
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
    for (kind, waits, wakers, refused) in [
        (SampleKind::OnCpu, mode, false, None),
        (SampleKind::OnCpu, least, false, Some("min_wait_ns")),
        (SampleKind::OnCpu, most, false, Some("max_wait_ns")),
        (SampleKind::OnCpu, none, true, Some("wakers")),
        (SampleKind::OffCpu, least, true, None),
        (SampleKind::Wall, most, true, None),
    ] {
        let spec = samples(SampleSpec {
            waits,
            wakers,
            ..kind.into()
        });
        let field = refusal(&spec).map(|(field, _)| field);
        assert_eq!(field, refused, "{spec:?}");
    }
}

#[test]
fn options_of_requests_are_within_bounds() {
    let cases: [(Change, Option<&str>); 7] = [
        (|_| {}, None),
        (
            |options| options.tls_duty_percent = 0,
            Some("tls_duty_percent"),
        ),
        (
            |options| options.tls_duty_percent = 101,
            Some("tls_duty_percent"),
        ),
        (|options| options.capture_bytes = 63, Some("capture_bytes")),
        (
            |options| options.capture_bytes = 16_321,
            Some("capture_bytes"),
        ),
        (|options| options.cpu_percent = 0, Some("cpu_percent")),
        (|options| options.cpu_percent = 101, Some("cpu_percent")),
    ];
    for (change, refused) in cases {
        let mut options = RequestOptions::default();
        change(&mut options);
        let spec = on_node(Recording::Requests(RequestSpec {
            edges: EdgeSpec::default(),
            options,
        }));
        let field = refusal(&spec).map(|(field, _)| field);
        assert_eq!(field, refused, "{spec:?}");
    }
}

#[test]
fn what_is_read_at_sockets_needs_them_among_the_sources() {
    let refusal = |change: fn(&mut RequestOptions)| {
        let mut options = RequestOptions {
            access_log: true,
            sockets: false,
            ..RequestOptions::default()
        };
        change(&mut options);
        let options = RequestSpec {
            edges: EdgeSpec::default(),
            options,
        };
        refusal(&on_node(Recording::Requests(options)))
    };
    assert_eq!(refusal(|_| {}), None);
    assert_eq!(refusal(|options| options.raw_paths = true), None);
    assert_eq!(refusal(|options| options.samples_all = true), None);
    let cases: [(&str, Change); 4] = [
        ("tls", |options| options.tls = true),
        ("bodies", |options| options.bodies = true),
        ("capture_bytes", |options| options.capture_bytes = 2048),
        ("cpu_percent", |options| options.cpu_percent = 10),
    ];
    for (field, change) in cases {
        let detail = format!(
            "{field} is about what is read at sockets, which are not in source: add sockets to source, or leave it out"
        );
        assert_eq!(refusal(change), Some((field, detail)));
    }
    assert_eq!(
        refusal(|options| options.access_log = false),
        Some((
            "source",
            "source must have access_log or sockets".to_owned()
        ))
    );
}

/// Any other path would be opened with the agent's capabilities, and its error would tell what is there.
#[test]
fn nothing_but_a_namespace_is_a_network_namespace() {
    let check = |path: &str| {
        let spec = TaskSpec {
            target: Target::NetworkNamespace(path.to_owned()),
            ..on_node(Recording::Edges(EdgeSpec::default()))
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
    let of_samples = TaskSpec {
        target: Target::NetworkNamespace("/run/netns/blue".to_owned()),
        ..samples(SampleKind::Wall.into())
    };
    assert_eq!(
        refusal(&of_samples),
        Some((
            "target.network_namespace",
            "target.network_namespace is for tasks of kind network and requests".to_owned()
        ))
    );
}
