//! Where plaintext of TLS was captured.

use profiler_model as model;
use serde::Serialize;
use utoipa::ToSchema;

/// What became of the task's TLS libraries, and what capturing costs their processes.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RequestPlaintext {
    files: Vec<PlaintextFile>,
    /// Why nothing can be captured at all.
    #[schema(required)]
    unavailable: Option<String>,
    /// Part of the time, in percent, in which probes were there.
    attached_percent: u8,
    /// The same time in nanoseconds: rates of requests inside TLS are of it.
    attached_ns: u64,
    /// What probes may cost the processes, in percent of one CPU, where that kept them away for a part of the
    /// time; null where it did not.
    #[schema(required)]
    limited_to_percent: Option<u32>,
    /// Times that a probe was met.
    hits: u64,
    /// Those of them at instructions that the kernel cannot carry out itself.
    stepped_hits: u64,
    /// What the programs took for each hit, without the trap, in nanoseconds; null while nobody asks for
    /// the kernel's statistics.
    #[schema(required)]
    program_ns_per_hit: Option<u64>,
    /// What all hits have cost, about: traps and programs, in nanoseconds.
    cost_ns: u64,
    /// Calls of the libraries of which something was captured.
    pieces: u64,
    /// Bytes that were written without a call of a socket.
    unbound_written_bytes: u64,
    /// Bytes that were read where the socket is not known.
    unbound_read_bytes: u64,
    /// Calls whose arguments or memory could not be read.
    unreadable: u64,
}

/// A file with a TLS library. Its path is untrusted text.
#[derive(Debug, Serialize, ToSchema)]
struct PlaintextFile {
    path: String,
    #[schema(required)]
    build_id: Option<String>,
    #[schema(required)]
    library: Option<String>,
    /// How its functions were found.
    #[schema(required)]
    found_by: Option<String>,
    probes: Vec<PlaintextProbe>,
    /// Processes of the target that run it.
    processes: u64,
    /// Why it, or a function of it, has no probes.
    reasons: Vec<String>,
}

/// A place at which plaintext is read.
#[derive(Debug, Serialize, ToSchema)]
struct PlaintextProbe {
    function: String,
    /// It reads the function's result, else its arguments.
    result: bool,
    /// As linked, in hexadecimal.
    address: String,
    /// What the kernel does with the instruction there.
    class: String,
    /// What a hit takes there, about, without the program.
    price_ns: u32,
}

impl From<&model::TlsReport> for RequestPlaintext {
    fn from(report: &model::TlsReport) -> Self {
        Self {
            files: report.files.iter().map(Into::into).collect(),
            unavailable: report.unavailable.clone(),
            attached_percent: report.attached_percent,
            attached_ns: report.attached_ns,
            limited_to_percent: report.limited_to_percent,
            hits: report.hits,
            stepped_hits: report.stepped_hits,
            program_ns_per_hit: report.program_ns_per_hit,
            cost_ns: report.cost_ns(),
            pieces: report.pieces,
            unbound_written_bytes: report.unbound_written_bytes,
            unbound_read_bytes: report.unbound_read_bytes,
            unreadable: report.unreadable,
        }
    }
}

impl From<&model::TlsFileReport> for PlaintextFile {
    fn from(file: &model::TlsFileReport) -> Self {
        let model::TlsFileReport {
            path,
            build_id,
            library,
            found_by,
            sites,
            processes,
            reasons,
        } = file;
        let probe = |site: &model::TlsProbeSite| PlaintextProbe {
            function: site.function.clone(),
            result: site.is_result,
            address: format!("{:#x}", site.address),
            class: site.class.clone(),
            price_ns: site.price_ns,
        };
        Self {
            path: path.clone(),
            build_id: Some(build_id.clone()).filter(|id| !id.is_empty()),
            library: library.clone(),
            found_by: found_by.clone(),
            probes: sites.iter().map(probe).collect(),
            processes: *processes,
            reasons: reasons.clone(),
        }
    }
}
