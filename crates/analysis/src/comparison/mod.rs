//! Two diagnoses compared: what has changed by more than chance, and whether it can be said at all.

mod per_request;
mod comparable;
mod compare;

pub use comparable::{NotComparable, SideProcess, Which, check_samples};
pub use compare::{Side, SideRow, compare};
pub use per_request::widen;
