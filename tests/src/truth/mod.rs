//! Ground truth of the diagnosis: one Envoy at equal load with a setting on and off. What switching it off
//! saves, by the kernel's account of the process, is compared with what the diagnosis puts down to it.

pub mod settings;
pub mod window;
pub mod rounds;
pub mod verdict;
pub mod table;

pub use settings::{BASE, SETTINGS, Setting, Side};
pub use verdict::{Row, compare};
pub use window::{FELL_BEHIND, Load, Measured, Recorded, Window, diagnose, record};
