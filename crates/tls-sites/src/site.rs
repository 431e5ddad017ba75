//! Places in code where a probe can be put, and what a hit costs there.

use iced_x86::{Code, FlowControl, Instruction, Mnemonic};
use profiler_model::{STEPPED_TRAP_NS, TRAP_NS};

use super::graph::RegisterNumber;

/// What the kernel does with the instruction under a probe. It carries out some kinds itself
/// (`branch_setup_xol_ops` and `push_setup_xol_ops` in `arch/x86/kernel/uprobes.c`); all others run
/// out of line with a second trap behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SiteClass {
    Nop,
    Push,
    Call,
    Jump,
    Stepped,
}

impl SiteClass {
    pub fn name(self) -> &'static str {
        match self {
            Self::Nop => "nop",
            Self::Push => "push",
            Self::Call => "call",
            Self::Jump => "jump",
            Self::Stepped => "stepped",
        }
    }

    /// What the trap of one hit takes, in nanoseconds.
    pub fn price_ns(self) -> u32 {
        match self {
            Self::Nop | Self::Push | Self::Call | Self::Jump => TRAP_NS,
            Self::Stepped => STEPPED_TRAP_NS,
        }
    }

    pub fn is_cheap(self) -> bool {
        self != Self::Stepped
    }

    pub(super) fn of(instruction: &Instruction) -> Self {
        match instruction.code() {
            Code::Nopw | Code::Nopd | Code::Nopq
                if instruction.mnemonic() == Mnemonic::Nop && instruction.len() <= 2 =>
            {
                Self::Nop
            }
            Code::Push_r64 if instruction.len() <= 2 => Self::Push,
            // Longer ones have prefixes, with which the kernel refuses a probe.
            Code::Call_rel32_64 if instruction.len() == 5 => Self::Call,
            Code::Jmp_rel8_64 if instruction.len() == 2 => Self::Jump,
            Code::Jmp_rel32_64 if instruction.len() == 5 => Self::Jump,
            _ if instruction.flow_control() == FlowControl::ConditionalBranch
                && instruction.is_jcc_short_or_near()
                && matches!(instruction.len(), 2 | 6) =>
            {
                Self::Jump
            }
            _ => Self::Stepped,
        }
    }
}

/// Where a value is at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValuePlace {
    Register(RegisterNumber),
    /// Words from the stack pointer.
    Stack(u16),
}

/// Where to put a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// As linked.
    pub address: u64,
    pub class: SiteClass,
    /// The stack pointer and this is the address of the function's return address, which tells one
    /// call from another; none when not known.
    pub frame_bytes: Option<u32>,
}

/// A site at which the arguments of the call can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntrySite {
    pub site: Site,
    /// What the connection is to the library.
    pub session: ValuePlace,
    /// As the session, of a handshake.
    pub buffer: ValuePlace,
    /// Bytes to write, or room to read into.
    pub length: ValuePlace,
    /// Address at which the library puts how much it has moved, of functions that do.
    pub moved: Option<ValuePlace>,
}

/// A site that a call passes when it has read something, with the function's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnSite {
    pub site: Site,
    pub result: RegisterNumber,
}
