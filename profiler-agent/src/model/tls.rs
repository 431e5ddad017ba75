//! What a task has to say about the TLS libraries of its target.

use serde::{Deserialize, Serialize};

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
    /// Times that a probe was met.
    pub hits: u64,
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
    /// What all hits together have cost the target, traps included, in nanoseconds: the hits at the mean
    /// price of the sites, and the programs.
    pub fn cost_ns(&self) -> u64 {
        let sites = self
            .files
            .iter()
            .filter(|file| file.processes > 0)
            .flat_map(|file| &file.sites);
        let (count, sum) = sites.fold((0, 0), |(count, sum), site| {
            (count + 1, sum + u64::from(site.price_ns))
        });
        let mean = u64::checked_div(sum, count).unwrap_or(0);
        self.hits
            .saturating_mul(mean + self.program_ns_per_hit.unwrap_or(0))
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
    fn hits_cost_the_mean_price_and_the_programs() {
        let site = |price_ns| TlsProbeSite {
            function: "SSL_read".to_owned(),
            is_result: false,
            address: 1,
            class: "push".to_owned(),
            price_ns,
        };
        let file = |prices: &[u32], processes| TlsFileReport {
            path: "/lib".to_owned(),
            build_id: String::new(),
            library: None,
            found_by: None,
            sites: prices.iter().map(|price| site(*price)).collect(),
            processes,
            reasons: Vec::new(),
        };
        let report = TlsReport {
            files: vec![file(&[700, 900], 1), file(&[9800], 0)],
            hits: 10,
            program_ns_per_hit: Some(200),
            ..TlsReport::default()
        };
        assert_eq!(report.cost_ns(), 10 * (800 + 200));
        assert_eq!(TlsReport::default().cost_ns(), 0);
    }
}
