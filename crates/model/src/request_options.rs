//! What a task of kind `requests` was asked to record.

use serde::{Deserialize, Serialize};

use super::{RequestSource, SampleRule};

/// First bytes of each read and write that are captured by default: the head of an
/// HTTP/1 request.
pub const DEFAULT_CAPTURE_BYTES: u32 = 1024;
/// Bounds of [`RequestOptions::capture_bytes`]: with its head a piece has at most 16 KiB.
pub const MIN_CAPTURE_BYTES: u32 = 64;
pub const MAX_CAPTURE_BYTES: u32 = (16 << 10) - 64;
/// Highest share of one CPU, in percent, that reading payload may be allowed.
pub const MAX_CAPTURE_CPU_PERCENT: u32 = 100;

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of the API")]
pub struct RequestOptions {
    /// Take requests from the access logs that Envoys send to the agent.
    pub access_log: bool,
    /// Take requests from what is moved over sockets. One of both is on.
    pub sockets: bool,
    /// Read plaintext at the functions of TLS libraries.
    pub tls: bool,
    /// Part of the time, in percent, in which that is on.
    pub tls_duty_percent: u8,
    /// Keep the first bytes of bodies.
    pub bodies: bool,
    /// Samples carry the path as it was sent, its query masked.
    pub raw_paths: bool,
    /// Every request is a sample.
    pub samples_all: bool,
    /// Requests that are samples beside the slowest and the failing ones.
    pub rules: Vec<SampleRule>,
    /// First bytes of each read and write that leave the kernel.
    pub capture_bytes: u32,
    /// Share of one CPU, in percent, that reading payload may use before connections are sampled. Probes of TLS
    /// may cost the target as much before they are there for a part of the time only.
    pub cpu_percent: u32,
}

impl RequestOptions {
    /// Where requests are taken from, in the order of [`RequestSource::ALL`].
    pub fn sources(&self) -> Vec<RequestSource> {
        let is_on = |source: &RequestSource| match source {
            RequestSource::AccessLog => self.access_log,
            RequestSource::Sockets => self.sockets,
            RequestSource::Tls => self.tls,
        };
        RequestSource::ALL.into_iter().filter(is_on).collect()
    }

    /// First bytes of each call that are captured by default.
    pub fn usual_capture_bytes(bodies: bool) -> u32 {
        if bodies {
            MAX_CAPTURE_BYTES
        } else {
            DEFAULT_CAPTURE_BYTES
        }
    }
}

impl Default for RequestOptions {
    fn default() -> Self {
        Self {
            access_log: false,
            sockets: true,
            tls: false,
            tls_duty_percent: 100,
            bodies: false,
            raw_paths: false,
            samples_all: false,
            rules: Vec::new(),
            capture_bytes: DEFAULT_CAPTURE_BYTES,
            cpu_percent: 5,
        }
    }
}
