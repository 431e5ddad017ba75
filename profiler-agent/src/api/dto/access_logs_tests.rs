use std::{collections::BTreeMap, sync::Arc};

use profiler_model::{
    Container, ContainerNames, ContainerRole, NamedBy, PodNames, Process, ProcessKey,
};

use super::*;

const KEY: ProcessKey = ProcessKey {
    pid: 7,
    start_ticks: 3,
};

fn process() -> Process {
    Process {
        key: KEY,
        parent_pid: 1,
        comm: "envoy".to_owned(),
        exe: Some("/usr/local/bin/envoy".to_owned()),
        cmdline: Vec::new(),
        uid: 0,
        user: None,
        cgroup: "/".to_owned(),
        container: Some(Container {
            id: "c1".to_owned(),
            runtime: "containerd".to_owned(),
            pod_uid: None,
        }),
        network_namespace: None,
        threads: 1,
        rss_bytes: 1,
        cpu_percent: None,
        kernel_thread: false,
    }
}

/// The node has one process, in a pod.
fn table() -> ProcessTable {
    let table = ProcessTable::recorded([(process(), Vec::new())]);
    let pod = PodNames {
        namespace: "shop".to_owned(),
        name: "web-0".to_owned(),
        uid: "u1".to_owned(),
        labels: BTreeMap::new(),
        workload: None,
    };
    let names = ContainerNames {
        name: "istio-proxy".to_owned(),
        role: ContainerRole::Sidecar,
        image: None,
        pod: Some(Arc::new(pod)),
        labels: BTreeMap::new(),
        workload: None,
        named_by: NamedBy::Cri,
    };
    table.names().restore(vec![("c1".to_owned(), names)]);
    table
}

#[test]
fn an_envoy_has_the_program_and_pod_of_its_process() {
    let logs = |start_ticks| EnvoyLogs {
        process: Some(ProcessKey { start_ticks, ..KEY }),
        ..EnvoyLogs::default()
    };
    let shown = envoy(&logs(3), &table());
    assert_eq!(shown.program.as_deref(), Some("envoy"));
    assert_eq!(shown.pod.as_deref(), Some("shop/web-0"));
    // Another process has its pid now.
    let ended = envoy(&logs(4), &table());
    assert_eq!((ended.program, ended.pod), (None, None));
    assert_eq!(ended.id.as_deref(), Some("7-4"));
}
