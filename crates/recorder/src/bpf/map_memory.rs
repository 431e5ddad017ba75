//! How much memory the maps of an object will take, before they are made.

use std::{collections::HashMap, sync::LazyLock};

use aya_obj::{
    Object,
    generated::bpf_map_type::{
        BPF_MAP_TYPE_HASH, BPF_MAP_TYPE_LRU_HASH, BPF_MAP_TYPE_LRU_PERCPU_HASH,
        BPF_MAP_TYPE_PERCPU_ARRAY, BPF_MAP_TYPE_PERCPU_HASH, BPF_MAP_TYPE_RINGBUF,
    },
};

use super::{object, sizes::Cpus};

/// `struct htab_elem` without key and value, and its bucket (kernel/bpf/hashtab.c).
const ELEMENT_BYTES: u64 = 48;
const BUCKET_BYTES: u64 = 16;

/// What the object says of a map.
#[derive(Clone, Copy, Debug)]
struct Definition {
    kind: u32,
    key: u64,
    value: u64,
    entries: u32,
    /// Entries are made when they are needed.
    grows: bool,
}

/// `BPF_F_NO_PREALLOC` of include/uapi/linux/bpf.h.
const NO_PREALLOC: u32 = 1;

static MAPS: LazyLock<HashMap<String, Definition>> = LazyLock::new(|| {
    let object = object::bytes();
    let parsed = Object::parse(&object);
    let maps = parsed.map(|object| object.maps).unwrap_or_default();
    let definition = |(name, map): (String, aya_obj::Map)| {
        let definition = Definition {
            kind: map.map_type(),
            key: map.key_size().into(),
            value: map.value_size().into(),
            entries: map.max_entries(),
            grows: map.map_flags() & NO_PREALLOC != 0,
        };
        (name, definition)
    };
    maps.into_iter().map(definition).collect()
});

/// Bytes of all maps together, with these numbers of entries in place of the object's own; some percent less than what
/// the kernel charges. Of maps that grow only the buckets are known.
pub(super) fn estimate(entries: &[(&'static str, u32)], cpus: Cpus) -> u64 {
    let entries: HashMap<&str, u32> = entries.iter().copied().collect();
    let sizes = MAPS.iter().map(|(name, map)| {
        let asked = entries.get(name.as_str()).copied();
        bytes(
            *map,
            asked.unwrap_or(map.entries).into(),
            cpus.possible.into(),
        )
    });
    sizes.sum()
}

fn bytes(map: Definition, entries: u64, cpus: u64) -> u64 {
    let round = |bytes: u64| bytes.next_multiple_of(8);
    let is = |kinds: &[aya_obj::generated::bpf_map_type]| {
        kinds.iter().any(|kind| *kind as u32 == map.kind)
    };
    let copies = if is(&[
        BPF_MAP_TYPE_PERCPU_ARRAY,
        BPF_MAP_TYPE_PERCPU_HASH,
        BPF_MAP_TYPE_LRU_PERCPU_HASH,
    ]) {
        cpus
    } else {
        1
    };
    let value = round(map.value).saturating_mul(copies);
    if is(&[BPF_MAP_TYPE_RINGBUF]) {
        return entries;
    }
    if is(&[
        BPF_MAP_TYPE_HASH,
        BPF_MAP_TYPE_LRU_HASH,
        BPF_MAP_TYPE_PERCPU_HASH,
        BPF_MAP_TYPE_LRU_PERCPU_HASH,
    ]) {
        let buckets = entries.next_power_of_two().saturating_mul(BUCKET_BYTES);
        let element = ELEMENT_BYTES + round(map.key) + value;
        let made = if map.grows { 0 } else { entries };
        return made.saturating_mul(element).saturating_add(buckets);
    }
    entries.saturating_mul(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_weigh_what_the_kernel_would_charge() {
        let map = |kind: aya_obj::generated::bpf_map_type, key, value| Definition {
            kind: kind as u32,
            key,
            value,
            entries: 0,
            grows: false,
        };
        let check = |map, entries, expected| assert_eq!(bytes(map, entries, 4), expected);
        check(map(BPF_MAP_TYPE_RINGBUF, 0, 0), 4096, 4096);
        check(
            map(BPF_MAP_TYPE_HASH, 4, 12),
            1024,
            1024 * (48 + 8 + 16 + 16),
        );
        let growing = Definition {
            grows: true,
            ..map(BPF_MAP_TYPE_HASH, 4, 12)
        };
        check(growing, 1024, 1024 * 16);
        check(map(BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8), 10, 10 * 32);
    }
}
