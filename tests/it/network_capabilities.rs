//! Network tasks without the right to enter other network namespaces.

use std::path::Path;

use profiler_tests::{
    cleanup::scratch_directory, netns::Netns, paths, process::Launch, wait::wait_for,
    workload::Workload,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    edges::number,
    targets::{EXIT, START},
};

#[test]
fn sockets_of_other_namespaces_are_found_in_proc_without_sys_admin() {
    const CONNECTIONS: u64 = 20;
    const BYTES: u64 = 100;
    let netns = Netns::create("bare").unwrap();
    let (folder, _guard) = scratch_directory("bare").unwrap();
    let program = Workload::Connections.build("connections").unwrap();
    let mut held = Launch::new(&program, "held", &folder)
        .netns(&netns)
        .args(["hold", &CONNECTIONS.to_string(), &BYTES.to_string()])
        .start()
        .unwrap();
    held.wait_for_line(START, |line| (line == "ready").then_some(()))
        .unwrap();
    let pid = held.pid().to_string();
    let agent = paths::agent().unwrap();
    let mut net = Launch::new(Path::new("setpriv"), "net", &folder)
        .args(["--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "--"])
        .args([agent.as_os_str()])
        .args(["net", "--pid", &pid, "--duration=300s", "--json"])
        .start()
        .unwrap();
    wait_for("the command watches", START, || {
        assert!(net.is_running(), "{}", net.errors());
        net.errors().contains("watching").then_some(())
    })
    .unwrap();
    held.signal(Signal::USR1).unwrap();
    held.wait_for_line(START, |line| line.starts_with('{').then_some(()))
        .unwrap();
    net.interrupt(Signal::TERM).unwrap();
    let output = net.output();
    let table: Value = serde_json::from_str(&output)
        .unwrap_or_else(|error| panic!("{error}: {output}\n{}", net.errors()));
    held.signal(Signal::USR1).unwrap();
    held.finish(EXIT).unwrap();
    let mut connections = 0;
    for edge in table["edges"].as_array().unwrap() {
        for (end, other) in [("client", "server"), ("server", "client")] {
            assert_eq!(edge[end]["pid"].to_string(), pid, "{edge:#}");
            let side = &edge["metrics"][end];
            let count = number(&side["connections"]["count"]);
            assert_eq!(side["connections"]["open"], count, "{edge:#}");
            assert_eq!(number(&side["write"]["bytes"]), count * BYTES, "{edge:#}");
            assert_eq!(
                side["write"]["bytes"], edge["metrics"][other]["read"]["bytes"],
                "{edge:#}"
            );
        }
        connections += number(&edge["metrics"]["client"]["connections"]["count"]);
    }
    assert_eq!(connections, CONNECTIONS, "{table:#}");
    // Which ends are the servers is known from the listening sockets.
    assert_eq!(table["unresolved"], json!({}), "{table:#}");
    assert_eq!(table["sources"]["sockets"], "inet_diag, /proc/PID/net/tcp");
    let reason = &table["unavailable"]["older_connections"];
    assert!(
        reason.as_str().unwrap().contains("CAP_SYS_ADMIN"),
        "{reason}"
    );
}
