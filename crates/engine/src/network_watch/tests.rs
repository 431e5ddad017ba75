//! The collection over a collector that fails on demand.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use profiler_model::{Address, Edge, EdgeKey, Endpoint, SideMetrics, TaskKind, TaskSpec, Transfer};
use profiler_recording::{CollectError, Collection, Part, StopHandle};
use tokio::sync::mpsc;

use super::*;

/// Refuses the first start; the second gives one table and ends; the third stays.
#[derive(Debug, Default)]
struct Flaky {
    starts: AtomicUsize,
}

fn table(bytes: u64) -> EdgeTable {
    let end = Endpoint {
        pid: None,
        start_ticks: Some(1),
        comm: String::new(),
        container: None,
        address: Address::Ip([192, 0, 2, 1].into()),
    };
    EdgeTable {
        edges: vec![Edge {
            key: EdgeKey {
                client: end.clone(),
                server: end,
                server_port: Some(80),
                original_destination: None,
            },
            client_port: None,
            client_name: None,
            namespaces: profiler_model::EdgeNamespaces::default(),
            server_name: None,
            client: Some(SideMetrics {
                write: Transfer { count: 1, bytes },
                ..SideMetrics::default()
            }),
            server: None,
        }],
        ..EdgeTable::default()
    }
}

impl Collector for Flaky {
    fn start(&self, spec: &TaskSpec) -> Result<Collection, CollectError> {
        assert_eq!(spec.kind(), TaskKind::Network);
        assert_eq!(spec.duration_s, None);
        let start = self.starts.fetch_add(1, Ordering::Relaxed);
        if start == 0 {
            return Err(CollectError::Probe {
                probe: "network",
                reason: "not yet".to_owned(),
            });
        }
        let (sender, chunks) = mpsc::channel(2);
        let edges = Part::Edges(table(start as u64 * 10));
        sender.try_send(edges.into()).unwrap();
        let (stop, stopped) = StopHandle::new();
        if start > 1 {
            std::thread::spawn(move || {
                while !stopped.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                    std::thread::park_timeout(Duration::from_millis(2));
                }
                drop(sender);
            });
        }
        Ok(Collection {
            origin_ns: 1000 + start as u64,
            already: Duration::ZERO,
            clock: None,
            effective_frequency_hz: None,
            notes: Vec::new(),
            chunks,
            stop,
        })
    }
}

async fn wait_until(
    watched: &mut watch::Receiver<WatchedEdges>,
    holds: impl FnMut(&WatchedEdges) -> bool,
) -> WatchedEdges {
    let found = watched.wait_for(holds);
    let found = tokio::time::timeout(Duration::from_secs(30), found).await;
    found.expect("in time").unwrap().clone()
}

#[tokio::test]
async fn a_failed_collection_says_why_and_is_started_again_without_losing_counts() {
    let shutdown = CancellationToken::new();
    let (handle, work) = NetworkWatch::start(Arc::new(Flaky::default()), shutdown.clone());
    let mut watched = handle.follow().unwrap();
    let running = tokio::spawn(work);
    let refused = wait_until(&mut watched, |watched| watched.restarts == 1).await;
    assert_eq!(
        refused.state,
        WatchState::Waiting("network: not yet".to_owned())
    );
    assert_eq!(handle.status().unwrap().state, ProbeState::Unavailable);
    let again = wait_until(&mut watched, |watched| {
        watched.restarts == 2 && watched.state == WatchState::Running
    });
    let again = again.await;
    // Since the first one that ran.
    assert_eq!(again.since_ns, Some(1001));
    let both = wait_until(&mut watched, |watched| {
        let table = watched.table.as_ref();
        let side = table.and_then(|table| table.edges[0].client.clone());
        side.is_some_and(|side| side.write.bytes == 30)
    });
    both.await;
    assert_eq!(handle.status().unwrap().state, ProbeState::Attached);
    shutdown.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(10), running).await;
    ended.expect("it ends at shutdown").unwrap();
}

#[test]
fn off_is_told() {
    let off = NetworkWatch::off();
    assert!(!off.is_on() && off.newest().is_none() && off.status().is_none());
}
