//! `serve --demo-data`: recorded results in place of a kernel side, for looking at the page without
//! privileges.
//!
//! `cargo xtask record-demo-data` makes the two embedded files on a mesh of real Envoys: the store
//! as an agent left it, and what that agent reported about the node and its processes. The store is
//! unpacked into a folder of its own and opened by the same code as any other.

mod collector;
mod folder;

use std::{io::Read as _, path::Path, sync::Arc};

use profiler_analysis::overview::summary;
use profiler_host::process::ProcessTable;
use profiler_model::{EdgeTable, Process, TaskId, TaskKind, ThreadInfo, overview::Overview};
use profiler_symbolize::SymbolPacks;
use serde::{Deserialize, Serialize};

use crate::{api::NodeInfo, app::KernelSide};
use profiler_engine::store::{SegmentKey, Store, StoreError, Stream, codec};

pub use collector::REASON;
pub use folder::DemoFolder;

use collector::Recorded;

const STORE: &[u8] = include_bytes!("../../demo-data/store.redb.zst");
const NODE: &[u8] = include_bytes!("../../demo-data/node.json.zst");
/// Far above what the recorded files have when they are unpacked.
const MAX_BYTES: u64 = 256 << 20;
/// Room for uploaded symbol files.
const SYMBOL_BYTES: u64 = 256 << 20;

#[derive(Debug, thiserror::Error)]
pub enum DemoDataError {
    #[error("this build has no demo data: run `cargo xtask record-demo-data` and build again")]
    Missing,
    #[error("unpack the demo data: {0}")]
    Unpack(std::io::Error),
    #[error("make a folder for the demo data: {0}")]
    Folder(std::io::Error),
    #[error("read the demo data of the node: {0}")]
    Node(#[from] serde_json::Error),
    #[error("open the demo data: {0}")]
    Store(#[from] StoreError),
}

/// A process as it was recorded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordedProcess {
    pub process: Process,
    pub threads: Vec<ThreadInfo>,
}

/// The machine on which the data was recorded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordedNode {
    pub kernel: String,
    pub arch: String,
    pub cpus: usize,
    pub btf: bool,
    pub processes: Vec<RecordedProcess>,
    /// Rows of these processes.
    pub overview: Overview,
}

/// Unpacks the store into `folder` and gives what stands in for the kernel side.
pub fn prepare(folder: &DemoFolder) -> Result<KernelSide, DemoDataError> {
    if STORE.is_empty() || NODE.is_empty() {
        return Err(DemoDataError::Missing);
    }
    std::fs::write(folder.path().join("store.redb"), unpack(STORE)?)
        .map_err(DemoDataError::Unpack)?;
    let node: RecordedNode = serde_json::from_slice(&unpack(NODE)?)?;
    let edges = newest_edges(folder.path())?;
    let recorded = Arc::new(Recorded { edges });
    Ok(KernelSide {
        table: ProcessTable::recorded(
            node.processes
                .into_iter()
                .map(|recorded| (recorded.process, recorded.threads)),
        ),
        collector: recorded.clone(),
        probes: recorded,
        process_events: None,
        statistics: None,
        symbols: SymbolPacks::open(Some(folder.path().join("symbols")), None, SYMBOL_BYTES),
        node: NodeInfo {
            node: "demo-data".to_owned(),
            kernel: node.kernel,
            arch: node.arch,
            cpus: node.cpus,
            btf: node.btf,
        },
        can_profile: false,
        demo_data: true,
        overview: Some(Overview {
            // Of these rows, and not of all that ran there.
            summary: summary(&node.overview.rows),
            ..node.overview
        }),
    })
}

fn unpack(packed: &[u8]) -> Result<Vec<u8>, DemoDataError> {
    let mut bytes = Vec::new();
    zstd::stream::read::Decoder::new(packed)
        .and_then(|decoder| decoder.take(MAX_BYTES).read_to_end(&mut bytes))
        .map_err(DemoDataError::Unpack)?;
    Ok(bytes)
}

/// The edges of the newest network task: what the page shows as those of the node.
fn newest_edges(folder: &Path) -> Result<EdgeTable, DemoDataError> {
    let mut store = Store::open(folder)?;
    let (tasks, _damaged) = store.tasks()?;
    let newest: Option<TaskId> = tasks
        .iter()
        .filter(|task| task.kind() == Some(TaskKind::Network))
        .map(|task| task.id)
        .max();
    let mut edges = EdgeTable::default();
    if let Some(task) = newest {
        let key = SegmentKey {
            task,
            stream: Stream::Edges,
            segment: 0,
        };
        let blobs = store.blobs(key)?;
        if let Some(table) = blobs
            .last()
            .and_then(|blob| codec::decode_edges(&blob.bytes).ok())
        {
            edges = table;
        }
    }
    store.close()?;
    Ok(edges)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The most that the files may add to the binary.
    const MAX_PACKED_BYTES: usize = 1_500_000;

    #[test]
    fn every_kind_of_task_is_there_and_can_be_read() {
        assert!(STORE.len() + NODE.len() < MAX_PACKED_BYTES);
        let folder = DemoFolder::new().unwrap();
        let side = prepare(&folder).unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        let (tasks, damaged) = store.tasks().unwrap();
        assert_eq!(damaged, 0);
        for kind in [
            TaskKind::OnCpu,
            TaskKind::OffCpu,
            TaskKind::Wall,
            TaskKind::Network,
        ] {
            let of_kind = tasks.iter().filter(|task| task.kind() == Some(kind));
            let task = of_kind.max_by_key(|task| task.samples);
            let task = task.unwrap_or_else(|| panic!("no task of kind {}", kind.name()));
            if kind == TaskKind::Network {
                continue;
            }
            let segments = store.segments(task.id, Stream::Profile);
            assert!(!segments.is_empty(), "{} has no result", kind.name());
            let mut samples = 0;
            for (key, _) in segments {
                for blob in store.blobs(key).unwrap() {
                    let profile = codec::decode_profile(&blob.bytes).unwrap();
                    samples += profile.total_count();
                }
            }
            assert!(samples > 100, "{} has {samples} samples", kind.name());
        }
        // A check-up before a change, and one after it.
        let groups: BTreeSet<&str> = tasks
            .iter()
            .filter_map(|task| task.group.as_deref())
            .collect();
        assert_eq!(groups.len(), 2, "{groups:?}");
        let overview = side.overview.as_ref().unwrap();
        let [server, client] = overview.rows.as_slice() else {
            panic!("{overview:#?}");
        };
        assert!(
            server
                .answered
                .is_some_and(|requests| requests.p95.is_some())
        );
        assert!(client.sent.is_some_and(|requests| requests.per_s > 100.0));
        assert!(overview.summary.contains("2 pods"), "{}", overview.summary);
        let edges = newest_edges_of_closed(&mut store, &folder);
        assert!(edges.edges.len() > 3, "{} edges", edges.edges.len());
        let processes = side.table.snapshot();
        let envoys = processes.iter().filter(|process| process.comm == "envoy");
        assert!(envoys.count() >= 2, "{processes:?}");
        for process in &processes {
            assert!(!side.table.threads(process.key).is_empty(), "{process:?}");
        }
        side.table.refresh();
        assert_eq!(
            side.table.snapshot(),
            processes,
            "nothing is read from /proc"
        );
    }

    fn newest_edges_of_closed(store: &mut Store, folder: &DemoFolder) -> EdgeTable {
        store.close().unwrap();
        newest_edges(folder.path()).unwrap()
    }
}
