//! The embedded eBPF object.

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/profiler-ebpf.o"));

/// False in an agent that was built with `PROFILER_SKIP_EBPF=1`.
pub fn is_embedded() -> bool {
    !OBJECT.is_empty()
}

pub(super) fn bytes() -> &'static [u8] {
    OBJECT
}
