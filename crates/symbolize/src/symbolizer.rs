//! The front of the module: stacks of addresses in, frames out.

use std::{
    cell::OnceCell,
    collections::{HashMap, HashSet},
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use profiler_common::unwind::frame as mark;
use profiler_image::snapshot::{Region, Snapshot};
use profiler_model::{
    Frame, FrameId, FrameSpace, Function, ModuleKind, NameSource, ProcessKey, ProfileBuilder,
    StackFault, elided_marker,
};

use super::{
    config::SymbolizeConfig,
    kernel::{Kernel, KernelSymbols},
    mapped_process::{MappedProcess, Placed},
    modules::Modules,
    native::{NamedFunction, Names},
    quality::Quality,
    vdso::Vdso,
};

/// Whether the mappings of a process are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mappings {
    Known,
    /// The process exited before they could be read, or /proc refused.
    Missing,
}

/// One program that a process runs: exec replaces it under the same pid and start time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ImageKey {
    pub process: ProcessKey,
    /// See `profiler_common::on_cpu::CountKey::generation`.
    pub generation: u32,
}

impl From<ProcessKey> for ImageKey {
    /// The first program that is seen of a process.
    fn from(process: ProcessKey) -> Self {
        Self {
            process,
            generation: 0,
        }
    }
}

/// A stack as addresses, leaf first.
#[derive(Clone, Debug)]
pub struct AddressStack {
    pub image: ImageKey,
    pub kernel: Option<Arc<[u64]>>,
    pub user: Option<Arc<[u64]>>,
}

/// Resolves addresses of processes and of the kernel, with bounded caches.
///
/// It stays on the thread that made it (the ELF library shares by `Rc`).
#[derive(Debug)]
pub struct Symbolizer {
    config: SymbolizeConfig,
    processes: HashMap<ImageKey, MappedProcess>,
    modules: Modules,
    kernel: Kernel,
    /// Read when first asked for; `None` where there is none.
    vdso: OnceCell<Option<Vdso>>,
    quality: Quality,
    swept: Instant,
    /// Of one that takes the place of another: programs that it has looked at by itself, since they are not reported
    /// again.
    caught_up: Option<HashSet<ImageKey>>,
}

/// Programs that are remembered as looked at.
const CAUGHT_UP: usize = 65_536;
/// Exited processes are looked for this often.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// Bytes of all perf-maps together.
const PERF_MAPS_LIMIT: usize = 64 << 20;

impl Symbolizer {
    pub fn new(config: SymbolizeConfig) -> Self {
        Self {
            modules: Modules::new(config.clone()),
            config,
            processes: HashMap::new(),
            kernel: Kernel::default(),
            vdso: OnceCell::new(),
            quality: Quality::default(),
            swept: Instant::now(),
            caught_up: None,
        }
    }

    /// One that takes the place of another, and has no reports of the programs that run.
    pub(super) fn successor(config: SymbolizeConfig) -> Self {
        Self {
            caught_up: Some(HashSet::new()),
            ..Self::new(config)
        }
    }

    /// Looks at a program that may not have been reported to it.
    pub(super) fn catch_up(&mut self, image: ImageKey) {
        let Some(caught_up) = &mut self.caught_up else {
            return;
        };
        if caught_up.len() >= CAUGHT_UP {
            caught_up.clear();
        }
        if caught_up.insert(image) && !self.processes.contains_key(&image) {
            self.process_started(image);
        }
    }

    /// Reads the mappings of a process and opens its executable files now, while it is alive.
    /// Call when a process is first seen and after it called exec.
    pub fn process_started(&mut self, image: impl Into<ImageKey>) -> Mappings {
        let image = image.into();
        match Snapshot::read(image.process, self.config.max_file_bytes) {
            Ok(snapshot) => {
                self.adopt(image, snapshot);
                Mappings::Known
            }
            Err(error) => self.not_read(image, &error),
        }
    }

