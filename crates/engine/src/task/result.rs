//! From blobs to one profile, and from many small blobs to one. Everything here blocks.

use profiler_model::{Clock, LossKind, Profile, ProfileBuilder, Selection, TaskId};

use crate::store::{
    Blob, SegmentKey, StoreError, StoreHandle, Stream,
    codec::{CodecError, Density, decode_profile, encode_profile},
};

/// Length of a segment.
pub(super) const SEGMENT_NS: u64 = 60_000_000_000;
/// Bucket length of a result that has no chunk yet.
const DEFAULT_BUCKET_NS: u64 = 100_000_000;

/// A sample's bucket may begin before its chunk does, so segments near a cut are read as well.
const EDGE_NS: u64 = 1_000_000_000;

/// Number of the segment that a chunk beginning at `from_ns` belongs to.
pub(super) fn segment_number(from_ns: u64) -> u32 {
    u32::try_from(from_ns / SEGMENT_NS).unwrap_or(u32::MAX)
}

/// Reads a task's result, one segment at a time, and cuts it. Chunks that could not be read are among
/// its losses.
pub(super) fn load(
    store: &StoreHandle,
    task: TaskId,
    origin_ns: u64,
    clock: Clock,
    selection: &Selection,
) -> Result<Profile, StoreError> {
    let segments = store.run_blocking(move |store| store.segments(task, Stream::Profile))?;
    let mut merger = Merger::default();
    for (key, segment) in segments {
        let before = selection
            .to_ns
            .is_some_and(|to| segment.from_ns >= to.saturating_add(EDGE_NS));
        let after = selection
            .from_ns
            .is_some_and(|from| segment.to_ns.saturating_add(EDGE_NS) <= from);
        if before || after {
            continue;
        }
        for blob in store.run_blocking(move |store| store.blobs(key))?? {
            merger.add(&blob, selection);
        }
    }
    let damaged_chunks = merger.damaged;
    let mut profile = merger
        .finish()
        .unwrap_or_else(|| ProfileBuilder::new(origin_ns, DEFAULT_BUCKET_NS, clock).finish());
    profile
        .losses
        .add(LossKind::StoredChunkDamaged, damaged_chunks);
    profile.from_ns = selection
        .from_ns
        .map_or(profile.from_ns, |from| from.max(profile.from_ns));
    profile.to_ns = selection
        .to_ns
        .map_or(profile.to_ns, |to| to.min(profile.to_ns));
    profile.from_ns = profile.from_ns.min(profile.to_ns);
    Ok(profile)
}

/// Rewrites a segment's blobs as one. A segment that would be too large stays as it is.
pub(super) fn merge_segment(store: &StoreHandle, key: SegmentKey) -> Result<(), StoreError> {
    let blobs = store.run_blocking(move |store| store.blobs(key))??;
    if blobs.len() < 2 {
        return Ok(());
    }
    let mut merger = Merger::default();
    for blob in &blobs {
        merger.add(blob, &Selection::default());
    }
    let damaged = merger.damaged;
    let Some(mut profile) = merger.finish() else {
        return Ok(());
    };
    profile.losses.add(LossKind::StoredChunkDamaged, damaged);
    match encode_profile(&profile, Density::Dense) {
        Ok(bytes) => {
            let sequences: Vec<u32> = blobs.iter().map(|blob| blob.sequence).collect();
            store.run_blocking(move |store| store.replace(key, &sequences, &bytes))?
        }
        Err(CodecError::TooLarge(_)) => Ok(()),
        Err(error) => {
            tracing::warn!(task = %key.task, segment = key.segment, %error, "could not merge a segment");
            Ok(())
        }
    }
}

/// Adds up decoded chunks; one that cannot be decoded is counted and left out.
#[derive(Default)]
struct Merger {
    builder: Option<ProfileBuilder>,
    damaged: u64,
}

impl Merger {
    fn add(&mut self, blob: &Blob, selection: &Selection) {
        let mut profile = match decode_profile(&blob.bytes) {
            Ok(profile) => profile,
            Err(error) => {
                tracing::warn!(sequence = blob.sequence, %error, "a stored chunk is damaged");
                self.damaged += 1;
                return;
            }
        };
        if !selection.is_all() {
            let range = (profile.from_ns, profile.to_ns);
            profile = selection.apply(&profile);
            // The range of a chunk beside the selection would turn around; it is cut at the end.
            (profile.from_ns, profile.to_ns) = range;
        }
        self.builder
            .get_or_insert_with(|| {
                ProfileBuilder::new(profile.origin_ns, profile.bucket_ns, profile.clock)
            })
            .merge(&profile);
    }

    fn finish(self) -> Option<Profile> {
        self.builder.map(ProfileBuilder::finish)
    }
}
