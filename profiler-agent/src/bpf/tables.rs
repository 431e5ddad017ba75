//! What the kernel side has counted: tables that are emptied, and counters.

use std::os::fd::AsFd as _;

use aya::maps::{Map, MapError, PerCpuArray};
use profiler_common::{counter::COUNTERS, header::Pod, on_cpu::CountKey};

use super::{
    batch::drain,
    loader::{LoadError, LoadedObject},
};

impl LoadedObject {
    /// Empties the counting table of epochs with this parity, which the kernel has left.
    pub fn drain_counts(
        &self,
        epoch: u64,
        visit: impl FnMut(CountKey, u64),
    ) -> Result<usize, LoadError> {
        self.drain_epoch(epoch, ["COUNTS_EVEN", "COUNTS_ODD"], visit)
    }

    /// Empties the one of the two tables, of even and of odd epochs, that this epoch has written.
    pub(super) fn drain_epoch<K, V>(
        &self,
        epoch: u64,
        [even, odd]: [&'static str; 2],
        visit: impl FnMut(K, V),
    ) -> Result<usize, LoadError>
    where
        K: Pod,
        V: Pod,
    {
        let name = if epoch.is_multiple_of(2) { even } else { odd };
        self.drain_map(name, visit)
    }

    pub(super) fn drain_map<K, V>(
        &self,
        name: &'static str,
        visit: impl FnMut(K, V),
    ) -> Result<usize, LoadError>
    where
        K: Pod,
        V: Pod,
    {
        let Map::HashMap(data) = self.map(name)? else {
            return Err(LoadError::NoMap(name));
        };
        Ok(drain(data.fd().as_fd(), visit)?)
    }

    /// The counters of the kernel side, summed over CPUs, by `profiler_common::counter`.
    pub fn counters(&self) -> Result<[u64; COUNTERS as usize], LoadError> {
        let failed = |source: MapError| LoadError::Map {
            map: "COUNTERS",
            source: source.into(),
        };
        let map = self.map("COUNTERS")?;
        let array: PerCpuArray<_, u64> = PerCpuArray::try_from(map).map_err(failed)?;
        let mut sums = [0; COUNTERS as usize];
        for (index, sum) in (0..COUNTERS).zip(&mut sums) {
            *sum = array.get(&index, 0).map_err(failed)?.iter().sum();
        }
        Ok(sums)
    }
}
