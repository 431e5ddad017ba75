//! Results that are one table, which each newer one replaces, however long the task runs: edges, requests
//! and event loops.

use profiler_model::{EdgeTable, EventLoopTable, RequestTable, TaskId};

use crate::store::{
    Append, SegmentKey, Store, StoreError, StoreHandle, Stream,
    codec::{
        CodecError, Density, decode, decode_edges, decode_requests, encode, encode_edges,
        encode_requests,
    },
};

/// A table of which the newest is the result.
pub(super) trait WholeTable: Sized {
    const STREAM: Stream;
    /// What it is of, in remarks.
    const NAME: &'static str;

    fn encode(&self) -> Result<Vec<u8>, CodecError>;

    fn decode(bytes: &[u8]) -> Result<Self, CodecError>;

    /// What stands for one that cannot be read; `None`: nothing does.
    fn damaged() -> Option<Self>;
}

impl WholeTable for EdgeTable {
    const STREAM: Stream = Stream::Edges;
    const NAME: &'static str = "edges";

    fn encode(&self) -> Result<Vec<u8>, CodecError> {
        encode_edges(self, Density::Fast)
    }

    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        decode_edges(bytes)
    }

    fn damaged() -> Option<Self> {
        let mut damaged = Self::default();
        damaged
            .unresolved
            .insert("stored_result_damaged".to_owned(), 1);
        Some(damaged)
    }
}

impl WholeTable for RequestTable {
    const STREAM: Stream = Stream::Requests;
    const NAME: &'static str = "requests";

    fn encode(&self) -> Result<Vec<u8>, CodecError> {
        encode_requests(self, Density::Fast)
    }

    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        decode_requests(bytes)
    }

    fn damaged() -> Option<Self> {
        Some(Self {
            is_damaged: true,
            ..Self::default()
        })
    }
}

impl WholeTable for EventLoopTable {
    const STREAM: Stream = Stream::EventLoops;
    const NAME: &'static str = "event loops";

    fn encode(&self) -> Result<Vec<u8>, CodecError> {
        encode(self, Self::STREAM, Density::Fast)
    }

    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        decode(bytes, Self::STREAM)
    }

    fn damaged() -> Option<Self> {
        None
    }
}

fn key<T: WholeTable>(task: TaskId) -> SegmentKey {
    SegmentKey {
        task,
        stream: T::STREAM,
        segment: 0,
    }
}

/// Stores the table. The text says why it could not be kept, when that is the table's fault.
pub(super) fn keep<T: WholeTable>(
    store: &mut Store,
    task: TaskId,
    table: &T,
    now_ns: u64,
) -> Result<Option<String>, StoreError> {
    let bytes = match table.encode() {
        Ok(bytes) => bytes,
        Err(error) => {
            let name = T::NAME;
            return Ok(Some(format!("the {name} could not be stored: {error}")));
        }
    };
    // Whatever becomes of the commit, it waits in the store's memory until a newer one is there.
    store.put(Append {
        key: key::<T>(task),
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
pub(super) fn load<T: WholeTable>(
    store: &StoreHandle,
    task: TaskId,
) -> Result<Option<T>, StoreError> {
    let blobs = store.run_blocking(move |store| store.blobs(key::<T>(task)))??;
    let Some(newest) = blobs.last() else {
        return Ok(None);
    };
    Ok(T::decode(&newest.bytes).map_or_else(
        |error| {
            tracing::warn!(%task, %error, "the stored {} are damaged", T::NAME);
            T::damaged()
        },
        Some,
    ))
}
