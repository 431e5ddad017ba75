//! The agent: from kernel records to the page, in the order of the modules below.
//!
//! ```text
//! kernel hook -> ring buffer / maps -> bpf -> probes -> symbolize -> task -> store -> idle, diagnosis -> render -> api -> web
//!                                               ^ process
//! ```

pub mod app;
pub mod access_log_socket;
pub mod demo_data;
pub mod cli;
pub mod config;
mod exit;
mod recent_log;
pub mod rule_files;
mod support_bundle;
pub mod telemetry;
pub mod terminal;
pub mod version;

pub mod api;
