//! The programs that watch connections, and their tables.

use std::collections::HashSet;

use aya::{
    Btf,
    maps::{HashMap, MapData, MapError, RingBuf},
    programs::tp_btf::BtfTracePointLink,
};
use profiler_common::{
    header::{KIND_ANSWER, KIND_CONNECTION, RecordHeader, read_pod},
    network::{
        Answer, Connection, DropKey, LISTENER_OF_SOCKETS, LISTENER_STAYS, ListenerKey,
        NETWORK_COUNTERS,
    },
};

use super::{
    call_plan::CallPlan,
    load_error::LoadError,
    loaded_object::{LoadedObject, NetworkLoad},
    network_offsets::NetworkFacts,
    programs::network_programs,
};

/// Attached programs; detached when dropped.
#[derive(Debug)]
pub struct NetworkLinks {
    links: Vec<(&'static str, BtfTracePointLink)>,
    plan: CallPlan,
}

impl NetworkLinks {
    /// Those that were attached last go first: they are the ones that count reads and writes, which so
    /// end at the time of the call, and calls begin no more before their ends go.
    pub fn detach(&mut self) {
        while let Some(link) = self.links.pop() {
            drop(link);
        }
    }

    /// What system calls are watched for.
    pub fn plan(&self) -> CallPlan {
        self.plan
    }

    pub fn is_attached(&self, program: &str) -> bool {
        self.links.iter().any(|(name, _link)| *name == program)
    }

    /// Whether nothing is attached at all.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }
}

/// Reads the connections that ended.
pub struct EndedReader {
    ring: RingBuf<MapData>,
}

impl std::fmt::Debug for EndedReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EndedReader")
    }
}

impl EndedReader {
    /// Hands every connection that is there to `visit`; returns the number of undecodable records.
    pub fn read(&mut self, mut visit: impl FnMut(Connection)) -> u64 {
        let mut undecodable = 0;
        while let Some(item) = self.ring.next() {
            match decode(&item) {
                Some(connection) => visit(connection),
                None => undecodable += 1,
            }
        }
        undecodable
    }
}

/// Reads answers of name servers.
pub struct AnswerReader {
    ring: RingBuf<MapData>,
}

impl std::fmt::Debug for AnswerReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AnswerReader")
    }
}

impl AnswerReader {
    /// Hands every answer that is there to `visit`, with its network namespace.
    pub fn read(&mut self, mut visit: impl FnMut(u32, &[u8])) {
        while let Some(item) = self.ring.next() {
            let Some(answer) = read_pod::<Answer>(&item) else {
                continue;
            };
            let filled = answer.payload.get(..answer.bytes as usize);
            if answer.header.kind == KIND_ANSWER
                && let Some(filled) = filled
            {
                visit(answer.network_namespace, filled);
            }
        }
    }
}

/// As the kernel's tables have it.
fn key_bytes(key: ListenerKey) -> [u8; size_of::<ListenerKey>()] {
    let ListenerKey {
        network_namespace,
        port,
    } = key;
    let mut bytes = [0; size_of::<ListenerKey>()];
    let (first, second) = bytes.split_at_mut(4);
    first.copy_from_slice(&network_namespace.to_ne_bytes());
    second.copy_from_slice(&port.to_ne_bytes());
    bytes
}

/// A record of an ended connection; `None` when it is not one.
fn decode(bytes: &[u8]) -> Option<Connection> {
    let header: RecordHeader = read_pod(bytes)?;
    let whole = header.kind == KIND_CONNECTION && header.bytes as usize == bytes.len();
    if whole { read_pod(bytes) } else { None }
}

impl LoadedObject {
    /// Loads every program that is needed; the failures with their reasons. A hook that this kernel does not have
    /// is one.
    pub(super) fn load_network(
        &mut self,
        facts: &NetworkFacts,
        btf: &Btf,
    ) -> Result<NetworkLoad, LoadError> {
        let NetworkFacts {
            plan,
            missing_hooks,
            ..
        } = facts;
        self.fill_call_kinds()?;
        let mut failures = Vec::new();
        for row in network_programs() {
            if !plan.needs(row.name) {
                continue;
            }
            let missing = row
                .hook
                .target()
                .filter(|hook| missing_hooks.contains(hook));
            let loaded = match missing {
                Some(hook) => Err(LoadError::NoHook {
                    program: row.name,
                    hook,
                    minimum_kernel: row.minimum_kernel,
                }),
                None => self.load_tracepoint(row, btf).map(drop),
            };
            failures.extend(loaded.err());
        }
        failures.extend(self.load_evictor().err());
        if facts.payload.watched == 1 {
            failures.extend(self.load_capture().err());
        }
        if facts.tls.watched == 1 {
            failures.extend(self.load_tls().err());
        }
        Ok(NetworkLoad {
            failures,
            plan: *plan,
        })
    }

    /// Starts to watch connections. Programs that failed to load or cannot be attached are returned
    /// with their reasons; the others run.
    pub fn attach_network(&mut self) -> (NetworkLinks, Vec<LoadError>) {
        let NetworkLoad { mut failures, plan } = self.take_network();
        let mut links = Vec::new();
        for row in network_programs() {
            if !self.is_loaded(row.name) {
                continue; // Not needed, or among the failures.
            }
            match self.attach_tracepoint(row) {
                Ok(link) => links.push((row.name, link)),
                Err(error) => failures.push(error),
            }
        }
        (NetworkLinks { links, plan }, failures)
    }

