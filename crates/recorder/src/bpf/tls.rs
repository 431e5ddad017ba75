//! The kernel side of TLS: its maps, and probes at chosen instructions of files.

use std::{
    fs::File,
    num::NonZeroU32,
    os::fd::{AsFd as _, OwnedFd},
    time::Instant,
};

use aya::programs::{
    ProgramError, UProbe,
    uprobe::{UProbeAttachLocation, UProbeAttachPoint, UProbeLink, UProbeScope},
};
use profiler_common::tls::{
    FRAME_UNKNOWN, PLACE_STACK, PROCESS_WORDS, SITE_GOROUTINE, SITE_HANDSHAKE, SITE_INT,
    SITE_MOVED, SITE_PROCESSES, SITE_READS, SITE_RUSTLS, SITE_STEPPED, SiteCookie, TLS_COUNTERS,
    TlsConfig,
};
use profiler_tls_sites::{
    Convention, EntrySite, Library, Operation, RegisterNumber, ReturnSite, SiteClass, TlsCall,
    ValuePlace,
};

use super::{
    load_error::LoadError,
    loaded_object::{LoadedObject, data_of},
    programs::{Group, ProgramRow, programs_of, row},
    uprobe_multi::{MULTI, MultiPrograms, is_supported, path_of},
};

/// The programs of arguments, of results, of ciphertext that is handed out, and of rustls.
const CALL_PROGRAM: &ProgramRow = row("tls_call");
const RESULT_PROGRAM: &ProgramRow = row("tls_result");
const CIPHERTEXT_PROGRAM: &ProgramRow = row("tls_ciphertext");
const RUSTLS_PROGRAM: &ProgramRow = row("tls_rustls");
const RUSTLS_RESULT_PROGRAM: &ProgramRow = row("tls_rustls_result");

/// Words of `struct pt_regs` by the number of the register: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8
/// to r15 (`arch/x86/include/asm/ptrace.h`).
const WORDS: [u8; 16] = [10, 11, 12, 5, 19, 4, 13, 14, 9, 8, 7, 6, 3, 2, 1, 0];

/// A probe in a file, or several; they are gone when this is dropped.
#[derive(Debug)]
pub struct TlsLink {
    _link: Link,
}

#[derive(Debug)]
enum Link {
    One { _link: UProbeLink },
    Many { _link: OwnedFd },
}

/// A place for a probe, as the kernel is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsProbe {
    program: &'static ProgramRow,
    /// In the file.
    pub offset: u64,
    cookie: SiteCookie,
}

impl TlsProbe {
    /// The probe for the arguments of a call.
    pub fn arguments(call: TlsCall, site: &EntrySite, offset: u64) -> Option<Self> {
        Some(Self {
            program: match (call.operation, call.library) {
                (Operation::Ciphertext, _) => CIPHERTEXT_PROGRAM,
                // It calls the socket, as others do.
                (Operation::Handshake, _) => CALL_PROGRAM,
                (_, Library::Rustls) => RUSTLS_PROGRAM,
                _ => CALL_PROGRAM,
            },
            offset,
            cookie: SiteCookie {
                kind: kind(call) | stepped(site.site.class),
                first: place(site.session)?,
                buffer: place(site.buffer)?,
                length: place(site.length)?,
                moved: match site.moved {
                    Some(moved) => place(moved)?,
                    None => 0,
                },
                frame_words: frame_words(site.site.frame_bytes),
            },
        })
    }

    /// The probe for the result of a call.
    pub fn result(call: TlsCall, site: &ReturnSite, offset: u64) -> Option<Self> {
        Some(Self {
            program: match call.library {
                Library::Rustls => RUSTLS_RESULT_PROGRAM,
                _ => RESULT_PROGRAM,
            },
            offset,
            cookie: SiteCookie {
                kind: kind(call) | stepped(site.site.class),
                first: word(site.result)?,
                buffer: 0,
                length: 0,
                moved: 0,
                frame_words: frame_words(site.site.frame_bytes),
            },
        })
    }
}

