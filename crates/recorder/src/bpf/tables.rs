//! Tables that the kernel side shares with the agent, and its counters.

use std::{collections, os::fd::AsFd as _};

use aya::maps::{HashMap, Map, MapError, PerCpuArray, PerCpuValues};
use profiler_common::{counter::COUNTERS, header::Pod, on_cpu::CountKey};

use super::{batch, load_error::LoadError, loaded_object::LoadedObject};

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
        Ok(batch::drain(data.fd().as_fd(), visit)?)
    }

    /// The processes that are targets by their number and have not ended.
    pub fn target_pids(&self) -> Result<Vec<u32>, LoadError> {
        let mut found = Vec::new();
        self.read_map("FILTER_PIDS", |pid: u32, _one: u8| found.push(pid))?;
        Ok(found)
    }

    /// Takes a process out of the filter; one that is not there is no error.
    pub fn remove_pid(&self, pid: u32) -> Result<(), LoadError> {
        let Map::HashMap(filter) = self.map("FILTER_PIDS")? else {
            return Err(LoadError::NoMap("FILTER_PIDS"));
        };
        Ok(batch::remove(filter.fd().as_fd(), &pid.to_ne_bytes())?)
    }

    /// The counters of the kernel side, summed over CPUs, by `profiler_common::counter`.
    pub fn counters(&self) -> Result<[u64; COUNTERS as usize], LoadError> {
        self.sums("COUNTERS")
    }

    /// A counter for each CPU of each of `N` kinds, summed over CPUs.
    pub(super) fn sums<const N: usize>(&self, name: &'static str) -> Result<[u64; N], LoadError> {
        let mut sums = [0; N];
        for (index, sum) in (0..).zip(&mut sums) {
            *sum = self.per_cpu::<u64>(name, index)?.iter().sum();
        }
        Ok(sums)
    }

    /// An element of a per-CPU array: its values of all possible CPUs, in their order.
    pub(crate) fn per_cpu<V: aya::Pod>(
        &self,
        name: &'static str,
        index: u32,
    ) -> Result<PerCpuValues<V>, LoadError> {
        let failed = |source: MapError| LoadError::Map {
            map: name,
            source: source.into(),
        };
        let array: PerCpuArray<_, V> = PerCpuArray::try_from(self.map(name)?).map_err(failed)?;
        array.get(&index, 0).map_err(failed)
    }

    /// Visits every entry of a table, which stays as it is.
    pub(super) fn read_map<K: Pod, V: Pod>(
        &self,
        name: &'static str,
        visit: impl FnMut(K, V),
    ) -> Result<usize, LoadError> {
        let Map::HashMap(data) = self.map(name)? else {
            return Err(LoadError::NoMap(name));
        };
        Ok(batch::read(data.fd().as_fd(), visit)?)
    }

    /// The same for a map of connections, by their cookies.
    pub(super) fn by_cookie<V: Pod>(
        &self,
        name: &'static str,
    ) -> Result<collections::HashMap<u64, V>, LoadError> {
        let mut found = collections::HashMap::new();
        self.read_map(name, |cookie: u64, value: V| {
            found.insert(cookie, value);
        })?;
        Ok(found)
    }

    /// Adds an entry for a socket that is older than the programs, unless they have met it by now.
    /// False when there is no room.
    pub(super) fn add_new<const N: usize>(
        &mut self,
        name: &'static str,
        cookie: u64,
        value: [u8; N],
    ) -> Result<bool, LoadError> {
        const NO_EXIST: u64 = 1;
        let failed = |source: MapError| LoadError::Map {
            map: name,
            source: source.into(),
        };
        let map = self.ebpf().map_mut(name).ok_or(LoadError::NoMap(name))?;
        let mut table: HashMap<_, u64, [u8; N]> = HashMap::try_from(map).map_err(failed)?;
        match table.insert(cookie, value, NO_EXIST) {
            Ok(()) => Ok(true),
            Err(MapError::SyscallError(error)) => {
                Ok(error.io_error.raw_os_error() == Some(libc::EEXIST))
            }
            Err(source) => Err(failed(source)),
        }
    }

    /// Removes a key that may be gone already.
    pub(super) fn remove<const N: usize>(
        &mut self,
        name: &'static str,
        key: &[u8; N],
    ) -> Result<(), LoadError> {
        let Map::HashMap(data) = self.map(name)? else {
            return Err(LoadError::NoMap(name));
        };
        batch::remove(data.fd().as_fd(), key).map_err(LoadError::from)
    }

    /// The same of a key whose value is wanted.
    pub(super) fn take<V: Pod, const N: usize>(
        &mut self,
        name: &'static str,
        key: &[u8; N],
    ) -> Result<Option<V>, LoadError> {
        let Map::HashMap(data) = self.map(name)? else {
            return Err(LoadError::NoMap(name));
        };
        batch::take(data.fd().as_fd(), key).map_err(LoadError::from)
    }
}
