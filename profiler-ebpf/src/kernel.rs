//! Reads of kernel memory by offsets that the agent resolved from BTF.

use aya_ebpf::helpers::bpf_probe_read_kernel;

/// Address of a kernel object.
#[derive(Clone, Copy)]
pub(crate) struct KernelPtr(pub(crate) u64);

impl KernelPtr {
    /// Reads a value at `offset`; `None` when the address is not readable.
    #[inline(always)]
    pub(crate) fn read<T>(self, offset: u32) -> Option<T> {
        let address = (self.0 + u64::from(offset)) as *const T;
        // SAFETY: the helper checks the address and fails instead of faulting.
        unsafe { bpf_probe_read_kernel(address) }.ok()
    }

    /// Follows the pointer at `offset`; `None` when it is null or not readable.
    #[inline(always)]
    pub(crate) fn follow(self, offset: u32) -> Option<Self> {
        let pointer: u64 = self.read(offset)?;
        if pointer == 0 {
            None
        } else {
            Some(Self(pointer))
        }
    }

    #[inline(always)]
    pub(crate) fn at(self, offset: u32) -> Self {
        Self(self.0 + u64::from(offset))
    }
}

/// A kernel object whose type the verifier knows. Its members are read without a helper; it must be
/// one that a tracepoint or a helper gave, and the offset that of a member of this size.
#[derive(Clone, Copy)]
pub(crate) struct TypedPtr(u64);

impl TypedPtr {
    #[inline(always)]
    pub(crate) fn new<T>(pointer: *const T) -> Self {
        Self(pointer as u64)
    }

    #[inline(always)]
    pub(crate) fn as_ptr(self) -> *const core::ffi::c_void {
        self.0 as *const _
    }

    #[inline(always)]
    pub(crate) fn untyped(self) -> KernelPtr {
        KernelPtr(self.0)
    }

    #[inline(always)]
    pub(crate) fn member<T: Copy>(self, offset: u32) -> T {
        // SAFETY: the verifier rejects what is not a member, and reads of bad addresses give 0.
        unsafe { ((self.0 + u64::from(offset)) as *const T).read() }
    }

    /// Follows a pointer among the members; `None` when it is null.
    #[inline(always)]
    pub(crate) fn follow(self, offset: u32) -> Option<Self> {
        let pointer: u64 = self.member(offset);
        if pointer == 0 {
            None
        } else {
            Some(Self(pointer))
        }
    }
}
