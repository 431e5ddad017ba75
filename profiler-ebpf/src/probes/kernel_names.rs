//! Names kernel addresses as the kernel prints them: reading all of /proc/kallsyms for some hundred of them takes much
//! longer, and much memory.

use aya_ebpf::{helpers::generated::bpf_snprintf, macros::map, maps::Array};
use profiler_common::kernel_names::{KERNEL_NAME_BYTES, KERNEL_NAMES_AT_ONCE, KernelNames};

#[map]
static KERNEL_NAMES: Array<KernelNames> = Array::with_max_entries(1, 0);

/// The symbol without an offset (Documentation/core-api/printk-formats.rst). The helper wants it in a frozen map.
#[unsafe(no_mangle)]
static SYMBOL_FORMAT: [u8; 4] = *b"%ps\0";

/// Never attached: the agent runs it. Returns how many addresses were looked at. `bpf_snprintf` is in 5.13 and later.
#[unsafe(no_mangle)]
#[unsafe(link_section = "raw_tp/sys_enter")]
pub(crate) extern "C" fn kernel_names(_context: *const u64) -> i32 {
    let Some(names) = KERNEL_NAMES.get_ptr_mut(0) else {
        return 0;
    };
    // SAFETY: a map value, which one thread of the agent fills and reads.
    let names = unsafe { &mut *names };
    let mut count = 0;
    for index in 0..KERNEL_NAMES_AT_ONCE {
        let address = &mut names.addresses[index];
        if *address == 0 {
            break;
        }
        // SAFETY: the room is as long as is said, the format ends with a zero, and its one value is given.
        unsafe {
            bpf_snprintf(
                names.names[index].as_mut_ptr().cast(),
                KERNEL_NAME_BYTES as u32,
                SYMBOL_FORMAT.as_ptr().cast(),
                address,
                size_of::<u64>() as u32,
            );
        }
        count += 1;
    }
    count
}
