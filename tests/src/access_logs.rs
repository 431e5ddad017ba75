//! What the program that replays access logs prints, and the bench of them reads.

use serde::{Deserialize, Serialize};

/// Printed when every stream is open.
pub const CONNECTED: &str = "connected";

/// What was sent and read.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Sent {
    pub entries: u64,
    pub messages: u64,
    pub bytes: u64,
    /// From the first message until the agent has read the last one.
    pub seconds: f64,
}