    /// Takes over mappings that another thread read.
    pub(super) fn adopt(&mut self, image: ImageKey, snapshot: Snapshot) {
        let now = Instant::now();
        self.sweep(now);
        self.make_room();
        let mapped = MappedProcess::new(
            image.process,
            snapshot,
            &mut self.modules,
            &mut self.quality,
        );
        let others = |key: &ImageKey| key.process == image.process && *key != image;
        // Mappings that were read for an earlier program, but after its exec, are this program's:
        // no names for the earlier one are better than names of another.
        self.processes
            .retain(|key, other| !(others(key) && other.image() == mapped.image()));
        for (key, other) in &mut self.processes {
            if others(key) {
                other.exited.get_or_insert(now);
            }
        }
        self.processes.insert(image, mapped);
    }

    /// Counts that mappings could not be read. What was known before a failed re-reading is better
    /// than nothing.
    pub(super) fn not_read(&mut self, image: ImageKey, error: &std::io::Error) -> Mappings {
        tracing::trace!(process = %image.process, %error, "mappings not read");
        self.quality.mappings_missing += 1;
        self.mappings(image)
    }

    /// Whether the mappings of a program are known.
    pub fn mappings(&self, image: impl Into<ImageKey>) -> Mappings {
        if self.processes.contains_key(&image.into()) {
            Mappings::Known
        } else {
            Mappings::Missing
        }
    }

    /// Whether names of a program's code were looked for in a perf map that is older than its process.
    pub(super) fn has_old_perf_map(&self, image: ImageKey) -> bool {
        let mapped = self.processes.get(&image);
        mapped.is_some_and(|mapped| mapped.perf_map.is_old)
    }

    /// Forgets a process some time after its exit: its last samples are still on their way.
    pub fn process_exited(&mut self, process: ProcessKey) {
        let now = Instant::now();
        for (image, mapped) in &mut self.processes {
            if image.process == process {
                mapped.exited.get_or_insert(now);
            }
        }
        self.sweep(now);
    }

    /// Frames for user addresses, leaf first. `addresses[0]` is the interrupted instruction, the
    /// others are return addresses unless marked as interrupted below a signal. Marks say where
    /// frames are missing. Never fails: what has no trustworthy name has none.
    pub fn user_stack(
        &mut self,
        image: impl Into<ImageKey>,
        addresses: &[u64],
        into: &mut ProfileBuilder,
    ) -> Vec<FrameId> {
        let image = image.into();
        let frame = |(index, address): (usize, &u64)| {
            if let Some(marker) = marker(*address, into) {
                return marker;
            }
            self.user_frame(image, user_address(index, *address), into)
        };
        addresses.iter().enumerate().map(frame).collect()
    }

    /// Frames for kernel addresses, leaf first.
    pub fn kernel_stack(&mut self, addresses: &[u64], into: &mut ProfileBuilder) -> Vec<FrameId> {
        let frame = |(index, address): (usize, &u64)| {
            if let Some(cut) = cut(*address, into) {
                return cut;
            }
            let address = code_address(index, *address);
            let found = self.kernel.names(address);
            self.quality.frame(found.names.source);
            let place = CodeLocation {
                space: FrameSpace::Kernel,
                kind: found.kind,
                path: &found.module,
                build_id: &found.build_id,
                offset: address,
            };
            place.frame(&found.names, into)
        };
        addresses.iter().enumerate().map(frame).collect()
    }

    /// See [`SymbolizerService::know_kernel`](crate::SymbolizerService::know_kernel).
    pub(crate) fn know_kernel(&mut self, printed: &[(u64, String)]) {
        for (address, text) in printed {
            self.kernel.know(*address, text);
        }
    }

    /// Drops what can be read again: names, tables of the kernel and of inferred names, and the content of files and
    /// perf-maps of running processes.
    pub fn drop_caches(&mut self) {
        let running = self
            .processes
            .values()
            .filter(|mapped| mapped.exited.is_none());
        let again: HashSet<_> = running
            .flat_map(MappedProcess::module_keys)
            .copied()
            .collect();
        self.modules.drop_caches(|key| again.contains(key));
        for mapped in self.processes.values_mut() {
            if mapped.exited.is_none() {
                mapped.perf_map = super::perf_map::PerfMap::default();
            }
        }
        self.kernel.drop_table();
    }

    /// Whether kernel functions have names, and if not, why. `Unread` before the first kernel
    /// stack.
    pub fn kernel_symbols(&self) -> KernelSymbols {
        self.kernel.state()
    }

