//! The time that sidecars add to requests, against delays of known size in a sidecar and in the app.

use std::{sync::OnceLock, time::Duration};

use profiler_tests::{
    assert_measured,
    mesh::{Load, Mesh, MeshOptions, Unique, load_report},
    peers::watch::Watch,
};
use serde_json::Value;

use crate::targets::EXIT;

const REQUESTS: u64 = 300;
const CONNECTIONS: u32 = 4;
/// What is added; it must be found within a tenth.
const DELAY: Duration = Duration::from_millis(30);

/// Where the time of the middle one of all requests went in one sidecar, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Parts {
    read_wait: f64,
    to_upstream: f64,
    /// Of the fastest request: it was not preempted.
    least_to_upstream: f64,
    upstream: f64,
    to_client: f64,
    /// The mean of Envoy's own header, in milliseconds, and of what it is compared with.
    header: [f64; 2],
}

/// What the answer says about the way of requests through one sidecar: means in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Way {
    sidecar: f64,
    /// Until the app responds, with the network: only sockets of the sidecars are recorded.
    behind: f64,
    /// The sentence names the app first.
    app_leads: bool,
}

/// What one load met.
#[derive(Clone, Copy, Debug)]
struct Measured {
    client: Parts,
    server: Parts,
    /// Through the server's sidecar.
    way: Way,
    /// What the client took for the middle one of all requests, by its own clock.
    latency: f64,
}

fn measure(mesh: &Mesh, connections: u32) -> Measured {
    let report = mesh.report();
    let envoys = [report.client_envoy_pid, report.server_envoy_pid];
    let watch = Watch::start(&envoys).unwrap();
    // What has a path of its own is in no pair that order decided.
    let load = Load {
        unique: Unique::Path,
        ..Load::new(REQUESTS, connections)
    };
    let load = mesh.start_other_load(load).unwrap();
    let done = load_report(&load.finish(EXIT).unwrap()).unwrap();
    assert_eq!((done.requests, done.errors), (REQUESTS, 0));
    let seen = watch.finish().unwrap();
    seen.check_whole().unwrap();
    let [client, server] = envoys.map(|pid| parts(seen.sidecar(pid).unwrap()));
    let way = way(&seen.json, report.server_envoy_pid);
    let latency = f64::from(u32::try_from(done.latency_us.p50).unwrap()) * 1e3;
    let measured = Measured {
        client,
        server,
        way,
        latency,
    };
    println!("{measured:#?}");
    measured
}

fn way(report: &Value, pid: u32) -> Way {
    let all = report["latency"].as_array().unwrap();
    let found = all.iter().find(|found| found["process"]["pid"] == pid);
    let found = found.unwrap_or_else(|| panic!("nothing of {pid}: {all:#?}"));
    let parts = found["parts"].as_array().unwrap();
    let mean = |is_wanted: &dyn Fn(&Value) -> bool| -> f64 {
        let wanted = parts.iter().filter(|part| is_wanted(part));
        wanted.map(|part| part["mean_ns"].as_f64().unwrap()).sum()
    };
    let text = found["text"].as_str().unwrap();
    let (_, places) = text.split_once(": ").unwrap();
    println!("{text}");
    Way {
        sidecar: mean(&|part| part["process"]["pid"] == pid),
        behind: mean(&|part| part["place"] == "upstream"),
        app_leads: places
            .split(", ")
            .next()
            .unwrap()
            .contains("until mesh-server responds"),
    }
}

fn parts(sidecar: &Value) -> Parts {
    let times = &sidecar["times"];
    let middle = |part: &str| {
        assert_eq!(times[part]["count"], REQUESTS, "{part}: {sidecar}");
        let bounds = &times[part]["bounds"]["p50"];
        f64::midpoint(bounds[0].as_f64().unwrap(), bounds[1].as_f64().unwrap())
    };
    let header = &sidecar["upstream_header"];
    assert_eq!(header["pairs"], REQUESTS, "{sidecar}");
    let mean = |sum: &Value| sum.as_f64().unwrap() / header["pairs"].as_f64().unwrap();
    Parts {
        read_wait: middle("read_wait_ns"),
        to_upstream: middle("to_upstream_ns"),
        least_to_upstream: times["to_upstream_ns"]["min"].as_f64().unwrap(),
        upstream: middle("upstream_ns"),
        to_client: middle("to_client_ns"),
        header: [
            mean(&header["header_ms"]),
            mean(&header["measured_ns"]) / 1e6,
        ],
    }
}

/// Of a mesh in which nothing takes long: over one connection, and over [`CONNECTIONS`].
fn base() -> [Measured; 2] {
    static BASE: OnceLock<[Measured; 2]> = OnceLock::new();
    *BASE.get_or_init(|| {
        let mesh = Mesh::up(&MeshOptions::default()).unwrap();
        [1, CONNECTIONS].map(|connections| measure(&mesh, connections))
    })
}

