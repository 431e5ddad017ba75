//! Maps that several programs share. Private maps stay in the file that uses them.

use aya_ebpf::{
    helpers::bpf_get_smp_processor_id,
    macros::map,
    maps::{Array, HashMap, RingBuf},
};
use profiler_common::limits;

/// Records towards the agent.
#[map]
pub(crate) static RECORDS: RingBuf = RingBuf::with_byte_size(limits::RING_BUFFER_BYTES, 0);

/// Target processes, by pid in the agent's PID namespace.
#[map]
pub(crate) static FILTER_PIDS: HashMap<u32, u8> =
    HashMap::with_max_entries(limits::FILTER_PID_ENTRIES, 0);

/// How often the agent has let the kernel forget what it sent.
#[map]
static ROTATION: Array<u32> = Array::with_max_entries(1, 0);

/// What was sent before the number changed is sent again.
#[inline(always)]
pub(crate) fn rotation() -> u32 {
    ROTATION.get(0).copied().unwrap_or(0)
}

/// An area of the running CPU in an array that has `areas` of them for each. The agent sizes these arrays by the CPUs that
/// may come online, or to one entry where the object has no use for them: an entry of a per-CPU array would still
/// be there once for each CPU.
#[inline(always)]
pub(crate) fn area_of_cpu<T>(array: &Array<T>, areas: u32, area: u32) -> Option<*mut T> {
    // SAFETY: a helper without arguments.
    let cpu = unsafe { bpf_get_smp_processor_id() };
    array.get_ptr_mut(cpu.wrapping_mul(areas).wrapping_add(area))
}
