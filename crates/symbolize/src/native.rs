//! Names of code in ELF files, by blazesym.
//!
//! Each image has a symbolizer of its own, fed with one sealed copy (see `elf_copy`): the library
//! caches by path, and the path of a descriptor (`/proc/self/fd/N`) is used again after a close.
//! Its reload check is off, so once primed it never looks at the path again and our descriptor can
//! be closed.

use std::{
    cell::RefCell,
    fs::File,
    os::fd::AsRawFd as _,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    rc::Rc,
};

use blazesym::symbolize::{
    CodeInfo, Input, Sym, Symbolized, Symbolizer,
    source::{Elf, Source},
};
use profiler_image::{
    elf_copy::ElfCopy,
    elf_layout::{Layout, Segment},
    elf_writer::CopiedSection,
};
use profiler_model::NameSource;

use super::{
    demangle::{cut, demangle},
    dwarf_check::{CheckedDwarf, Sections},
    inferred::Inferred,
};

/// One function at an address; the innermost inlined one comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedFunction {
    pub(crate) name: Box<str>,
    /// Source file, empty when unknown.
    pub(crate) file: Rc<str>,
    /// Line, 0 when unknown.
    pub(crate) line: u32,
}

/// The names of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    pub(crate) functions: Vec<NamedFunction>,
    pub(crate) source: NameSource,
}

impl Names {
    pub(crate) fn none() -> Self {
        Self {
            functions: Vec::new(),
            source: NameSource::None,
        }
    }

    pub(crate) fn one(name: String, source: NameSource) -> Self {
        let function = NamedFunction {
            name: name.into(),
            file: Rc::from(""),
            line: 0,
        };
        Self {
            functions: vec![function],
            source,
        }
    }

    pub(crate) fn inferred(inferred: Inferred) -> Self {
        let function = NamedFunction {
            name: inferred.name.into(),
            file: Rc::from(inferred.file),
            line: 0,
        };
        Self {
            functions: vec![function],
            source: NameSource::Inferred,
        }
    }

    /// Bytes that keeping them costs, about.
    pub(crate) fn weight(&self) -> usize {
        let texts = |function: &NamedFunction| function.name.len() + function.file.len() + 64;
        96 + self.functions.iter().map(texts).sum::<usize>()
    }
}

/// What went wrong inside the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Panicked,
    Failed,
}

/// The named code of one file.
#[derive(Debug)]
pub(crate) struct Image {
    segments: Vec<Segment>,
    /// `None` after the library panicked on it.
    library: RefCell<Option<Library>>,
}

#[derive(Debug)]
struct Library {
    symbolizer: Symbolizer,
    /// Symbol table only.
    plain: Source<'static>,
    /// With debug information, where that is used.
    debug: Option<Debug>,
}

impl Image {
    /// Opens a copy. Debug information that is malformed or excessive is not used.
    pub(crate) fn open(copy: &ElfCopy, segments: &[Segment]) -> Result<Self, Fault> {
        let segments = segments.to_vec();
        let library = guarded(|| {
            let debug = checked_debug(copy);
            Library::open(&copy.file, debug)
        })??;
        Ok(Self {
            segments,
            library: RefCell::new(Some(library)),
        })
    }

    /// Names of the code at a file offset. After a panic the image stays unnamed.
    pub(crate) fn names(&self, offset: u64) -> Result<Names, Fault> {
        let Ok(mut library) = self.library.try_borrow_mut() else {
            return Err(Fault::Failed);
        };
        let Some(used) = library.as_mut() else {
            return Ok(Names::none());
        };
        let Some(segment) = Layout::segment_of_offset(&self.segments, offset) else {
            return Ok(Names::none());
        };
        let result = guarded(|| used.names(offset, segment));
        if let Err(fault) = result {
            // What a half-done parse left behind is dropped, and that may panic as well.
            let broken = library.take();
            guarded(|| drop(broken)).unwrap_or_default();
            return Err(fault);
        }
        result.and_then(|names| names)
    }
}

/// Runs the library. It keeps no state outside of what it is called with, and that is thrown away
/// after a panic.
fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|_| Fault::Panicked)
}