    /// Counters for metrics.
    pub fn quality(&self) -> Quality {
        let mut quality = self.quality.clone();
        self.modules.report(&mut quality);
        quality
    }

    fn user_frame(&mut self, image: ImageKey, address: u64, into: &mut ProfileBuilder) -> FrameId {
        let max_file_bytes = self.config.max_file_bytes;
        let placed = self.processes.get_mut(&image).and_then(|mapped| {
            mapped.find(
                address,
                max_file_bytes,
                &mut self.modules,
                &mut self.quality,
            )
        });
        let Some(Placed {
            start,
            bytes,
            offset,
            region,
        }) = placed
        else {
            return self.finish(ModuleKind::Unknown, "", &[], address, &Names::none(), into);
        };
        let inside = address - start;
        let file_offset = inside.wrapping_add(offset);
        match region {
            Region::Module { path, key } => {
                let found = self.modules.names(&key, file_offset, &mut self.quality);
                let (build_id, names) =
                    found.unwrap_or_else(|| (Rc::from([]), Rc::new(Names::none())));
                self.finish(ModuleKind::Elf, &path, &build_id, file_offset, &names, into)
            }
            Region::Refused { path } => self.finish(
                ModuleKind::Elf,
                &path,
                &[],
                file_offset,
                &Names::none(),
                into,
            ),
            Region::Vdso => {
                let vdso = self.vdso.get_or_init(Vdso::read).as_ref();
                let names = vdso.map_or_else(Names::none, |vdso| vdso.names(inside, bytes));
                let build_id = vdso.map_or_else(Vec::new, |vdso| vdso.build_id.clone());
                self.finish(ModuleKind::Vdso, "[vdso]", &build_id, inside, &names, into)
            }
            Region::Anonymous { label } => {
                let names = self.jit_names(image, address);
                let label = if label.is_empty() { "[anon]" } else { &label };
                self.finish(ModuleKind::Anonymous, label, &[], address, &names, into)
            }
        }
    }

    fn jit_names(&mut self, image: ImageKey, address: u64) -> Names {
        let Some(mapped) = self.processes.get_mut(&image) else {
            return Names::none();
        };
        let name = mapped
            .jit_name(address, &mut self.quality)
            .map(str::to_owned);
        name.map_or_else(Names::none, |name| Names::one(name, NameSource::PerfMap))
    }

    fn finish(
        &mut self,
        kind: ModuleKind,
        path: &str,
        build_id: &[u8],
        offset: u64,
        names: &Names,
        into: &mut ProfileBuilder,
    ) -> FrameId {
        self.quality.frame(names.source);
        CodeLocation {
            space: FrameSpace::User,
            kind,
            path,
            build_id,
            offset,
        }
        .frame(names, into)
    }

    /// Forgets processes whose grace is over, and closes files that only they mapped.
    fn sweep(&mut self, now: Instant) {
        if now.saturating_duration_since(self.swept) < SWEEP_INTERVAL {
            return;
        }
        self.swept = now;
        let grace = self.config.exit_grace;
        let before = self.processes.len();
        self.processes.retain(|_, mapped| {
            mapped
                .exited
                .is_none_or(|exited| now.saturating_duration_since(exited) < grace)
        });
        self.bound_perf_maps();
        if self.processes.len() < before {
            self.close_unused();
        }
    }

    /// Makes room for one more process: first exited ones go, the longest gone first.
    fn make_room(&mut self) {
        while self.processes.len() >= self.config.max_processes.max(1) {
            let by_exit = |mapped: &MappedProcess| (mapped.exited.is_none(), mapped.exited);
            let oldest = self
                .processes
                .iter()
                .min_by_key(|(_, mapped)| by_exit(mapped))
                .map(|(key, _)| *key);
            let Some(oldest) = oldest else { return };
            self.processes.remove(&oldest);
            self.close_unused();
        }
    }

    fn close_unused(&mut self) {
        let mapped: HashSet<_> = self
            .processes
            .values()
            .flat_map(MappedProcess::module_keys)
            .copied()
            .collect();
        self.modules.close_unused(|key| mapped.contains(key));
    }

