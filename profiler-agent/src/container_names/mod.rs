//! What the containers of the node are called: asked of the Kubernetes API, of container runtimes and of Docker.
//!
//! Nothing needs these names: without them containers go by the ids in their cgroup paths. Sources run on a
//! thread of their own without capabilities, since they read what others send; each has a state and a reason.

mod sources;
mod kubernetes;
mod pod;
mod cri;
mod cri_messages;
mod docker;
mod socket;
mod directory;
mod saved;
mod labels;

/// Labels of one pod or container; more are left out.
const MOST_LABELS: usize = 256;

pub use directory::{ContainerDirectory, SourceState, SourceStatus};
pub use kubernetes::KubernetesMode;
pub use labels::{LabelError, LabelSelector};
pub use saved::{keep_saved, restore};
pub use socket::{RuntimeMode, RuntimeSocket};
pub use sources::{NameSources, SourceConfig, load_once};