/// What was measured before and after something was made to take longer.
struct Change {
    delay: Duration,
    truth: Truth,
    before: Measured,
    after: Measured,
}

/// How long something took that was made to take longer.
#[derive(Clone, Copy, Debug)]
enum Truth {
    /// As long as it was told: it looks at the clock itself.
    Exact,
    /// What the client has waited longer: a timer, and what a busy machine adds to it.
    ByClient,
}

impl Change {
    /// By how much a part may be off, in nanoseconds.
    fn tolerance(&self) -> f64 {
        self.delay.as_secs_f64() * 1e9 / 10.0
    }

    #[track_caller]
    fn grew(&self, part: impl Fn(&Measured) -> f64) {
        let added = part(&self.after) - part(&self.before);
        let waited = self.after.latency - self.before.latency;
        let delay = self.delay.as_secs_f64() * 1e9;
        assert_measured!(
            waited >= delay - self.tolerance(),
            "the client waited only {waited} ns longer"
        );
        let truth = match self.truth {
            Truth::Exact => delay,
            Truth::ByClient => waited,
        };
        let off = (added - truth).abs();
        assert_measured!(off <= self.tolerance(), "{added} ns, not {truth} ns");
    }

    #[track_caller]
    fn stayed(&self, part: impl Fn(&Measured) -> f64) {
        let added = part(&self.after) - part(&self.before);
        assert_measured!(added.abs() <= self.tolerance(), "{added} ns were added");
    }
}

/// The header has whole milliseconds, rounded down.
#[track_caller]
fn header_agrees(parts: Parts) {
    let [said, measured] = parts.header;
    assert_measured!(
        (0.0..2.0).contains(&(measured - said)),
        "{measured} ms, and Envoy says {said} ms"
    );
}

#[test]
fn what_a_sidecar_holds_back_is_its_own_time() {
    let mesh = Mesh::up(&MeshOptions {
        inbound_delay: DELAY,
        ..MeshOptions::default()
    });
    let [_, before] = base();
    let change = Change {
        delay: DELAY,
        truth: Truth::ByClient,
        before,
        after: measure(&mesh.unwrap(), CONNECTIONS),
    };
    change.grew(|found| found.server.to_upstream);
    change.grew(|found| found.way.sidecar);
    change.stayed(|found| found.way.behind);
    assert_measured!(!change.after.way.app_leads, "the app is named first");
    change.stayed(|found| found.server.read_wait);
    change.stayed(|found| found.server.upstream);
    change.stayed(|found| found.server.to_client);
    // For the client's sidecar it is the upstream that is slow.
    change.grew(|found| found.client.upstream);
    change.stayed(|found| found.client.read_wait);
    change.stayed(|found| found.client.to_upstream);
    change.stayed(|found| found.client.to_client);
    for found in [change.before, change.after] {
        header_agrees(found.client);
        header_agrees(found.server);
    }
}

#[test]
fn what_the_app_takes_is_time_of_the_upstream_in_both_sidecars() {
    let mesh = Mesh::up(&MeshOptions {
        app_delay: DELAY,
        ..MeshOptions::default()
    });
    let [_, before] = base();
    let change = Change {
        delay: DELAY,
        truth: Truth::ByClient,
        before,
        after: measure(&mesh.unwrap(), CONNECTIONS),
    };
    for of in [
        |found: &Measured| found.client,
        |found: &Measured| found.server,
    ] {
        change.grew(|found| of(found).upstream);
        change.stayed(|found| of(found).read_wait);
        change.stayed(|found| of(found).to_upstream);
        change.stayed(|found| of(found).to_client);
        header_agrees(of(&change.after));
    }
    change.grew(|found| found.way.behind);
    change.stayed(|found| found.way.sidecar);
    assert_measured!(change.after.way.app_leads, "the app is not named first");
}

/// One thread serves all connections: while it works for one request the others wait, to be read or to be
/// sent on.
#[test]
fn work_of_an_event_loop_is_its_own_time_and_a_wait_of_others() {
    const WORK: Duration = Duration::from_millis(10);
    let mesh = Mesh::up(&MeshOptions {
        inbound_work: WORK,
        ..MeshOptions::default()
    });
    let mesh = mesh.unwrap();
    let [before, before_others] = base();
    let alone = Change {
        delay: WORK,
        truth: Truth::Exact,
        before,
        after: measure(&mesh, 1),
    };
    alone.grew(|found| found.server.least_to_upstream);
    alone.stayed(|found| found.server.read_wait);
    alone.stayed(|found| found.server.upstream);
    alone.stayed(|found| found.server.to_client);
    let busy = measure(&mesh, CONNECTIONS);
    let waited = (busy.server.read_wait - before_others.server.read_wait) / 1e6;
    let least = WORK.as_secs_f64() * 1e3;
    let others = f64::from(CONNECTIONS - 1);
    assert_measured!(
        (least * 0.9..least * others * 1.1).contains(&waited),
        "waited {waited} ms to be read"
    );
}