    /// Takes the ring buffer of ended connections; an error the second time.
    pub fn take_ended(&mut self) -> Result<EndedReader, LoadError> {
        let ring = self.take_ring("ENDED")?;
        Ok(EndedReader { ring })
    }

    /// Takes the ring buffer of name servers' answers; an error the second time.
    pub fn take_answers(&mut self) -> Result<AnswerReader, LoadError> {
        let ring = self.take_ring("ANSWERS")?;
        Ok(AnswerReader { ring })
    }

    pub(super) fn take_ring(&mut self, name: &'static str) -> Result<RingBuf<MapData>, LoadError> {
        let map = self.ebpf().take_map(name).ok_or(LoadError::NoMap(name))?;
        RingBuf::try_from(map).map_err(|source| LoadError::Map {
            map: name,
            source: source.into(),
        })
    }

    /// Every connection in the kernel's table.
    pub fn connections(&self) -> Result<Vec<Connection>, LoadError> {
        let mut found = Vec::new();
        self.read_map("CONNECTIONS", |_cookie: u64, connection: Connection| {
            found.push(connection);
        })?;
        Ok(found)
    }

    /// Drops of packets so far, of connections that were not forgotten.
    pub fn drops(&self) -> Result<Vec<(DropKey, u64)>, LoadError> {
        let mut found = Vec::new();
        self.read_map("DROPS", |key: DropKey, number: u64| {
            found.push((key, number));
        })?;
        Ok(found)
    }

    /// Adds a connection that is older than the programs, unless they have met it by now. False when
    /// there is no room.
    pub fn add_connection(&mut self, connection: &Connection) -> Result<bool, LoadError> {
        self.add_new("CONNECTIONS", connection.cookie, connection.to_bytes())
    }

    /// Takes out a connection whose record waits in the table.
    pub fn forget_connection(&mut self, cookie: u64) -> Result<(), LoadError> {
        // What the kernel side follows of it goes with it.
        self.remove("HTTP2", &cookie.to_ne_bytes())?;
        self.remove("CONNECTIONS", &cookie.to_ne_bytes())
    }

    pub fn forget_drop(&mut self, key: DropKey) -> Result<(), LoadError> {
        let mut bytes = [0; size_of::<DropKey>()];
        let (cookie, reason) = bytes.split_at_mut(8);
        cookie.copy_from_slice(&key.cookie.to_ne_bytes());
        if let Some(reason) = reason.first_chunk_mut() {
            *reason = key.reason.to_ne_bytes();
        }
        self.remove("DROPS", &bytes)
    }

    /// Tells the programs that a socket listens on a port; without its cookie the port stays for good. False
    /// when there is no room.
    pub fn add_listener(
        &mut self,
        key: ListenerKey,
        cookie: Option<u64>,
    ) -> Result<bool, LoadError> {
        const MAP: &str = "LISTENERS";
        if let Some(cookie) = cookie
            && !self.add_new("LISTENING", cookie, key_bytes(key))?
        {
            return Ok(false);
        }
        let value = if cookie.is_some() {
            LISTENER_OF_SOCKETS
        } else {
            LISTENER_STAYS
        };
        let failed = |source: MapError| LoadError::Map {
            map: MAP,
            source: source.into(),
        };
        let map = self.ebpf().map_mut(MAP).ok_or(LoadError::NoMap(MAP))?;
        let mut table: HashMap<_, [u32; 2], u32> = HashMap::try_from(map).map_err(failed)?;
        match table.insert([key.network_namespace, key.port], value, 0) {
            Ok(()) => Ok(true),
            Err(MapError::SyscallError(error))
                if error.io_error.raw_os_error() == Some(libc::E2BIG) =>
            {
                Ok(false)
            }
            Err(source) => Err(failed(source)),
        }
    }

    /// Takes out ports that no socket listens on any more.
    pub fn forget_listeners(&mut self) -> Result<(), LoadError> {
        // In this order, as a socket that begins to listen is in the second table first. One that does so between
        // here and the removal, on a port that was just given up, is missed: its connections are met when they
        // are used.
        let mut ports = Vec::new();
        self.read_map("LISTENERS", |key: ListenerKey, value: u32| {
            if value == LISTENER_OF_SOCKETS {
                ports.push(key);
            }
        })?;
        let mut listening = HashSet::new();
        self.read_map("LISTENING", |_cookie: u64, key: ListenerKey| {
            listening.insert(key);
        })?;
        for key in ports.into_iter().filter(|key| !listening.contains(key)) {
            self.remove("LISTENERS", &key_bytes(key))?;
        }
        Ok(())
    }

    /// The counters of the network programs, summed over CPUs.
    pub fn network_counters(&self) -> Result<[u64; NETWORK_COUNTERS as usize], LoadError> {
        self.sums("NETWORK_COUNTS")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_whole_or_refused() {
        let connection = Connection {
            header: RecordHeader {
                kind: KIND_CONNECTION,
                bytes: u32::try_from(size_of::<Connection>()).unwrap(),
                time_ns: 7,
            },
            cookie: 42,
            ..Connection::default()
        };
        let bytes = connection.to_bytes();
        assert_eq!(decode(&bytes), Some(connection));
        for length in 0..bytes.len() {
            assert_eq!(decode(&bytes[..length]), None, "{length}");
        }
        let other = Connection::default().to_bytes();
        assert_eq!(decode(&other), None);
    }
}