fn kind(call: TlsCall) -> u8 {
    let reads = match call.operation {
        Operation::Read => SITE_READS,
        Operation::Write | Operation::Ciphertext => 0,
        Operation::Handshake => SITE_HANDSHAKE,
        Operation::Process => SITE_PROCESSES,
        Operation::Give => SITE_HANDSHAKE | SITE_PROCESSES,
    };
    let form = match call.convention {
        Convention::Int => SITE_INT,
        Convention::MovedByPointer => SITE_MOVED,
        Convention::Go | Convention::GoSession => SITE_GOROUTINE,
        Convention::Session
        | Convention::Size
        | Convention::Long
        | Convention::RustProcess
        | Convention::RustPayload
        | Convention::RustChunks => 0,
    };
    let library = match call.library {
        Library::Rustls => SITE_RUSTLS,
        Library::OpenSsl | Library::BoringSsl | Library::GnuTls | Library::Go => 0,
    };
    reads | form | library
}

fn stepped(class: SiteClass) -> u8 {
    if class.is_cheap() { 0 } else { SITE_STEPPED }
}

fn word(register: RegisterNumber) -> Option<u8> {
    WORDS.get(usize::from(register.number())).copied()
}

fn place(place: ValuePlace) -> Option<u8> {
    match place {
        ValuePlace::Register(register) => word(register),
        ValuePlace::Stack(words) => u8::try_from(words)
            .ok()
            .filter(|words| words & PLACE_STACK == 0)
            .map(|words| words | PLACE_STACK),
    }
}

fn frame_words(bytes: Option<u32>) -> u16 {
    bytes
        .filter(|bytes| bytes % 8 == 0)
        .and_then(|bytes| u16::try_from(bytes / 8).ok())
        .unwrap_or(FRAME_UNKNOWN)
}

/// The global of the programs; `None`: no plaintext is captured.
pub(super) fn config(tls_bytes: Option<u32>) -> TlsConfig {
    match tls_bytes {
        Some(capture_bytes) => TlsConfig {
            watched: 1,
            capture_bytes,
        },
        None => TlsConfig::default(),
    }
}

/// What came of each: the links, and the last failure.
fn sorted(
    results: impl Iterator<Item = Result<TlsLink, LoadError>>,
) -> (Vec<TlsLink>, Option<LoadError>) {
    let (mut links, mut failure) = (Vec::new(), None);
    for result in results {
        match result {
            Ok(link) => links.push(link),
            Err(error) => failure = Some(error),
        }
    }
    (links, failure)
}

const TLS_PROCESSES: &str = "TLS_PROCESSES";

fn tls_processes_failed(source: aya::maps::MapError) -> LoadError {
    LoadError::Map {
        map: TLS_PROCESSES,
        source: source.into(),
    }
}

impl LoadedObject {
    /// Loads the programs, without attaching them: for many places at once where the kernel can do that.
    pub(super) fn load_tls(&mut self) -> Result<(), LoadError> {
        for row in programs_of(&[Group::Tls]) {
            self.allow_program(row)?;
        }
        if is_supported() && self.allow(MULTI).is_ok() {
            match self.load_multi() {
                Ok(()) => return Ok(()),
                Err(error) => tracing::debug!(%error, "each probe gets a link of its own"),
            }
        }
        for row in programs_of(&[Group::Tls]) {
            let name = row.name;
            let began = Instant::now();
            self.tls_program(name)?
                .load()
                .map_err(|source| LoadError::Program {
                    program: name,
                    source: source.into(),
                })?;
            self.note_load_time(name, began.elapsed());
        }
        Ok(())
    }

    fn load_multi(&mut self) -> Result<(), LoadError> {
        let names: Vec<&'static str> = programs_of(&[Group::Tls]).map(|row| row.name).collect();
        let maps = self.ebpf().maps().filter_map(|(name, map)| {
            let (_kind, data) = data_of(map)?;
            Some((name, data.fd().as_fd()))
        });
        let multi = MultiPrograms::load(&names, &maps.collect::<Vec<_>>())?;
        for (name, time) in multi.load_times() {
            self.note_load_time(name, time);
        }
        self.multi = Some(multi);
        Ok(())
    }

