//! The processes of the node: read from /proc, followed live by fork, exec and exit events.
//!
//! Everything that a process reports about itself (name, arguments, paths) is untrusted text of
//! bounded length. All reads are bounded; nothing here panics on what it reads.

mod find;
mod pods;
mod table;

pub mod accounting;
mod cgroups;
mod containers;
pub mod cpu_quota;
mod details;
mod users;

pub use cgroups::{CgroupError, ContainerHierarchy, Mount};
pub use containers::{is_below, is_id_prefix};
pub use find::{ContainerMatch, FindContainerError, FindPodError, PodMatch};
pub use pods::{Pod, PodCpu, PodMember, pods, program};
pub use table::{ProcessChange, ProcessTable};
