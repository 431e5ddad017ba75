//! From results to answers: pure functions over plain data.
//!
//! [`import`] reads files of other profilers, [`edge_series`] makes series of tables, [`idle`] decides which waits are idling, [`activities`] what threads did, [`activity_timeline`] when,
//! [`diagnosis`] which part costs what, [`latency`] where the time of requests goes, [`logged_requests`] what Envoys' access logs say of them, [`overview`] which pod needs attention, [`comparison`] what has changed, and [`render`] makes bytes of profiles.

#![cfg_attr(
    test,
    expect(
        clippy::disallowed_methods,
        clippy::disallowed_types,
        reason = "tests read files and start other readers; what is shipped is looked at without them"
    )
)]

pub mod edge_series;
pub mod import;
pub mod idle;
pub mod activities;
pub mod activity_timeline;
pub mod diagnosis;
pub mod latency;
pub mod logged_requests;
pub mod overview;
pub mod comparison;
pub mod render;
