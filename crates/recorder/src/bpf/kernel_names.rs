//! Asks the kernel for the names of its code.

use aya::{
    maps::{Array, MapData},
    programs::{RawTracePoint, RawTracePointRunOptions, TestRun as _},
};
use profiler_common::kernel_names::{KERNEL_NAME_BYTES, KERNEL_NAMES_AT_ONCE, KernelNames};

use super::{
    load_error::LoadError,
    loaded_object::LoadedObject,
    programs::{ProgramRow, row},
    unwind_maps::Shared,
};

const NAMES: &ProgramRow = row("kernel_names");
const MAP: &str = "KERNEL_NAMES";

/// Names kernel addresses.
pub struct KernelNamer {
    program: RawTracePoint,
    map: Array<MapData, Shared<KernelNames>>,
}

impl std::fmt::Debug for KernelNamer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KernelNamer")
    }
}

impl KernelNamer {
    /// What the kernel prints for each address: `NAME`, `NAME [MODULE]`, or the address. What is longer than there is
    /// room for is left out, and so is 0.
    pub fn names(&mut self, addresses: &[u64]) -> Result<Vec<(u64, String)>, LoadError> {
        let mut found = Vec::with_capacity(addresses.len());
        for part in addresses.chunks(KERNEL_NAMES_AT_ONCE) {
            let mut asked = KernelNames {
                addresses: [0; KERNEL_NAMES_AT_ONCE],
                names: [[0; KERNEL_NAME_BYTES]; KERNEL_NAMES_AT_ONCE],
            };
            let wanted = part.iter().copied().filter(|address| *address != 0);
            for (place, address) in asked.addresses.iter_mut().zip(wanted) {
                *place = address;
            }
            let failed = |source: aya::maps::MapError| LoadError::Map {
                map: MAP,
                source: source.into(),
            };
            self.map.set(0, Shared(asked), 0).map_err(failed)?;
            self.program
                .test_run(RawTracePointRunOptions::new())
                .map_err(|source| LoadError::Run {
                    program: NAMES.name,
                    source: std::io::Error::other(source),
                })?;
            let Shared(answer) = self.map.get(&0, 0).map_err(failed)?;
            let all = answer.addresses.iter().zip(&answer.names);
            let named = all.take_while(|(address, _)| **address != 0);
            found.extend(
                named.filter_map(|(address, name)| Some((*address, text(name)?.to_owned()))),
            );
        }
        Ok(found)
    }
}

/// The text up to its zero; none where it fills its room, and may have been cut.
fn text(name: &[u8; KERNEL_NAME_BYTES]) -> Option<&str> {
    let end = name.iter().position(|byte| *byte == 0)?;
    let whole = (1..KERNEL_NAME_BYTES - 1).contains(&end);
    std::str::from_utf8(name.get(..end)?).ok().filter(|_| whole)
}

impl LoadedObject {
    /// Loads the program of [`KernelNamer`].
    pub(super) fn load_kernel_namer(&mut self) -> Result<(), LoadError> {
        self.load_command(NAMES)
    }

    /// Takes what names kernel code; an error the second time, and where it is not loaded.
    pub fn take_kernel_namer(&mut self) -> Result<KernelNamer, LoadError> {
        let program = self.shared_command(NAMES)?;
        let map = self.ebpf().take_map(MAP).ok_or(LoadError::NoMap(MAP))?;
        let map = Array::try_from(map).map_err(|source| LoadError::Map {
            map: MAP,
            source: source.into(),
        })?;
        Ok(KernelNamer { program, map })
    }
}
