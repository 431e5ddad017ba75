//! Results of requests tasks: one table that each newer one replaces, beside that of the edges.

use crate::{
    model::{RequestTable, TaskId},
    store::{
        Append, SegmentKey, Store, StoreError, StoreHandle, Stream,
        codec::{Density, decode, encode},
    },
};

/// The table is one, however long the task runs.
fn key(task: TaskId) -> SegmentKey {
    SegmentKey {
        task,
        stream: Stream::Requests,
        segment: 0,
    }
}

/// Stores the table. The text says why it could not be kept, when that is the table's fault.
pub(super) fn keep(
    store: &mut Store,
    task: TaskId,
    table: &RequestTable,
    now_ns: u64,
) -> Result<Option<String>, StoreError> {
    let bytes = match encode(table, Stream::Requests, Density::Fast) {
        Ok(bytes) => bytes,
        Err(error) => return Ok(Some(format!("the requests could not be stored: {error}"))),
    };
    // As with edges: whatever becomes of the commit, the newest waits in the store's memory.
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

/// Reads the newest table; `None` before the first. One that is damaged says so in its counters. Blocks.
pub(super) fn load(store: &StoreHandle, task: TaskId) -> Result<Option<RequestTable>, StoreError> {
    let blobs = store.run_blocking(move |store| store.blobs(key(task)))??;
    let Some(newest) = blobs.last() else {
        return Ok(None);
    };
    let table = decode(&newest.bytes, Stream::Requests).unwrap_or_else(|error| {
        tracing::warn!(%task, %error, "the stored requests are damaged");
        RequestTable {
            is_damaged: true,
            ..RequestTable::default()
        }
    });
    Ok(Some(table))
}
