//! Check-ups: an on-CPU, an off-CPU and a requests task on one target at once, and what is read beside
//! them, so that a diagnosis can be made at any later time.
//!
//! ```text
//! group "checkup-…":  on_cpu ----\
//!                     off_cpu ----+--> results in the store --\
//!                     requests --/                             +--> diagnosis, when it is read
//! observer:   accounts of the kernel, Envoy's own counts  ----/
//! ```
//!
//! `plan` names the group and makes its tasks; `conduct` starts them and the `observer`, whose
//! record is kept with the on-CPU task and deleted with it. What a check-up is and how far it got
//! follows from the tasks of its group, so nothing else is stored (`status`).

mod plan;
mod status;
mod conduct;
mod observer;
mod targets;
mod envoy_watch;
mod inputs;
mod ended;

pub use conduct::{CheckupError, Checkups};
pub use ended::check_ended;
pub use inputs::{CheckupInputs, pod_of};
pub use observer::Observer;
pub use plan::{CheckupRequest, KINDS, specs};
pub use status::{Checkup, CheckupState, CheckupTask, checkups, find};
pub(crate) use targets::Targets;
