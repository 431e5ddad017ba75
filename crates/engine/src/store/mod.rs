//! Tasks and their results on disk: bounded, crash-safe, one owner.
//!
//! One redb file holds everything. A result is a sequence of *blobs*; a blob belongs to a task, a
//! [`Stream`] (what kind of data it is) and a *segment* (one minute of the task). While a task runs
//! its blobs are small and arrive up to four times a second; a segment that is complete is rewritten as one.
//!
//! | table | key | value |
//! |---|---|---|
//! | `meta` | name | number (`schema`, `next_task`) |
//! | `tasks` | task | JSON of [`profiler_model::Task`] |
//! | `segments` | task, stream, segment | time range, sizes, next sequence number |
//! | `blobs` | task, stream, segment, sequence | header and compressed data, see [`codec`] |
//!
//! The tables know bytes and time ranges only. A new kind of result (a time series, a table of
//! requests) is a new [`Stream`] with its own serde type: it gets segments, retention, deletion and
//! crash safety from here, and needs no new table.
//!
//! Appended blobs wait in memory until [`Store::commit`]; one commit is one durable transaction, so
//! a crash loses at most what was not committed and never half of a blob.

pub mod codec;

mod database;
mod directory;
mod error;
mod file;
mod owner;
mod shadow;
mod tables;

#[cfg(test)]
pub(crate) mod tests;

pub use database::{Append, Blob, Store};
pub use error::{Refusal, StoreError};
pub use file::OpenDatabase;
pub use owner::{OwnerThread, StoreHandle};
pub use tables::{Segment, SegmentKey, Stream};
