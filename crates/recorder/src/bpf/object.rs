//! The embedded eBPF object.

use std::io::Read as _;

use aya_obj::Object;
use flate2::read::ZlibDecoder;

use super::load_error::LoadError;

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

/// Names of the programs in the object, in the alphabet's order. An error when there is no object, or it cannot be
/// parsed.
pub fn embedded_programs() -> Result<Vec<String>, LoadError> {
    if !is_embedded() {
        return Err(LoadError::NotEmbedded);
    }
    let object =
        Object::parse(&bytes()).map_err(|error| LoadError::Load(Box::new(error.into())))?;
    let mut names: Vec<String> = object.programs.into_keys().collect();
    names.sort_unstable();
    Ok(names)
}
