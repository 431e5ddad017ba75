//! Names of kernel code, which the kernel gives for addresses.

/// Addresses that are named in one run.
pub const KERNEL_NAMES_AT_ONCE: usize = 32;
/// Room for a name, its module and the zero behind them. The kernel's own limit of a name is 512 bytes since 6.1
/// (`KSYM_NAME_LEN`), 128 before.
pub const KERNEL_NAME_BYTES: usize = 256;

/// What is asked and what is answered.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelNames {
    /// Up to the first 0.
    pub addresses: [u64; KERNEL_NAMES_AT_ONCE],
    /// In the same order, each with a zero at its end: `NAME`, `NAME [MODULE]`, or the address where there is no name.
    /// One that had no room is cut.
    pub names: [[u8; KERNEL_NAME_BYTES]; KERNEL_NAMES_AT_ONCE],
}

const _: () = assert!(size_of::<KernelNames>() == KERNEL_NAMES_AT_ONCE * (8 + KERNEL_NAME_BYTES));