/// Debug information whose headers are sound.
struct Debug {
    source: Source<'static>,
    checked: CheckedDwarf,
    sections: CopiedSections,
}

impl std::fmt::Debug for Debug {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Debug").finish_non_exhaustive()
    }
}

/// The debug sections of a copy.
struct CopiedSections {
    map: MappedCopy,
    sections: Vec<CopiedSection>,
}

impl Sections for CopiedSections {
    fn section(&self, name: &str) -> &[u8] {
        let mut sections = self.sections.iter();
        sections
            .find(|section| section.name == name)
            .map_or(&[], |section| self.map.section(section))
    }
}

/// The debug information of a copy, unless it has none that can be used.
fn checked_debug(copy: &ElfCopy) -> Option<(CheckedDwarf, CopiedSections)> {
    if copy.debug.is_empty() {
        return None;
    }
    let sections = CopiedSections {
        map: MappedCopy::new(copy).ok()?,
        sections: copy.debug.clone(),
    };
    match CheckedDwarf::open(&sections) {
        Ok(checked) => Some((checked, sections)),
        Err(refused) => {
            tracing::debug!(%refused, "names come from the symbol table alone");
            None
        }
    }
}

impl Library {
    fn open(file: &File, debug: Option<(CheckedDwarf, CopiedSections)>) -> Result<Self, Fault> {
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let source = |debug_syms| {
            let mut elf = Elf::new(path.clone());
            elf.debug_syms = debug_syms;
            Source::Elf(elf)
        };
        let symbolizer = Symbolizer::builder()
            .enable_auto_reload(false)
            .enable_code_info(true)
            .enable_inlined_fns(true)
            .enable_demangling(false)
            .set_debug_dirs(Some(std::iter::empty::<PathBuf>()))
            .build();
        let plain = source(false);
        // The first questions make the library open the file, after which the path is not used.
        symbolizer
            .symbolize_single(&plain, Input::VirtOffset(0))
            .map_err(|_| Fault::Failed)?;
        let debug = debug.and_then(|(mut checked, sections)| {
            let source = source(true);
            let outside = checked.address_outside();
            checked.admit(&sections, outside).ok()?;
            sections.map.rest();
            symbolizer
                .symbolize_single(&source, Input::VirtOffset(outside))
                .ok()?;
            Some(Debug {
                source,
                checked,
                sections,
            })
        });
        Ok(Self {
            symbolizer,
            plain,
            debug,
        })
    }

    /// Whether the debug information may be asked about an address; it is given up when not.
    fn admit(&mut self, address: u64) {
        let Some(debug) = &mut self.debug else {
            return;
        };
        match debug.checked.admit(&debug.sections, address) {
            Ok(0) => {}
            Ok(_entered) => debug.sections.map.rest(),
            Err(refused) => {
                tracing::debug!(%refused, "debug information is not used any more");
                self.debug = None;
            }
        }
    }

    fn names(&mut self, offset: u64, segment: &Segment) -> Result<Names, Fault> {
        let address = offset - segment.offset + segment.address;
        self.admit(address);
        if let Some(debug) = &self.debug
            // An error here is one unit's; the symbol table may still know.
            && let Ok(Symbolized::Sym(symbol)) =
                self.symbolizer.symbolize_single(&debug.source, Input::FileOffset(offset))
            && is_trusted(&symbol, address, segment)
        {
            let mut names = names_of(&symbol);
            self.qualify(&mut names, offset, address, segment);
            return Ok(names);
        }
        match self
            .symbolizer
            .symbolize_single(&self.plain, Input::FileOffset(offset))
        {
            Ok(Symbolized::Sym(symbol)) if is_trusted(&symbol, address, segment) => {
                Ok(names_of(&symbol))
            }
            Ok(_) => Ok(Names::none()),
            Err(_) => Err(Fault::Failed),
        }
    }

    /// Debug information may hold bare names ("new"), as when it is only there for line numbers;
    /// a mangled symbol has the whole name.
    fn qualify(&self, names: &mut Names, offset: u64, address: u64, segment: &Segment) {
        if let Ok(Symbolized::Sym(symbol)) = self
            .symbolizer
            .symbolize_single(&self.plain, Input::FileOffset(offset))
            && is_trusted(&symbol, address, segment)
            && is_mangled(&symbol.name)
            && let Some(own) = names.functions.last_mut()
        {
            own.name = demangle(&symbol.name).into();
        }
    }
}

