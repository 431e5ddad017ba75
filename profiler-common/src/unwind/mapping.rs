//! Executable mappings of a process.

/// Mappings of one process. What does not fit has no unwind information, and the stack says so.
pub const MAX_MAPPINGS: usize = 128;

/// No rows exist for this code; functions in it are taken to keep frame pointers (JIT code, files
/// without `.eh_frame`).
pub const MAPPING_FRAME_POINTERS: u32 = 1;

/// Greater than every start.
pub const NO_START: u64 = i64::MAX as u64;

/// Addresses at or above this are not user addresses on any supported machine.
pub const USER_ADDRESS_LIMIT: u64 = 1 << 56;

/// One executable mapping.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    /// First address behind it.
    pub end: u64,
    /// What to subtract from an address to get the address in the file (wrapping).
    pub bias: u64,
    /// Number that the agent gave to the file.
    pub file: u32,
    /// `MAPPING_*`.
    pub flags: u32,
}

/// Executable mappings of one process, in ascending order.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mappings {
    /// First addresses; unused ones are [`NO_START`]. The first is 0 with an empty mapping, so that
    /// every address has a predecessor.
    pub starts: [u64; MAX_MAPPINGS],
    pub mappings: [Mapping; MAX_MAPPINGS],
}

const _: () = assert!(size_of::<Mapping>() == 24);
const _: () = assert!(size_of::<Mappings>() == 32 * MAX_MAPPINGS);
const _: () = assert!(MAX_MAPPINGS.is_power_of_two());
