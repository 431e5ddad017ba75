//! Emptying a hash map in few system calls.
//!
//! aya has no batch operations; `BPF_MAP_LOOKUP_AND_DELETE_BATCH` (kernel 5.6) reads and deletes
//! thousands of entries a call.

use std::os::fd::{AsRawFd as _, BorrowedFd};

use profiler_common::header::{Pod, read_pod};

/// Command numbers in `enum bpf_cmd`.
const BPF_MAP_DELETE_ELEM: libc::c_long = 3;
const BPF_MAP_LOOKUP_BATCH: libc::c_long = 24;
/// Of hash maps since kernel 5.14.
const BPF_MAP_LOOKUP_AND_DELETE_ELEM: libc::c_long = 21;
const BPF_MAP_LOOKUP_AND_DELETE_BATCH: libc::c_long = 25;

/// Entries asked for in one call.
const BATCH_ENTRIES: usize = 4096;

/// Room for values where entries are only counted.
const COUNT_BYTES: usize = 4 << 20;
/// Hash maps go on by a bucket's number of four bytes, other maps by a key.
const CURSOR_BYTES: usize = 512;

/// Attributes of the commands for one entry in `union bpf_attr`.
#[repr(C)]
#[derive(Debug, Default)]
struct ElementAttributes {
    map_fd: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// Attributes of the batch commands in `union bpf_attr`.
#[repr(C)]
#[derive(Debug, Default)]
struct BatchAttributes {
    in_batch: u64,
    out_batch: u64,
    keys: u64,
    values: u64,
    count: u32,
    map_fd: u32,
    elem_flags: u64,
    flags: u64,
}

#[derive(Debug, thiserror::Error)]
#[error("read or delete map entries: {0}")]
pub struct BatchError(#[from] std::io::Error);

/// Removes every entry of a hash map and hands each to `visit`. Nobody may write the map meanwhile:
/// the caller drains tables that the kernel side has turned away from.
pub fn drain<K: Pod, V: Pod>(
    map: BorrowedFd<'_>,
    visit: impl FnMut(K, V),
) -> Result<usize, BatchError> {
    walk(map, BPF_MAP_LOOKUP_AND_DELETE_BATCH, visit)
}

/// Hands every entry of a hash map to `visit`, while others may write it: an entry that is made or
/// removed meanwhile may be seen or not.
pub(super) fn read<K: Pod, V: Pod>(
    map: BorrowedFd<'_>,
    visit: impl FnMut(K, V),
) -> Result<usize, BatchError> {
    walk(map, BPF_MAP_LOOKUP_BATCH, visit)
}

/// Removes one entry; one that is not there is no error. The key has the length of the map's keys.
pub(super) fn remove(map: BorrowedFd<'_>, key: &[u8]) -> Result<(), BatchError> {
    element(BPF_MAP_DELETE_ELEM, map, key, &mut []).map(drop)
}

/// Removes one entry, which is returned; `None`: there is none. The key has the length of the map's keys, and `V` that of its values.
pub(super) fn take<V: Pod>(map: BorrowedFd<'_>, key: &[u8]) -> Result<Option<V>, BatchError> {
    let mut value = vec![0_u8; size_of::<V>()];
    let is_there = element(BPF_MAP_LOOKUP_AND_DELETE_ELEM, map, key, &mut value)?;
    Ok(is_there.then(|| read_pod(&value)).flatten())
}

/// Runs a command for one entry, whose value goes to `value` if the command reads it. False: there is none.
fn element(
    command: libc::c_long,
    map: BorrowedFd<'_>,
    key: &[u8],
    value: &mut [u8],
) -> Result<bool, BatchError> {
    let mut attributes = ElementAttributes {
        map_fd: u32::try_from(map.as_raw_fd()).unwrap_or(u32::MAX),
        key: key.as_ptr() as u64,
        ..ElementAttributes::default()
    };
    // The kernel wants no address where there is no value.
    if !value.is_empty() {
        attributes.value = value.as_mut_ptr() as u64;
    }
    // SAFETY: key and value outlive the call, and callers give them the map's lengths.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            &raw mut attributes,
            size_of::<ElementAttributes>(),
        )
    };
    if result == 0 {
        return Ok(true);
    }
    let error = std::io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::ENOENT) {
        return Ok(false);
    }
    Err(error.into())
}