    /// Drops perf-maps, largest first, until they fit; one that is needed is read again.
    fn bound_perf_maps(&mut self) {
        let mut total: usize = self
            .processes
            .values()
            .map(|mapped| mapped.perf_map.bytes())
            .sum();
        while total > PERF_MAPS_LIMIT {
            let largest = self
                .processes
                .values_mut()
                .max_by_key(|mapped| mapped.perf_map.bytes());
            let Some(largest) = largest else { return };
            total = total.saturating_sub(largest.perf_map.bytes());
            largest.perf_map = super::perf_map::PerfMap::default();
            self.quality
                .refusal(profiler_image::module_file::Refusal::OverBudget);
        }
    }
}

/// Frames of a stack in which every address stands for itself, as [`Symbolizer::user_stack`] and
/// [`Symbolizer::kernel_stack`] make them where nothing is known.
pub(super) fn unnamed_stack(stack: &AddressStack, into: &mut ProfileBuilder) -> Vec<FrameId> {
    let (kernel, user) = (stack.kernel.as_deref(), stack.user.as_deref());
    let mut frames = Vec::new();
    for (index, address) in kernel.unwrap_or_default().iter().enumerate() {
        if let Some(cut) = cut(*address, into) {
            frames.push(cut);
            continue;
        }
        let place = CodeLocation {
            space: FrameSpace::Kernel,
            kind: ModuleKind::Kernel,
            path: "[kernel]",
            build_id: &[],
            offset: code_address(index, *address),
        };
        frames.push(place.frame(&Names::none(), into));
    }
    for (index, address) in user.unwrap_or_default().iter().enumerate() {
        frames.push(marker(*address, into).unwrap_or_else(|| {
            let place = CodeLocation {
                space: FrameSpace::User,
                kind: ModuleKind::Unknown,
                path: "",
                build_id: &[],
                offset: user_address(index, *address),
            };
            place.frame(&Names::none(), into)
        }));
    }
    frames
}

/// A mark that says why a stack ends early; `None` for an address, also of the kernel.
fn cut(address: u64, into: &mut ProfileBuilder) -> Option<FrameId> {
    let fault = mark::error_of(address)?;
    Some(into.marker(&StackFault::of_outcome(fault).marker()))
}

/// A mark that says where frames are missing; `None` for an address of a process.
fn marker(address: u64, into: &mut ProfileBuilder) -> Option<FrameId> {
    if let Some(cut) = cut(address, into) {
        return Some(cut);
    }
    let elided = mark::elided_of(address)?;
    Some(into.marker(&elided_marker(elided)))
}

/// The first address is that of an instruction, the others are return addresses unless marked as interrupted.
fn user_address(index: usize, address: u64) -> u64 {
    let is_call = index > 0 && address & mark::INTERRUPTED == 0;
    code_address(usize::from(is_call), address & !mark::INTERRUPTED)
}

/// A return address belongs to the call before it.
impl AddressStack {
    /// The addresses of kernel code that names are looked for, leaf first.
    pub fn kernel_code(&self) -> impl Iterator<Item = u64> {
        let addresses = self.kernel.as_deref().unwrap_or_default();
        let is_code = |(_, address): &(usize, &u64)| mark::error_of(**address).is_none();
        let code = addresses.iter().enumerate().filter(is_code);
        code.map(|(index, address)| code_address(index, *address))
    }
}

fn code_address(index: usize, address: u64) -> u64 {
    if index == 0 {
        address
    } else {
        address.saturating_sub(1)
    }
}

/// Where a frame's code lies.
struct CodeLocation<'a> {
    space: FrameSpace,
    kind: ModuleKind,
    path: &'a str,
    build_id: &'a [u8],
    offset: u64,
}

impl CodeLocation<'_> {
    fn frame(&self, names: &Names, into: &mut ProfileBuilder) -> FrameId {
        let module = into.module(self.path, self.build_id, self.kind);
        let functions = names
            .functions
            .iter()
            .map(|function| intern(function, into))
            .collect();
        into.frame(Frame {
            space: self.space,
            module,
            offset: self.offset,
            functions,
            source: names.source,
        })
    }
}

fn intern(function: &NamedFunction, into: &mut ProfileBuilder) -> Function {
    Function {
        name: into.string(&function.name),
        file: into.string(&function.file),
        line: function.line,
    }
}

#[cfg(test)]
#[path = "symbolizer_tests.rs"]
mod tests;
