//! Which mappings belong to a process.

/// Slot without mappings, for processes whose mappings cannot be known.
pub const NO_MAPPINGS_SLOT: u32 = 0;

/// A process that was read before it was seen to run: whichever program it runs, until it calls exec.
pub const ANY_GENERATION: u32 = u32::MAX;

/// What the kernel knows of a process, by pid.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessEntry {
    /// See [`crate::on_cpu::CountKey::generation`]; mappings of another program mean nothing. Or
    /// [`ANY_GENERATION`].
    pub generation: u32,
    /// Index in the table of [`super::mapping::Mappings`].
    pub slot: u32,
    /// Captures that may still be sent for addresses in no mapping; counted down by the kernel.
    pub captures_left: u32,
    /// Number of this reading of the mappings, which no other reading in the task has. What was
    /// found in the tables holds for it.
    pub reading: u32,
    /// Second of the agent in which the kernel last walked a stack of the process; written by the
    /// kernel.
    pub used: u32,
    pub padding: u32,
}

const _: () = assert!(size_of::<ProcessEntry>() == 24);