/// Counts the entries of a hash map whose keys and values have these lengths, up to about `most`. The walk goes by
/// the map's buckets, so that entries which come and go meanwhile do not lead it astray.
pub(super) fn count(
    map: BorrowedFd<'_>,
    key_bytes: usize,
    value_bytes: usize,
    most: usize,
) -> Result<usize, BatchError> {
    // A call must have room for all that is in one bucket.
    let at_once = (COUNT_BYTES / value_bytes.max(1)).clamp(64, 512);
    let mut keys = vec![0_u8; at_once * key_bytes];
    let mut values = vec![0_u8; at_once * value_bytes];
    let (mut cursor, mut next) = ([0_u8; CURSOR_BYTES], [0_u8; CURSOR_BYTES]);
    let mut total = 0;
    while total < most {
        let mut attributes = BatchAttributes {
            in_batch: if total == 0 {
                0
            } else {
                cursor.as_ptr() as u64
            },
            out_batch: next.as_mut_ptr() as u64,
            keys: keys.as_mut_ptr() as u64,
            values: values.as_mut_ptr() as u64,
            count: u32::try_from(at_once).unwrap_or(u32::MAX),
            map_fd: u32::try_from(map.as_raw_fd()).unwrap_or(u32::MAX),
            ..BatchAttributes::default()
        };
        // SAFETY: the buffers hold `count` keys and values of the lengths that the kernel has told of this map,
        // the cursors are as long as its longest keys, and all of them outlive the call.
        let result = unsafe {
            libc::syscall(
                libc::SYS_bpf,
                BPF_MAP_LOOKUP_BATCH,
                &raw mut attributes,
                size_of::<BatchAttributes>(),
            )
        };
        let error = (result < 0).then(std::io::Error::last_os_error);
        let finished = error.as_ref().and_then(std::io::Error::raw_os_error) == Some(libc::ENOENT);
        if let Some(error) = error
            && !finished
        {
            return Err(error.into());
        }
        let read = (attributes.count as usize).min(at_once);
        total += read;
        if finished || read == 0 {
            break;
        }
        cursor = next;
    }
    Ok(total)
}

fn walk<K: Pod, V: Pod>(
    map: BorrowedFd<'_>,
    command: libc::c_long,
    mut visit: impl FnMut(K, V),
) -> Result<usize, BatchError> {
    let mut keys = vec![0_u8; BATCH_ENTRIES * size_of::<K>()];
    let mut values = vec![0_u8; BATCH_ENTRIES * size_of::<V>()];
    let mut cursor = [0_u8; 8];
    let mut next = [0_u8; 8];
    let mut first = true;
    let mut total = 0;
    loop {
        let mut attributes = BatchAttributes {
            in_batch: if first { 0 } else { cursor.as_ptr() as u64 },
            out_batch: next.as_mut_ptr() as u64,
            keys: keys.as_mut_ptr() as u64,
            values: values.as_mut_ptr() as u64,
            count: u32::try_from(BATCH_ENTRIES).unwrap_or(u32::MAX),
            map_fd: u32::try_from(map.as_raw_fd()).unwrap_or(u32::MAX),
            ..BatchAttributes::default()
        };
        // SAFETY: the buffers hold `count` keys and values of the map's sizes (the types are the
        // map's), `cursor` and `next` hold more than the four bytes the kernel uses, and all of
        // them outlive the call.
        let result = unsafe {
            libc::syscall(
                libc::SYS_bpf,
                command,
                &raw mut attributes,
                size_of::<BatchAttributes>(),
            )
        };
        let error = (result < 0).then(std::io::Error::last_os_error);
        let finished = error.as_ref().and_then(std::io::Error::raw_os_error) == Some(libc::ENOENT);
        if let Some(error) = error
            && !finished
        {
            return Err(error.into());
        }
        let read = (attributes.count as usize).min(BATCH_ENTRIES);
        for index in 0..read {
            let key = keys.get(index * size_of::<K>()..).and_then(read_pod);
            let value = values.get(index * size_of::<V>()..).and_then(read_pod);
            if let (Some(key), Some(value)) = (key, value) {
                visit(key, value);
            }
        }
        total += read;
        if finished || read == 0 {
            return Ok(total);
        }
        first = false;
        cursor = next;
    }
}
