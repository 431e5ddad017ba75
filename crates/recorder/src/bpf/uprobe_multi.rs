//! Programs at many places of a file by one link (`BPF_TRACE_UPROBE_MULTI`).
//!
//! Places that are probed by `perf_event_open` go one after the other, and the kernel waits a tenth of a second for each
//! until no CPU can be in it. Those of a link go together, with one wait (`bpf_uprobe_unregister` in
//! `kernel/trace/bpf_trace.c`, since 6.12). aya cannot load programs for such links: they are taken from the object once
//! more, and loaded here with the maps that aya has made.

use std::{
    collections::{BTreeMap, HashSet},
    ffi::CString,
    fs::File,
    io,
    os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd},
    time::{Duration, Instant},
};

use aya::{sys::SyscallError, util::KernelVersion};
use aya_obj::{Object, generated::bpf_insn};

use super::{load_error::LoadError, loaded::facts, loaded_object::ProgramReport, object};

/// Denied like a program: each place has a link of its own.
pub(crate) const MULTI: &str = "uprobe_multi";

/// Command numbers in `enum bpf_cmd`.
const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_LINK_CREATE: libc::c_long = 28;
/// In `enum bpf_prog_type`, and in `enum bpf_attach_type`.
const BPF_PROG_TYPE_KPROBE: u32 = 2;
const BPF_TRACE_UPROBE_MULTI: u32 = 48;
/// Longest name that the kernel keeps, without the zero behind it.
const NAME_BYTES: usize = 15;

/// Attributes of `BPF_PROG_LOAD` in `union bpf_attr`, up to the last one that is needed.
#[repr(C)]
#[derive(Debug, Default)]
struct LoadAttributes {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; NAME_BYTES + 1],
    interface: u32,
    expected_attach_type: u32,
}

/// Attributes of `BPF_LINK_CREATE` for these links.
#[repr(C)]
#[derive(Debug, Default)]
struct LinkAttributes {
    program: u32,
    target: u32,
    attach_type: u32,
    flags: u32,
    path: u64,
    offsets: u64,
    reference_counters: u64,
    cookies: u64,
    count: u32,
    multi_flags: u32,
    pid: u32,
    padding: u32,
}

#[derive(Debug)]
struct MultiProgram {
    descriptor: OwnedFd,
    load_time: Duration,
}

