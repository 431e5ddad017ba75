//! Which request out of a sidecar belongs to which request into it: the agent's pairs against numbers that
//! requests carry and that the agent does not match by.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};

use profiler_tests::{
    mesh::{ADMIN_PORT, Load, Mesh, MeshOptions, Unique, load_report},
    peers::watch::{Edges, Report, Watch},
};
use serde_json::Value;

use crate::targets::EXIT;

const REQUESTS: u64 = 2000;

/// Pairs of a class, and how many are right.
type Classes = BTreeMap<String, [u64; 2]>;

/// Two workers in each sidecar, and answers that come in another order than their requests.
fn mesh(no_request_ids: bool) -> Mesh {
    Mesh::up(&MeshOptions {
        workers: 2,
        no_request_ids,
        app_delay: Duration::from_millis(1),
        app_delay_spread: Duration::from_millis(20),
        ..MeshOptions::default()
    })
    .unwrap()
}

/// Pairs of the client's and of the server's sidecar.
fn pairs(mesh: &Mesh, unique: Unique, connections: u32) -> [Classes; 2] {
    let report = mesh.report();
    let envoys = [report.client_envoy_pid, report.server_envoy_pid];
    let watch = Watch::start(&envoys).unwrap();
    let load = Load {
        requests: REQUESTS,
        connections,
        unique,
        rps: 0,
    };
    let load = mesh.start_other_load(load).unwrap();
    let done = load_report(&load.finish(EXIT).unwrap()).unwrap();
    assert_eq!((done.requests, done.errors), (REQUESTS, 0));
    let seen = watch.finish().unwrap();
    seen.check_whole().unwrap();
    let numbers = numbers(&seen, unique);
    let names = ["client's", "server's"];
    let both = envoys.map(|pid| judge(&seen, pid, &numbers));
    for (name, classes) in names.iter().zip(&both) {
        for (class, [all, right]) in classes {
            println!(
                "{connections} connections, unique {unique:?}, the {name} sidecar: {right} of {all} \
                 pairs by {class} are right"
            );
        }
    }
    both
}

/// What makes a request unique, by the client's end of its connection and its number there.
fn numbers(seen: &Report, unique: Unique) -> HashMap<(String, u64), String> {
    let samples = seen.json["samples"].as_array().unwrap();
    let number = |sample: &Value| match unique {
        Unique::Nothing | Unique::RequestId => panic!("nothing of a sample tells requests apart"),
        Unique::Path => sample["path"].as_str().unwrap().to_owned(),
        Unique::UserAgent => {
            let headers = sample["headers"].as_array().unwrap();
            let named = headers.iter().find(|header| header[0] == "user-agent");
            named.unwrap()[1].as_str().unwrap().to_owned()
        }
    };
    let place = |sample: &Value| place(sample);
    samples
        .iter()
        .map(|sample| (place(sample), number(sample)))
        .collect()
}

fn place(value: &Value) -> (String, u64) {
    let client = value["client"].as_str().unwrap();
    (client.to_owned(), value["stream"].as_u64().unwrap())
}

fn judge(seen: &Report, pid: u32, numbers: &HashMap<(String, u64), String>) -> Classes {
    let sidecar = seen.sidecar(pid).unwrap();
    let counted = ["requests_in", "requests_out", "matched_left_out"];
    let [ins, outs, left_out] = counted.map(|count| sidecar[count].as_u64().unwrap());
    // The agent of a test that runs beside this one asks Envoy for its statistics. One that was not answered yet may not count.
    let asked = seen.samples(Edges::To(ADMIN_PORT)).unwrap();
    let asked: Vec<_> = asked
        .iter()
        .filter(|sample| sample["edge"]["server"]["pid"] == pid)
        .collect();
    let is_open = |sample: &&&&Value| sample["outcome"] == "unknown";
    let open = asked.iter().filter(is_open).count() as u64;
    let most = REQUESTS + asked.len() as u64;
    assert!(
        (most - open..=most).contains(&ins) && [outs, left_out] == [REQUESTS, 0],
        "process {pid} has {ins} requests, {outs} further ones, and without a pair: {:#?}",
        unpaired(seen, pid)
    );
    let mut classes = Classes::new();
    for pair in sidecar["matched"].as_array().unwrap() {
        let class = classes.entry(pair["class"].as_str().unwrap().to_owned());
        let [all, right] = class.or_default();
        *all += 1;
        *right += u64::from(numbers[&place(&pair["in"])] == numbers[&place(&pair["out"])]);
    }
    classes
}

/// Requests into and out of the process that no pair has.
fn unpaired(seen: &Report, pid: u32) -> Vec<&Value> {
    let pairs = seen.sidecar(pid).unwrap()["matched"].as_array().unwrap();
    let paired: HashSet<_> = pairs
        .iter()
        .flat_map(|pair| [place(&pair["in"]), place(&pair["out"])])
        .collect();
    let ends = ["client", "server"];
    let samples = seen.json["samples"].as_array().unwrap();
    samples
        .iter()
        .filter(|sample| ends.iter().any(|end| sample["edge"][end]["pid"] == pid))
        .filter(|sample| !paired.contains(&place(sample)))
        .collect()
}

/// Every pair of the class is right, and there are this many.
#[track_caller]
fn all_right(classes: &Classes, class: &str, pairs: u64) {
    let expected = Classes::from([(class.to_owned(), [pairs, pairs])]);
    assert_eq!(*classes, expected);
}

#[test]
fn pairs_by_request_id_are_right() {
    let mesh = mesh(false);
    for connections in [8, 64] {
        // The client's sidecar makes the id.
        let [_, server] = pairs(&mesh, Unique::UserAgent, connections);
        all_right(&server, "request_id", REQUESTS);
    }
}

/// Over one mesh: by unique paths, and of requests that differ only in a header that the pairing ignores.
#[test]
fn pairs_without_ids_are_right_by_unique_paths_and_only_what_order_decided_may_be_wrong() {
    let mesh = mesh(true);
    for connections in [8, 64] {
        for classes in pairs(&mesh, Unique::Path, connections) {
            all_right(&classes, "fingerprint", REQUESTS);
        }
        for classes in pairs(&mesh, Unique::UserAgent, connections) {
            for (class, [all, right]) in classes {
                assert!(
                    right == all || class == "order",
                    "{class}: {right} of {all}"
                );
            }
        }
    }
}
