//! What a task has to report about the TLS libraries of its target.

use serde::{Deserialize, Serialize};

/// What the trap of a probe takes, in nanoseconds, as measured on Linux 6.18 with a program that counts: 700
/// to 750 where the kernel carries the instruction out itself, 9,400 to 10,200 where not.
pub const TRAP_NS: u32 = 725;
pub const STEPPED_TRAP_NS: u32 = 9_800;
/// What the programs take for a hit, in the mean, where the kernel's statistics are off: measured with them at
/// nginx with TLS on Linux 6.18 (docs/tls.md).
const PROGRAM_NS: u64 = 480;

/// What hits have cost, in nanoseconds, about.
pub fn cost_ns(hits: u64, stepped_hits: u64, program_ns_per_hit: Option<u64>) -> u64 {
    let program_ns = program_ns_per_hit.unwrap_or(PROGRAM_NS);
    let stepped = stepped_hits.min(hits);
    let cheap_ns = (hits - stepped).saturating_mul(u64::from(TRAP_NS));
    let stepped_ns = stepped.saturating_mul(u64::from(STEPPED_TRAP_NS));
    let programs_ns = hits.saturating_mul(program_ns);
    cheap_ns
        .saturating_add(stepped_ns)
        .saturating_add(programs_ns)
}

/// A place at which a probe was put.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsProbeSite {
    pub function: String,
    /// It reads the function's result, else its arguments.
    pub is_result: bool,
    /// As linked.
    pub address: u64,
    /// What the kernel does with the instruction there.
    pub class: String,
    /// What a hit takes at such an instruction, as measured once, without the program.
    pub price_ns: u32,
}

/// A file with a TLS library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsFileReport {
    /// As a process names it; untrusted text.
    pub path: String,
    /// Hexadecimal; empty when there is none.
    pub build_id: String,
    pub library: Option<String>,
    /// How the functions were found.
    pub found_by: Option<String>,
    pub sites: Vec<TlsProbeSite>,
    /// Processes of the target in which its probes are, or were last.
    pub processes: u64,
    /// Why there is no probe, or why some are missing.
    pub reasons: Vec<String>,
}

/// See the module's description.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsReport {
    pub files: Vec<TlsFileReport>,
    /// Why nothing can be captured at all.
    pub unavailable: Option<String>,
    /// Part of the time, in percent, in which probes were attached.
    pub attached_percent: u8,
    /// The same time in nanoseconds.
    pub attached_ns: u64,
    /// What probes may cost the target, in percent of one CPU, where that keeps them away for a part of the
    /// time; `None`: it did not.
    pub limited_to_percent: Option<u32>,
    /// Times that a probe was met.
    pub hits: u64,
    /// Those of them at instructions which the kernel cannot carry out itself.
    pub stepped_hits: u64,
    /// What the programs took for each hit, without the trap: nanoseconds; `None` while the kernel's
    /// statistics are off.
    pub program_ns_per_hit: Option<u64>,
    /// Pieces of plaintext that were captured.
    pub pieces: u64,
    /// Bytes that were written without a socket event, or read on a session that is not bound.
    pub unbound_written_bytes: u64,
    pub unbound_read_bytes: u64,
    /// Calls whose arguments or memory could not be read.
    pub unreadable: u64,
}

impl TlsReport {
    /// What all hits together have cost the target, in nanoseconds: traps at their prices, and the programs.
    pub fn cost_ns(&self) -> u64 {
        cost_ns(self.hits, self.stepped_hits, self.program_ns_per_hit)
    }

    pub fn unbound_bytes(&self) -> u64 {
        self.unbound_written_bytes
            .saturating_add(self.unbound_read_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_cost_their_traps_and_the_programs() {
        let report = TlsReport {
            hits: 10,
            stepped_hits: 2,
            program_ns_per_hit: Some(200),
            ..TlsReport::default()
        };
        assert_eq!(report.cost_ns(), 8 * 725 + 2 * 9_800 + 10 * 200);
        assert_eq!(cost_ns(1, 0, None), 725 + PROGRAM_NS);
        // Counters of several CPUs are not read at one moment.
        assert_eq!(cost_ns(1, 2, Some(0)), 9_800);
        assert_eq!(TlsReport::default().cost_ns(), 0);
    }
}
