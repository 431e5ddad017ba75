//! Who ended a wait.

use crate::on_cpu::CountKey;

/// [`Waker::who`]: a thread of a process that the agent sees.
pub const WAKER_THREAD: u32 = 1;
/// The idle task, which means an interrupt.
pub const WAKER_IDLE: u32 = 2;
/// A thread outside the agent's PID namespace.
pub const WAKER_OUTSIDE: u32 = 3;
/// A thread that an interrupt or a fault came upon; it is not announced, and has no user stack.
pub const WAKER_INTERRUPTED: u32 = 4;

/// What ran when a thread was woken. When it was an interrupt, which the kernel stack shows, the
/// thread has nothing to do with it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Waker {
    /// `WAKER_*`.
    pub who: u32,
    /// As in [`CountKey`]; 0 when it is neither [`WAKER_THREAD`] nor [`WAKER_INTERRUPTED`].
    pub pid: u32,
    pub tid: u32,
    pub generation: u32,
    pub kernel_stack: u64,
    pub user_stack: u64,
}

/// The last waking of a thread, by its number in the agent's PID namespace.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LastWaking {
    pub time_ns: u64,
    pub waker: Waker,
}

/// Key of a counter of waits whose waker is known; the value is a [`crate::off_cpu::WaitValue`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WokenKey {
    pub wait: CountKey,
    pub waker: Waker,
}

const _: () = assert!(size_of::<Waker>() == 32);
const _: () = assert!(size_of::<LastWaking>() == 40);
const _: () = assert!(size_of::<WokenKey>() == 72);