    /// Puts probes into a file, for one process or, without a pid, for all that run it; those of results first, so that no call is
    /// remembered whose result would not be seen. What could be put in, and why something could not.
    pub fn attach_tls(
        &mut self,
        probes: &[TlsProbe],
        file: &File,
        pid: Option<u32>,
    ) -> (Vec<TlsLink>, Option<LoadError>) {
        let Some(multi) = &self.multi else {
            let all = probes.iter();
            return sorted(all.map(|probe| self.attach_one(probe, file, pid)));
        };
        let mut results = Vec::new();
        let is_of_result = |probe: &&TlsProbe| {
            [RESULT_PROGRAM.name, RUSTLS_RESULT_PROGRAM.name].contains(&probe.program.name)
        };
        let (first, then): (Vec<&TlsProbe>, Vec<&TlsProbe>) = probes.iter().partition(is_of_result);
        let probes = [first, then].concat();
        for (at, first) in probes.iter().enumerate() {
            let is_same = |probe: &&&TlsProbe| probe.program.name == first.program.name;
            if probes.iter().take(at).any(|probe| is_same(&probe)) {
                continue;
            }
            let places = probes.iter().filter(is_same);
            let places: Vec<(u64, u64)> = places
                .map(|probe| (probe.offset, probe.cookie.to_bits()))
                .collect();
            let attach = |places| multi.attach(first.program.name, file, places, pid);
            match attach(&places) {
                // One place that the kernel refuses keeps none of the others away.
                Err(_) if places.len() > 1 => {
                    let alone = places.iter().map(std::slice::from_ref);
                    results.extend(alone.map(attach));
                }
                result => results.push(result),
            }
        }
        let link = |descriptor| TlsLink {
            _link: Link::Many { _link: descriptor },
        };
        sorted(results.into_iter().map(|result| result.map(link)))
    }

    fn attach_one(
        &mut self,
        probe: &TlsProbe,
        file: &File,
        pid: Option<u32>,
    ) -> Result<TlsLink, LoadError> {
        let failed = |source: ProgramError| LoadError::Attach {
            program: probe.program.name,
            source: source.into(),
        };
        let point = UProbeAttachPoint {
            location: UProbeAttachLocation::AbsoluteOffset(probe.offset),
            cookie: Some(probe.cookie.to_bits()),
        };
        let scope = match pid.and_then(NonZeroU32::new) {
            Some(pid) => UProbeScope::OneProcess(pid),
            None => UProbeScope::AllProcesses,
        };
        let program = self.tls_program(probe.program.name)?;
        let id = program
            .attach(point, path_of(file), scope)
            .map_err(failed)?;
        let link = program.take_link(id).map_err(failed)?;
        Ok(TlsLink {
            _link: Link::One { _link: link },
        })
    }

    /// Sets a word of the state, by `profiler_common::tls::STATE_*`.
    pub fn set_tls_state(&mut self, word: u32, value: u64) -> Result<(), LoadError> {
        const MAP: &str = "TLS_STATE";
        let failed = |source: aya::maps::MapError| LoadError::Map {
            map: MAP,
            source: source.into(),
        };
        let map = self.ebpf().map_mut(MAP).ok_or(LoadError::NoMap(MAP))?;
        let mut words: aya::maps::Array<_, u64> =
            aya::maps::Array::try_from(map).map_err(failed)?;
        words.set(word, value, 0).map_err(failed)
    }

    /// Says since when a process has probes, by `profiler_common::tls::PROCESS_*`.
    pub fn set_tls_process(
        &mut self,
        pid: u32,
        words: [u64; PROCESS_WORDS],
    ) -> Result<(), LoadError> {
        let mut processes = self.tls_processes()?;
        processes
            .insert(pid, words, 0)
            .map_err(tls_processes_failed)
    }

