//! Memory of the running process.

use aya_ebpf::helpers::bpf_probe_read_user;
use profiler_common::unwind::state::Memory;

/// Reads fail instead of faulting; pages of a stack that was touched are there.
pub(super) struct UserMemory;

impl Memory for UserMemory {
    #[inline(always)]
    fn word(&self, address: u64) -> Option<u64> {
        // SAFETY: the helper checks the address.
        unsafe { bpf_probe_read_user(address as *const u64) }.ok()
    }

    #[inline(always)]
    fn pair(&self, address: u64) -> Option<[u64; 2]> {
        // SAFETY: as above.
        unsafe { bpf_probe_read_user(address as *const [u64; 2]) }.ok()
    }

    #[inline(always)]
    fn byte(&self, address: u64) -> Option<u8> {
        // SAFETY: as above.
        unsafe { bpf_probe_read_user(address as *const u8) }.ok()
    }
}
