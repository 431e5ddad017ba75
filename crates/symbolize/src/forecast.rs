//! What profiles of a process will be like, before one is taken: for each file that it executes
//! from, where names come from and what there is to unwind by.

use std::hash::RandomState;

use profiler_image::{
    build_id,
    elf_layout::Layout,
    module_file::{ModuleFile, Refusal},
    proc_dir::read_stat,
    snapshot::Snapshot,
};
use profiler_model::{NameSource, ProcessKey};
use profiler_sandbox::broker;

use super::{
    SymbolizeConfig,
    frame_pointers::{self, FramePointers},
    layers::Parts,
    quality::Quality,
};

#[derive(Debug, thiserror::Error)]
pub enum ForecastError {
    #[error("there is no process {0}")]
    NoSuchProcess(u32),
    #[error("process {0} has ended")]
    Ended(u32),
    #[error("process {0} is a thread of the kernel, which executes no file")]
    KernelThread(u32),
    #[error("read the mappings of process {pid}: {source}")]
    Mappings { pid: u32, source: std::io::Error },
    #[error("look at the files of process {pid}: {source}")]
    Thread { pid: u32, source: std::io::Error },
}

/// One file. `path` is untrusted text.
#[derive(Clone, Debug, PartialEq)]
pub struct FileForecast {
    pub path: String,
    /// Hexadecimal; empty when there is none.
    pub build_id: String,
    /// Where names can come from, in their order.
    pub sources: Vec<NameSource>,
    /// Static functions have names as well, not only exported ones.
    pub is_complete: bool,
    /// Lines and inlined functions are known.
    pub has_lines: bool,
    pub has_unwind_table: bool,
    pub frame_pointers: Option<FramePointers>,
    /// Why the file is of no use.
    pub refusal: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    pub comm: String,
    /// The program itself first.
    pub files: Vec<FileForecast>,
    /// Executable mappings without a file: JIT code.
    pub anonymous: usize,
    /// The process runs 32-bit code, whose stacks are not walked.
    pub is_32_bit: bool,
}

impl FileForecast {
    /// What would give it better names; empty when there is nothing to do.
    pub fn remedy(&self) -> String {
        if self.is_complete || self.refusal.is_some() {
            return String::new();
        }
        if self.build_id.is_empty() {
            return "it has neither symbols nor a build-id: install an unstripped build".to_owned();
        }
        format!(
            "give its debug file or unstripped build: --symbol-dir DIR, or upload it (build-id {})",
            self.build_id
        )
    }
}

/// How much is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Where names come from.
    Names,
    /// Also by what each function can be unwound, which takes longer.
    Unwinding,
}

/// Looks at a process, on a thread without capabilities. Takes a second for each 100 MB of debug information.
pub fn forecast(
    pid: u32,
    config: &SymbolizeConfig,
    depth: Depth,
) -> Result<Forecast, ForecastError> {
    let config = config.clone();
    let here = move || forecast_here(pid, &config, depth);
    broker::apart_while_active("forecast", here)
        .map_err(|source| ForecastError::Thread { pid, source })?
}

fn forecast_here(
    pid: u32,
    config: &SymbolizeConfig,
    depth: Depth,
) -> Result<Forecast, ForecastError> {
    let stat = read_stat(pid).map_err(|_| ForecastError::NoSuchProcess(pid))?;
    if stat.zombie {
        return Err(ForecastError::Ended(pid));
    }
    if stat.kernel_thread {
        return Err(ForecastError::KernelThread(pid));
    }
    let key = ProcessKey {
        pid,
        start_ticks: stat.start_ticks,
    };
    let snapshot = Snapshot::read(key, config.max_file_bytes)
        .map_err(|source| ForecastError::Mappings { pid, source })?;
    let mapped = snapshot.into_files();
    let mut is_32_bit = false;
    let mut files = Vec::new();
    for (path, file) in mapped.files {
        let (forecast, narrow) = file_forecast(&path, &file, config, depth);
        is_32_bit |= narrow;
        files.push(forecast);
    }
    files.extend(
        mapped
            .refused
            .into_iter()
            .map(|(path, refusal)| refused(&path, refusal_text(refusal))),
    );
    Ok(Forecast {
        comm: stat.comm,
        files,
        anonymous: mapped.anonymous,
        is_32_bit,
    })
}

fn refused(path: &str, reason: impl Into<String>) -> FileForecast {
    FileForecast {
        path: path.to_owned(),
        build_id: String::new(),
        sources: Vec::new(),
        is_complete: false,
        has_lines: false,
        has_unwind_table: false,
        frame_pointers: None,
        refusal: Some(reason.into()),
    }
}

fn refusal_text(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::NotFound => "it cannot be opened: deleted or replaced since, or no permission",
        Refusal::NotRegular => "it is not a regular file",
        Refusal::TooLarge => "it is larger than the limit",
        Refusal::Replaced => "another file has its name by now",
        Refusal::ForeignOwner => "it belongs to another user",
        Refusal::Old => "it is older than the process",
        Refusal::Remote => {
            "others serve its file system (NFS, FUSE and the like): --remote-files read reads it, and may wait for it"
        }
        Refusal::NoAnswer => "its file system does not answer",
        Refusal::NoOpenat2 => "this kernel has no openat2",
        Refusal::NotElf => "it is not an ELF file that can be read",
        Refusal::Panicked => "reading it made the ELF library fail",
        Refusal::OverBudget => "it needs more memory than the limit",
    }
}

