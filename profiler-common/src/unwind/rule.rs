//! What a row says: how to find the caller's frame.

/// How to compute the canonical frame address (CFA), or what the row stands for.
///
/// `sp`, `fp` and the registers are those of the frame being left.
pub mod cfa {
    /// No function description covers this address.
    pub const NO_UNWIND_INFO: u8 = 0;
    /// The outermost frame: the return address is undefined (`_start`, `clone3`).
    pub const OUTERMOST: u8 = 1;
    /// `sp + cfa_offset`.
    pub const SP: u8 = 2;
    /// `fp + cfa_offset`.
    pub const FP: u8 = 3;
    /// `*(sp + cfa_offset) + cfa_add`.
    pub const DEREF_SP: u8 = 4;
    /// `*(fp + cfa_offset) + cfa_add`.
    pub const DEREF_FP: u8 = 5;
    /// `register[cfa_register] + cfa_offset`; known in an interrupted frame only.
    pub const REGISTER: u8 = 6;
    /// `*(register[cfa_register] + cfa_offset) + cfa_add`; known in an interrupted frame only.
    pub const DEREF_REGISTER: u8 = 7;
    /// A PLT entry: `sp + 8`, or `sp + 16` from byte `cfa_offset` of its 16 on (x86-64 psABI).
    pub const PLT: u8 = 8;
    /// A signal trampoline: the interrupted registers lie on the stack in a `ucontext`.
    pub const SIGNAL: u8 = 9;
    /// A function that keeps a frame pointer, from its first byte on: x86-64 `push rbp; mov rbp, rsp`
    /// after `cfa_offset` bytes (0, or 4 for `endbr64`), then the frame-pointer rule, and `ret`
    /// only after `pop rbp`, as well as `jmp` right after `pop rbp`. Needs one row for a whole
    /// function.
    pub const FP_FUNCTION: u8 = 10;
    /// The inside of such a function: the frame-pointer rule, and `ret` (or `jmp` right behind)
    /// only after `pop rbp`.
    pub const FP_BODY: u8 = 11;
    /// Go code with `cfa_offset` bytes below the return address: the interrupted frame by its size,
    /// callers by the frame pointer, which Go keeps in every function with a frame.
    pub const GO: u8 = 12;
    /// The description exists and this unwinder cannot follow it.
    pub const UNSUPPORTED: u8 = 13;
    /// `*(sp + cfa_offset + 8 * register[cfa_register]) + cfa_add`, as in Montgomery multiplication
    /// by hand; known in an interrupted frame only.
    pub const DEREF_SP_SCALED: u8 = 14;
}

/// Where the caller's program counter is.
pub mod ra {
    /// `*(CFA + ra_offset)`.
    pub const AT_CFA: u8 = 0;
    /// In the link register (aarch64); known in an interrupted frame only.
    pub const LINK: u8 = 1;
    /// In `register[ra_offset]`; known in an interrupted frame only.
    pub const REGISTER: u8 = 2;
}

/// Where the caller's frame pointer is.
pub mod fp {
    /// Not changed by this function.
    pub const SAME: u8 = 0;
    /// `*(CFA + fp_offset)`.
    pub const AT_CFA: u8 = 1;
    /// Lost.
    pub const UNDEFINED: u8 = 2;
    /// `*(fp + fp_offset)`, for functions that realign their stack.
    pub const AT_FP: u8 = 3;
    /// `*(sp + fp_offset)`, for functions that realign their stack.
    pub const AT_SP: u8 = 4;
    /// In `register[fp_offset]`; known in an interrupted frame only.
    pub const REGISTER: u8 = 5;
}

/// One unwind rule. Files share rules: Envoy's 1.4 million raw rows use 388 of them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rule {
    /// One of [`cfa`].
    pub cfa_kind: u8,
    /// DWARF number of a register, for the kinds that name one.
    pub cfa_register: u8,
    /// One of [`ra`].
    pub ra_kind: u8,
    /// One of [`fp`].
    pub fp_kind: u8,
    pub cfa_offset: i32,
    pub cfa_add: i16,
    pub ra_offset: i16,
    pub fp_offset: i32,
}

const _: () = assert!(size_of::<Rule>() == 16);
