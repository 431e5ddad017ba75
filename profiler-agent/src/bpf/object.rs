//! The embedded eBPF object.

use std::io::{self, Read as _};

use flate2::read::ZlibDecoder;

/// By zlib: a tenth of it.
static COMPRESSED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/profiler-ebpf.o.z"));

/// False in an agent that was built with `PROFILER_SKIP_EBPF=1`.
pub fn is_embedded() -> bool {
    !COMPRESSED.is_empty()
}

/// The object. Parsers of ELF want it aligned, which allocations of this size are.
pub(super) fn bytes() -> io::Result<Vec<u8>> {
    let mut object = Vec::new();
    if is_embedded() {
        ZlibDecoder::new(COMPRESSED).read_to_end(&mut object)?;
    }
    Ok(object)
}