/// The forecast, and whether the file is a 32-bit one.
fn file_forecast(
    path: &str,
    file: &ModuleFile,
    config: &SymbolizeConfig,
    depth: Depth,
) -> (FileForecast, bool) {
    let _reading = broker::reading(file.key.device);
    let Ok(layout) = Layout::read(&file.file) else {
        return (refused(path, refusal_text(Refusal::NotElf)), false);
    };
    let mut forecast = FileForecast {
        build_id: build_id::hexadecimal(&layout.build_id),
        refusal: None,
        ..refused(path, "")
    };
    if !layout.wide {
        forecast.refusal = Some("it is a 32-bit program, whose stacks are not walked".into());
        return (forecast, true);
    }
    let keys = RandomState::new();
    let mut quality = Quality::default();
    let origin = file.origin.as_ref();
    match Parts::read(&file.file, &layout, origin, config, &keys, &mut quality) {
        Ok(parts) => {
            (forecast.sources, forecast.has_lines) = parts.sources();
            forecast.is_complete = parts.has_static_functions()
                || forecast.sources.contains(&NameSource::GoTable)
                || forecast.has_lines;
        }
        Err(error) => forecast.refusal = Some(format!("its symbols cannot be read: {error}")),
    }
    forecast.has_unwind_table = layout.section(".eh_frame").is_some();
    if depth == Depth::Unwinding {
        forecast.frame_pointers = frame_pointers::measure(&file.file, &layout);
    }
    (forecast, false)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use profiler_image::module_file::{Links, open_in_root};
    use profiler_test_programs::{Running, compile, compile_stripped};

    use super::*;

    fn look(path: &std::path::Path) -> (FileForecast, bool) {
        let root = std::fs::File::open("/").unwrap();
        let name = path.to_str().unwrap().as_bytes();
        let file = open_in_root(root.as_fd(), name, u64::MAX, Links::Follow, None).unwrap();
        file_forecast(
            "program",
            &file,
            &SymbolizeConfig::default(),
            Depth::Unwinding,
        )
    }

    #[test]
    fn a_running_program_is_described_file_by_file() {
        let running = Running::start(&["-g"]);
        let forecast = forecast(
            running.key.pid,
            &SymbolizeConfig::default(),
            Depth::Unwinding,
        )
        .unwrap();
        assert_eq!(forecast.comm, "program");
        assert_eq!(forecast.anonymous, 1, "the memory for JIT code");
        assert!(!forecast.is_32_bit);
        let own = &forecast.files[0];
        assert_eq!(own.path, running.path.to_str().unwrap());
        assert_eq!(own.sources, [NameSource::Dwarf]);
        assert!(own.is_complete && own.has_lines && own.has_unwind_table);
        let pointers = own.frame_pointers.unwrap();
        assert!(pointers.functions > 5, "{pointers:?}");
        assert!(
            pointers.percent(pointers.with_bytes) > 50.0,
            "it is compiled with frame pointers: {pointers:?}"
        );
        assert!(
            forecast.files.iter().any(|file| file.path.contains("libc")),
            "{forecast:?}"
        );
    }

    #[test]
    fn stripped_and_frameless_programs_show_it() {
        let dir = tempfile::tempdir().unwrap();
        let flags = ["-fomit-frame-pointer", "-rdynamic", "-Wl,--build-id=0xabcd"];
        let (forecast, _) = look(&compile_stripped(dir.path(), &flags));
        assert_eq!(forecast.build_id, "abcd");
        assert_eq!(forecast.sources, [NameSource::ElfSymbol]);
        assert!(!forecast.is_complete && !forecast.has_lines);
        let pointers = forecast.frame_pointers.unwrap();
        assert!(
            pointers.percent(pointers.without_bytes) > 20.0,
            "{pointers:?}"
        );
    }

    #[test]
    fn a_32_bit_program_is_refused() {
        // The header of a 32-bit file and no more; what follows it is never looked at.
        let dir = tempfile::tempdir().unwrap();
        let mut header = vec![0x7f, b'E', b'L', b'F', 1, 1, 1];
        header.resize(52, 0);
        header[16..20].copy_from_slice(&[2, 0, 3, 0]);
        header[40] = 52;
        header[42] = 32;
        header[46] = 40;
        let path = dir.path().join("narrow");
        std::fs::write(&path, header).unwrap();
        let (forecast, is_32_bit) = look(&path);
        assert!(is_32_bit);
        assert!(forecast.refusal.unwrap().contains("32-bit"));
        // Text is not a program at all.
        std::fs::write(&path, "#!/bin/sh").unwrap();
        let (forecast, is_32_bit) = look(&path);
        assert!(!is_32_bit && forecast.refusal.is_some());
        let whole = compile(dir.path(), "whole", &[]);
        assert_eq!(look(&whole).0.refusal, None);
    }

    #[test]
    fn processes_that_cannot_be_looked_at_say_why() {
        let text = |pid| {
            forecast(pid, &SymbolizeConfig::default(), Depth::Names)
                .unwrap_err()
                .to_string()
        };
        assert_eq!(text(4_194_305), "there is no process 4194305");
        let mut child = std::process::Command::new("true").spawn().unwrap();
        while !read_stat(child.id()).unwrap().zombie {
            std::thread::yield_now();
        }
        assert!(text(child.id()).ends_with("has ended"));
        child.wait().unwrap();
    }
}
