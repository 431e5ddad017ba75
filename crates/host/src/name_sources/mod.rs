//! Asks what the containers of the node are called: the Kubernetes API, container runtimes and Docker.
//!
//! Sources run on a thread of their own without capabilities, since they read what others send; each has a state and a
//! reason.

mod sources;
mod kubernetes;
mod pod;
mod cri;
mod cri_messages;
mod docker;
mod socket;

/// Labels of one pod or container; more are left out.
const MOST_LABELS: usize = 256;

pub use kubernetes::KubernetesMode;
pub use socket::{RuntimeMode, RuntimeSocket};
pub use sources::{NameSources, SourceConfig, load_once};
