//! The known names of the node's containers. Nothing needs these names: without them
//! containers go by the ids in their cgroup paths.

mod directory;
mod saved;
mod labels;

pub(crate) use directory::Named;
pub use directory::{ContainerDirectory, SourceState, SourceStatus};
pub use labels::{LabelError, LabelSelector};
pub use saved::{keep_saved, restore};
