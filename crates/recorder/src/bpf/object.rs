//! The embedded eBPF object.

use std::io::Read as _;

use flate2::read::ZlibDecoder;

/// By zlib: a fifth of its size.
static COMPRESSED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/profiler-ebpf.o.z"));

/// False in an agent that was built with `PROFILER_SKIP_EBPF=1`.
pub fn is_embedded() -> bool {
    !COMPRESSED.is_empty()
}

/// The object. Parsers of ELF want it aligned, which allocations of this size are. What the build has compressed can be
/// decompressed; otherwise it is cut short, which the loader says.
pub(super) fn bytes() -> Vec<u8> {
    let mut object = Vec::new();
    if is_embedded()
        && let Err(error) = ZlibDecoder::new(COMPRESSED).read_to_end(&mut object)
    {
        tracing::error!(%error, "decompress the eBPF object");
    }
    object
}
