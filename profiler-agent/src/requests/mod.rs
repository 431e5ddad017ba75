//! From captured payload to requests: which connection a piece belongs to, what it speaks, and what was
//! asked over it.
//!
//! [`event`] is what the kernel side hands over.

mod event;
mod facts;

pub use event::{PayloadEvent, PayloadPiece, Plaintext};
pub use facts::{CaptureOrder, Facts, SourceCounts};
