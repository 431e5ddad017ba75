//! Where programs hand plaintext to TLS libraries and get it back, and at which instructions probes
//! read it for the least price.
//!
//! ```text
//! mapped files -> symbols | Go's table | stripped (error constants)      which functions
//!              -> graph -> arguments, results                            which instructions
//! ```
//!
//! A function is named only by evidence that belongs to this very file; where that is contradictory
//! or missing, the reason is reported and nothing is attached. Files are hostile: reads are bounded, and
//! every number in them is checked.

mod call;
mod file;
mod process;

mod code;
mod symbols;
mod stripped;
mod stripped_openssl;
mod errors;

mod graph;
mod site;
mod arguments;
mod results;
mod go_returns;

pub use call::{Convention, Library, Operation, TlsCall};
pub use file::{Evidence, Finding, TlsFile, TlsFunction, find_in_file};
pub use graph::RegisterNumber;
pub use process::{ProcessTls, TlsContent, TlsFinder, TlsMapping};
pub use site::{EntrySite, ReturnSite, Site, SiteClass, ValuePlace};

#[cfg(test)]
#[path = "graph_tests.rs"]
mod tests;
