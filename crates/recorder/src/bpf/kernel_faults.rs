//! Faults of kernels that would make loading or running a program harm the machine.

use std::{fs, sync::LazyLock};

use aya::util::KernelVersion;

/// What this kernel must not be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KernelFaults {
    /// A program of a tracepoint, a raw tracepoint or a probe in user space that uses a map without preallocated memory
    /// trips a `WARN_ONCE` of `check_map_prog_compatibility` (kernel/bpf/verifier.c of 5.7 to 6.0), which
    /// `panic_on_warn` makes fatal.
    pub(super) warns_of_growing_maps: bool,
    /// Ring buffers take a `spinlock_t` (kernel/bpf/ringbuf.c before "bpf: Use `raw_spinlock_t` in ringbuf", 6.12 and
    /// 6.6.84), which sleeps where the kernel is `PREEMPT_RT`.
    pub(super) ring_buffers_sleep: bool,
}

/// Of the running kernel. A version that cannot be read counts as a new one.
pub(super) fn kernel_faults() -> KernelFaults {
    static FAULTS: LazyLock<KernelFaults> = LazyLock::new(|| {
        let version = KernelVersion::current().unwrap_or(KernelVersion::new(u8::MAX, 0, 0));
        let realtime = fs::read_to_string("/sys/kernel/realtime");
        faults(version, realtime.is_ok_and(|flag| flag.trim() == "1"))
    });
    *FAULTS
}

fn faults(version: KernelVersion, is_realtime: bool) -> KernelFaults {
    let is_mended = version >= KernelVersion::new(6, 12, 0)
        || (KernelVersion::new(6, 6, 84)..KernelVersion::new(6, 7, 0)).contains(&version);
    KernelFaults {
        warns_of_growing_maps: version < KernelVersion::new(6, 1, 0),
        ring_buffers_sleep: is_realtime && !is_mended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_those_of_the_version() {
        let check = |(major, minor, patch), is_realtime, warns, sleeps| {
            let expected = KernelFaults {
                warns_of_growing_maps: warns,
                ring_buffers_sleep: sleeps,
            };
            let version = KernelVersion::new(major, minor, patch);
            assert_eq!(faults(version, is_realtime), expected, "{version:?}");
        };
        check((5, 15, 204), false, true, false);
        check((6, 0, 19), true, true, true);
        check((6, 1, 0), false, false, false);
        check((6, 1, 176), true, false, true);
        check((6, 6, 83), true, false, true);
        check((6, 6, 84), true, false, false);
        check((6, 8, 0), true, false, true);
        check((6, 12, 0), true, false, false);
        check((6, 18, 0), false, false, false);
    }
}
