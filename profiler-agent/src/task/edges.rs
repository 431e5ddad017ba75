//! Results of network tasks: one table of edges that each newer one replaces.

use crate::{
    model::{EdgeTable, TaskId},
    store::{
        Append, SegmentKey, Store, StoreError, StoreHandle, Stream,
        codec::{Density, decode_edges, encode_edges},
    },
};

/// A network task has one segment, however long it runs.
fn key(task: TaskId) -> SegmentKey {
    SegmentKey {
        task,
        stream: Stream::Edges,
        segment: 0,
    }
}

/// Stores the table. The text says why it could not be kept, when that is the table's fault.
pub(super) fn keep(
    store: &mut Store,
    task: TaskId,
    edges: &EdgeTable,
    now_ns: u64,
) -> Result<Option<String>, StoreError> {
    let bytes = match encode_edges(edges, Density::Fast) {
        Ok(bytes) => bytes,
        Err(error) => return Ok(Some(format!("the edges could not be stored: {error}"))),
    };
    // Whatever becomes of the commit, it waits in the store's memory until a newer one is there.
    store.put(Append {
        key: key(task),
        bytes,
        from_ns: 0,
        to_ns: 0,
        end_unix_ns: now_ns,
        samples: 0,
    });
    store.commit()?;
    Ok(None)
}

/// Reads the newest table; `None` before the first. Blocks.
pub(super) fn load(store: &StoreHandle, task: TaskId) -> Result<Option<EdgeTable>, StoreError> {
    let blobs = store.run_blocking(move |store| store.blobs(key(task)))??;
    let Some(newest) = blobs.last() else {
        return Ok(None);
    };
    let table = decode_edges(&newest.bytes).unwrap_or_else(|error| {
        tracing::warn!(%task, %error, "the stored edges are damaged");
        let mut damaged = EdgeTable::default();
        damaged
            .unresolved
            .insert("stored_result_damaged".to_owned(), 1);
        damaged
    });
    Ok(Some(table))
}
