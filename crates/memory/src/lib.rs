//! The agent's own memory.
//!
//! ```text
//! reading (own memory, memory files, eBPF objects) -> stage -> caches go, no new tasks, tasks stop
//! ```
//!
//! What counts and which stage does what: docs/memory.md. Without a ceiling nothing is given up.

pub mod allocator;
mod ceiling;
mod fdinfo;
mod limit;
mod reading;
mod stage;

pub use ceiling::{Ceiling, GivenUp, MemoryShort};
pub use fdinfo::Fdinfo;
pub use limit::{Limit, LimitSource, cgroup_limit};
pub use reading::MemoryReading;
pub use stage::Stage;