/// Programs that were loaded for such links.
#[derive(Debug)]
pub(super) struct MultiPrograms(BTreeMap<&'static str, MultiProgram>);

/// Whether the kernel has such links without a fault: before 6.10 a link for one process met its first thread alone
/// ("bpf: fix multi-uprobe PID filtering logic"), and before 6.12 the places of a link go one after the other.
pub(super) fn is_supported() -> bool {
    KernelVersion::current().is_ok_and(|version| version >= KernelVersion::new(6, 12, 0))
}

impl MultiPrograms {
    /// Loads programs of the object with the maps that it has in the kernel, by their names.
    pub(super) fn load(
        names: &[&'static str],
        maps: &[(&str, BorrowedFd<'_>)],
    ) -> Result<Self, LoadError> {
        let parse_failed = |error: aya_obj::ParseError| LoadError::Load(Box::new(error.into()));
        let mut object = Object::parse(&object::bytes()).map_err(parse_failed)?;
        object
            .programs
            .retain(|name, _| names.contains(&name.as_str()));
        let relocate_failed = |error: aya_obj::relocation::EbpfRelocationError| {
            LoadError::Load(Box::new(error.into()))
        };
        let definitions = std::mem::take(&mut object.maps);
        let text: HashSet<usize> = object
            .functions
            .keys()
            .map(|(section, _)| *section)
            .collect();
        let known = maps.iter().filter_map(|(name, descriptor)| {
            let definition = definitions.get(*name)?;
            Some((*name, descriptor.as_raw_fd(), definition))
        });
        object
            .relocate_maps(known, &text)
            .map_err(relocate_failed)?;
        object.relocate_calls(&text).map_err(relocate_failed)?;
        let mut programs = BTreeMap::new();
        for name in names {
            let program = object.programs.get(*name);
            let program = program.ok_or(LoadError::NoProgram(name))?;
            let function = object.functions.get(&program.function_key());
            let function = function.ok_or(LoadError::NoProgram(name))?;
            let began = Instant::now();
            let descriptor =
                load(name, &function.instructions, &program.license).map_err(|source| {
                    LoadError::Program {
                        program: name,
                        source: Box::new(source.into()),
                    }
                })?;
            let load_time = began.elapsed();
            programs.insert(
                *name,
                MultiProgram {
                    descriptor,
                    load_time,
                },
            );
        }
        Ok(Self(programs))
    }

    /// The programs' names with the time that the kernel took to load them.
    pub(super) fn load_times(&self) -> impl Iterator<Item = (&'static str, Duration)> {
        let all = self.0.iter();
        all.map(|(name, program)| (*name, program.load_time))
    }

    /// Puts a program at places of a file, with their cookies: for one process or, without a pid, for all that run it. At
    /// all places or at none. They are free again when what is returned is dropped.
    pub(super) fn attach(
        &self,
        name: &'static str,
        file: &File,
        places: &[(u64, u64)],
        pid: Option<u32>,
    ) -> Result<OwnedFd, LoadError> {
        let program = self.0.get(name).ok_or(LoadError::NoProgram(name))?;
        let (offsets, cookies): (Vec<u64>, Vec<u64>) = places.iter().copied().unzip();
        let path = CString::new(path_of(file)).unwrap_or_default();
        let attributes = LinkAttributes {
            program: number(&program.descriptor),
            attach_type: BPF_TRACE_UPROBE_MULTI,
            path: path.as_ptr() as u64,
            offsets: offsets.as_ptr() as u64,
            cookies: cookies.as_ptr() as u64,
            count: u32::try_from(places.len()).unwrap_or(u32::MAX),
            pid: pid.unwrap_or(0),
            ..LinkAttributes::default()
        };
        // SAFETY: path, offsets and cookies outlive the call, and the latter two have `count` elements.
        unsafe { command("bpf_link_create", BPF_LINK_CREATE, &attributes) }.map_err(|source| {
            LoadError::Attach {
                program: name,
                source: Box::new(source.into()),
            }
        })
    }

    /// Facts about a program.
    pub(super) fn report(&self, name: &str) -> Option<ProgramReport> {
        let program = self.0.get(name)?;
        let facts = facts(program.descriptor.as_raw_fd())?;
        let verified = facts.number("verified_insns");
        Some(ProgramReport {
            name: name.to_owned(),
            verified_instructions: verified.and_then(|number| u32::try_from(number).ok()),
            load_time: program.load_time,
            run_count: facts.number("run_cnt").unwrap_or(0),
            run_time: Duration::from_nanos(facts.number("run_time_ns").unwrap_or(0)),
            error: None,
        })
    }
}

/// The file itself, whatever has its name by now.
pub(super) fn path_of(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

fn load(name: &str, instructions: &[bpf_insn], license: &CString) -> Result<OwnedFd, SyscallError> {
    let mut attributes = LoadAttributes {
        kind: BPF_PROG_TYPE_KPROBE,
        instruction_count: u32::try_from(instructions.len()).unwrap_or(u32::MAX),
        instructions: instructions.as_ptr() as u64,
        license: license.as_ptr() as u64,
        expected_attach_type: BPF_TRACE_UPROBE_MULTI,
        ..LoadAttributes::default()
    };
    for (to, from) in attributes
        .name
        .iter_mut()
        .zip(name.bytes().take(NAME_BYTES))
    {
        *to = from;
    }
    // SAFETY: instructions and license outlive the call, and there are as many instructions as it says.
    unsafe { command("bpf_prog_load", BPF_PROG_LOAD, &attributes) }
}

fn number(descriptor: &OwnedFd) -> u32 {
    u32::try_from(descriptor.as_raw_fd()).unwrap_or(u32::MAX)
}

/// Runs a command that makes a descriptor.
///
/// # Safety
///
/// `attributes` has the layout that the command wants, and what it points to is there.
unsafe fn command<T>(
    call: &'static str,
    command: libc::c_long,
    attributes: &T,
) -> Result<OwnedFd, SyscallError> {
    // SAFETY: as the caller promises.
    let result = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            command,
            std::ptr::from_ref(attributes),
            size_of::<T>(),
        )
    };
    match i32::try_from(result) {
        // SAFETY: the kernel has just made this descriptor for us.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(SyscallError {
            call,
            io_error: io::Error::last_os_error(),
        }),
    }
}
