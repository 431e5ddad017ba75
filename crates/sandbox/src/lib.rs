//! What a thread may do: the stage between files that others wrote and who parses them.
//!
//! [`privileges`] gives up capabilities, [`confine`] blocks system calls, files and connections (seccomp, Landlock), and
//! [`broker`] starts threads without capabilities for parsers, each with a privileged partner that opens files for it. Nothing
//! here understands what it opens.

pub mod privileges;
pub mod confine;
pub mod broker;
