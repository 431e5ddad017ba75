//! On-CPU samples: counted in the kernel, one counter for each distinct sample and time bucket.

/// Key of a counter in the counting tables; the value is a `u64` number of samples.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CountKey {
    /// Process, in the agent's PID namespace.
    pub pid: u32,
    /// Thread, in the agent's PID namespace.
    pub tid: u32,
    pub cpu: u32,
    /// `(time - origin_ns) / bucket_ns`.
    pub bucket: u32,
    /// Low half of `task->self_exec_id`: which program the process was running. Addresses of one
    /// program mean nothing in another.
    pub generation: u32,
    /// `crate::off_cpu::WAIT_*`; `WAIT_NONE` for a sample.
    pub wait: u32,
    /// Hash of the kernel stack, 0 when there is none.
    pub kernel_stack: u64,
    /// Hash of the user stack, 0 when there is none.
    pub user_stack: u64,
}

const _: () = assert!(size_of::<CountKey>() == 40);
