//! The only module that talks to the kernel's BPF side: load, attach, read.

mod batch;
mod call_plan;
mod check;
mod commands;
mod connections;
mod event_loop;
mod eviction;
mod features;
mod iterators;
mod kernel_faults;
mod kernel_names;
mod load_error;
mod loaded;
mod loaded_object;
mod loader;
mod map_memory;
mod network_calls;
mod network_offsets;
mod object;
mod offsets;
mod orc;
mod payload;
mod payload_records;
mod perf;
mod perf_event;
mod programs;
mod reader;
mod sizes;
mod slices;
mod statistics;
mod switches;
mod tables;
mod tls;
mod tracefs;
mod unix_sockets;
mod unwind_maps;

pub use batch::{BatchError, drain};
pub use call_plan::CallPlan;
pub use check::{Checked, ClockCheck, check_clock, check_programs};
pub use connections::{AnswerReader, EndedReader, NetworkLinks};
pub use event_loop::EventLoopLinks;
pub use features::{cpu_count, has_loop_helper, online_cpus};
pub use kernel_names::KernelNamer;
pub use load_error::LoadError;
pub use loaded::{LoadedMap, LoadedProgram, loaded};
pub use loaded_object::{KernelLog, LoadedObject, MapReport, ProgramReport};
pub use loader::ObjectRequest;
pub(crate) use loader::{LOOPS, WORK};
pub use network_offsets::drop_reasons;
pub use object::{embedded_programs, is_embedded};
pub use offsets::OffsetError;
pub use payload::{CaptureControl, PieceReader};
pub use payload_records::PieceRecord;
pub use perf::{ClockChoice, Sampler, Sampling};
pub(crate) use programs::row;
pub use programs::{
    Group, Hazard, Hook, PROGRAMS, ProgramRow, find, is_of, minimum_kernel, network_programs,
    programs_of,
};
pub use reader::{Record, RecordReader};
pub use sizes::Counting;
pub use statistics::{enable_statistics, machine_keeps_statistics};
pub use switches::{Measured, Switches};
pub use tls::{TlsLink, TlsProbe};
pub use unwind_maps::{Capture, CaptureReader, TakeBack, UnwindMaps};