    /// What the kernel side says of a process, by `profiler_common::tls::PROCESS_*`; `None`: it has no probes.
    pub fn tls_process(&mut self, pid: u32) -> Result<Option<[u64; PROCESS_WORDS]>, LoadError> {
        let processes = self.tls_processes()?;
        match processes.get(&pid, 0) {
            Ok(words) => Ok(Some(words)),
            Err(aya::maps::MapError::KeyNotFound) => Ok(None),
            Err(error) => Err(tls_processes_failed(error)),
        }
    }

    /// A process has no probes any more, if it ever had.
    pub fn forget_tls_process(&mut self, pid: u32) -> Result<(), LoadError> {
        let mut processes = self.tls_processes()?;
        if let Err(error) = processes.remove(&pid) {
            tracing::trace!(%error, pid, "no probes to forget");
        }
        Ok(())
    }

    fn tls_processes(
        &mut self,
    ) -> Result<aya::maps::HashMap<&mut aya::maps::MapData, u32, [u64; PROCESS_WORDS]>, LoadError>
    {
        let map = self.ebpf().map_mut(TLS_PROCESSES);
        let map = map.ok_or(LoadError::NoMap(TLS_PROCESSES))?;
        aya::maps::HashMap::try_from(map).map_err(tls_processes_failed)
    }

    /// Counters by `profiler_common::tls`, summed over CPUs.
    pub fn tls_counters(&self) -> Result<[u64; TLS_COUNTERS as usize], LoadError> {
        self.sums("TLS_COUNTS")
    }

    fn tls_program(&mut self, name: &'static str) -> Result<&mut UProbe, LoadError> {
        self.ebpf()
            .program_mut(name)
            .ok_or(LoadError::NoProgram(name))?
            .try_into()
            .map_err(|source: ProgramError| LoadError::Program {
                program: name,
                source: source.into(),
            })
    }
}

#[cfg(test)]
mod tests {
    use profiler_tls_sites::{Library, Site, SiteClass};

    use super::*;

    const CALL: TlsCall = TlsCall {
        name: "SSL_read_ex",
        library: Library::OpenSsl,
        operation: Operation::Read,
        convention: Convention::MovedByPointer,
    };

    fn site(frame_bytes: Option<u32>) -> Site {
        Site {
            address: 0x1000,
            class: SiteClass::Push,
            frame_bytes,
        }
    }

    #[test]
    fn places_are_words_of_the_registers_or_of_the_stack() {
        let entry = EntrySite {
            site: site(Some(24)),
            session: ValuePlace::Register(RegisterNumber::RDI),
            buffer: ValuePlace::Stack(3),
            length: ValuePlace::Register(RegisterNumber::RDX),
            moved: Some(ValuePlace::Register(RegisterNumber::RCX)),
        };
        let probe = TlsProbe::arguments(CALL, &entry, 0x2000).unwrap();
        let expected = SiteCookie {
            kind: SITE_READS | SITE_MOVED,
            first: 14,
            buffer: PLACE_STACK | 3,
            length: 12,
            moved: 11,
            frame_words: 3,
        };
        assert_eq!(probe.cookie, expected);
        let far = EntrySite {
            buffer: ValuePlace::Stack(128),
            ..entry
        };
        assert_eq!(TlsProbe::arguments(CALL, &far, 0), None);
    }

    #[test]
    fn a_frame_that_is_not_known_stays_so() {
        assert_eq!(frame_words(None), FRAME_UNKNOWN);
        assert_eq!(frame_words(Some(7)), FRAME_UNKNOWN);
        assert_eq!(frame_words(Some(u32::MAX)), FRAME_UNKNOWN);
        assert_eq!(frame_words(Some(0)), 0);
        let one = ReturnSite {
            site: site(None),
            result: RegisterNumber::RBX,
        };
        let probe = TlsProbe::result(CALL, &one, 1).unwrap();
        assert_eq!((probe.cookie.first, probe.program.name), (5, "tls_result"));
    }
}
