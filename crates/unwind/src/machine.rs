//! What differs between machines when rows are made.

use object::elf::{EM_AARCH64, EM_X86_64};
use profiler_common::unwind::{aarch64, x86_64};

/// A machine whose files can be unwound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    X86_64,
    Aarch64,
}

impl Machine {
    pub fn of_elf(machine: u16) -> Option<Self> {
        match machine {
            machine if machine == EM_X86_64.0 => Some(Self::X86_64),
            machine if machine == EM_AARCH64.0 => Some(Self::Aarch64),
            _ => None,
        }
    }

    /// The machine that this program is compiled for.
    pub const fn own() -> Self {
        if cfg!(target_arch = "aarch64") {
            Self::Aarch64
        } else {
            Self::X86_64
        }
    }

    pub(crate) fn stack_pointer(self) -> u8 {
        match self {
            Self::X86_64 => x86_64::RSP,
            Self::Aarch64 => aarch64::SP,
        }
    }

    pub fn frame_pointer(self) -> u8 {
        match self {
            Self::X86_64 => x86_64::RBP,
            Self::Aarch64 => aarch64::X29,
        }
    }

    /// The column of the return address.
    pub(crate) fn return_address(self) -> u8 {
        match self {
            Self::X86_64 => x86_64::RIP,
            Self::Aarch64 => aarch64::X30,
        }
    }
}