/// A symbol names an address only when it says so itself: the address lies within its size. A
/// function that starts outside of the segment is the shadow of one that the linker removed.
fn is_trusted(symbol: &Sym<'_>, address: u64, segment: &Segment) -> bool {
    let size = symbol.size.map_or(0, |size| size as u64);
    !symbol.name.is_empty()
        && address
            .checked_sub(symbol.addr)
            .is_some_and(|inside| inside < size)
        && symbol.addr >= segment.address
}

fn is_mangled(name: &str) -> bool {
    name.starts_with("_Z") || name.starts_with("_R")
}

/// Inlined functions of one address that are named, the innermost; Go's reader has as many.
const MAX_INLINED: usize = 64;

fn names_of(symbol: &Sym<'_>) -> Names {
    // From the outermost on. Debug information may name hundreds, for each address anew.
    let left_out = symbol.inlined.len().saturating_sub(MAX_INLINED);
    let inlined = symbol.inlined.iter().skip(left_out).rev().map(|inlined| {
        function(
            if inlined.name.is_empty() {
                "[inlined]"
            } else {
                &inlined.name
            },
            inlined.code_info.as_ref(),
        )
    });
    let own = function(&symbol.name, symbol.code_info.as_deref());
    let left_out = (left_out > 0).then(|| function("[more inlined functions]", None));
    let functions: Vec<_> = inlined
        .chain(left_out)
        .chain(std::iter::once(own))
        .collect();
    let source = if symbol.code_info.is_some() {
        NameSource::Dwarf
    } else {
        NameSource::ElfSymbol
    };
    Names { functions, source }
}

fn function(name: &str, code: Option<&CodeInfo<'_>>) -> NamedFunction {
    NamedFunction {
        name: demangle(name).into(),
        file: code.map_or_else(
            || Rc::from(""),
            |code| cut(&code.to_path().to_string_lossy()).into(),
        ),
        line: code.and_then(|code| code.line).unwrap_or(0),
    }
}

/// A read-only view of a sealed copy.
struct MappedCopy {
    start: *mut std::ffi::c_void,
    bytes: usize,
}

impl MappedCopy {
    fn new(copy: &ElfCopy) -> rustix::io::Result<Self> {
        use rustix::mm::{MapFlags, ProtFlags, mmap};
        let bytes = usize::try_from(copy.bytes).map_err(|_| rustix::io::Errno::NOMEM)?;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ,
                MapFlags::PRIVATE,
                &copy.file,
                0,
            )
        }?;
        Ok(Self { start, bytes })
    }

    /// The library has a view of its own: what is read here seldom is not to count twice. It comes back when it is read.
    fn rest(&self) {
        // SAFETY: a private view of a file, which nothing writes: its pages hold the same when they come back.
        let advised = unsafe {
            rustix::mm::madvise(self.start, self.bytes, rustix::mm::Advice::LinuxDontNeed)
        };
        debug_assert!(advised.is_ok(), "the range was mapped");
    }

    fn section(&self, section: &CopiedSection) -> &[u8] {
        // SAFETY: the mapping is `bytes` long, readable until `self` is dropped, and unchanging:
        // the file is sealed against writes, growth and shrinking.
        let all = unsafe { std::slice::from_raw_parts(self.start.cast::<u8>(), self.bytes) };
        usize::try_from(section.offset)
            .ok()
            .and_then(|start| {
                let end = start.checked_add(usize::try_from(section.bytes).ok()?)?;
                all.get(start..end)
            })
            .unwrap_or_default()
    }
}

impl Drop for MappedCopy {
    fn drop(&mut self) {
        // SAFETY: the range is the one that was mapped, and no slice of it outlives `self`.
        let unmapped = unsafe { rustix::mm::munmap(self.start, self.bytes) };
        debug_assert!(unmapped.is_ok(), "the range was mapped");
    }
}
