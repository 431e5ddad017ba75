//! The tables of time on the CPU, of objects that measure it exactly.

use aya::maps::{MapError, PerCpuArray};
use profiler_common::{
    header::read_pod,
    on_cpu::CountKey,
    wall::{Slice, SliceValue},
};

use super::{load_error::LoadError, loaded_object::LoadedObject};

impl LoadedObject {
    /// Empties the counting table of time on the CPU in epochs with this parity.
    pub fn drain_slices(
        &self,
        epoch: u64,
        visit: impl FnMut(CountKey, SliceValue),
    ) -> Result<usize, LoadError> {
        self.drain_epoch(epoch, ["SLICES_EVEN", "SLICES_ODD"], visit)
    }

    /// What runs on each CPU, by its number.
    pub fn running(&mut self) -> Result<Vec<Slice>, LoadError> {
        const MAP: &str = "RUNNING";
        let failed = |source: MapError| LoadError::Map {
            map: MAP,
            source: source.into(),
        };
        let map = self.ebpf().map(MAP).ok_or(LoadError::NoMap(MAP))?;
        let table: PerCpuArray<_, [u8; size_of::<Slice>()]> =
            PerCpuArray::try_from(map).map_err(failed)?;
        let slices = table.get(&0, 0).map_err(failed)?;
        let slice = |bytes: &[u8; size_of::<Slice>()]| read_pod(bytes).unwrap_or_default();
        Ok(slices.iter().map(slice).collect())
    }
}
