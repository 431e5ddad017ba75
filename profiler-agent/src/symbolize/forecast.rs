//! What profiles of a process will be like, before one is taken: for each file that it executes
//! from, where names come from and what there is to unwind by.

use std::hash::RandomState;

use super::{
    SymbolizeConfig, build_id,
    elf_layout::Layout,
    frame_pointers::{self, FramePointers},
    layers::Parts,
    mapped_process::Snapshot,
    module_file::{ModuleFile, Refusal},
    quality::Quality,
};
use crate::{
    model::{NameSource, ProcessKey},
    process::proc_dir::read_stat,
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

/// Looks at a process. Takes a second for each 100 MB of debug information.
pub fn forecast(pid: u32, config: &SymbolizeConfig) -> Result<Forecast, ForecastError> {
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
        let (forecast, narrow) = file_forecast(&path, &file, config);
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
        Refusal::NoOpenat2 => "this kernel has no openat2",
        Refusal::NotElf => "it is not an ELF file that can be read",
        Refusal::Panicked => "reading it made the ELF library fail",
        Refusal::OverBudget => "it needs more memory than the limit",
    }
}

/// The forecast, and whether the file is a 32-bit one.
fn file_forecast(path: &str, file: &ModuleFile, config: &SymbolizeConfig) -> (FileForecast, bool) {
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
    forecast.frame_pointers = frame_pointers::measure(&file.file, &layout);
    (forecast, false)
}
