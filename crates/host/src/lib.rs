//! What the machine reports, read and asked at the edge: its processes and containers with their names, its sockets,
//! the admin interface of an Envoy, and what its kernel allows.

pub mod pid_namespace;
pub mod descriptors;
pub mod container_names;
pub mod process;
pub mod features;
mod foreign_answers;
pub mod name_sources;
pub mod sockets;
pub mod envoy_admin;
