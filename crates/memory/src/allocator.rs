//! Keeps the agent's memory small: it shares a node with what it measures.

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(target_env = "musl")]
unsafe extern "C" {
    /// Of mimalloc, which the global allocator links.
    fn mi_collect(force: bool);
    /// Changes an option, by its number in `mi_option_e` of mimalloc 3.
    fn mi_option_set(option: libc::c_int, value: libc::c_long);
}

/// Gives back at once what is free. Takes some milliseconds.
pub fn purge() {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: takes a number of bytes to keep, and releases only unused memory.
        unsafe { libc::malloc_trim(0) };
    }
    #[cfg(target_env = "musl")]
    {
        // SAFETY: may be called from any thread at any time.
        unsafe { mi_collect(true) };
    }
}

/// Makes freed memory go back to the kernel.
///
/// Loading a task parses the kernel's BTF (some 15 MB for a moment), and glibc's defaults keep such
/// peaks for ever, once for each thread's arena. Measured on the project machine: 48 MB resident
/// after two tasks with the defaults, 22 MB with these settings. mimalloc, which takes the place of musl's allocator, keeps
/// what is free for a second and commits arenas as a whole: 49 MB for an agent that does nothing, 8 MB with these settings
/// and without huge pages. Call before other threads start.
pub fn return_freed_memory() {
    #[cfg(target_env = "gnu")]
    {
        const SETTINGS: [(libc::c_int, libc::c_int); 3] = [
            (libc::M_ARENA_MAX, 2),
            (libc::M_TRIM_THRESHOLD, 64 * 1024),
            (libc::M_MMAP_THRESHOLD, 64 * 1024),
        ];
        for (parameter, value) in SETTINGS {
            // SAFETY: mallopt takes two numbers and changes only the allocator's settings.
            let accepted = unsafe { libc::mallopt(parameter, value) };
            if accepted == 0 {
                tracing::debug!(parameter, value, "the allocator refused a setting");
            }
        }
    }
    #[cfg(target_env = "musl")]
    {
        const ARENA_EAGER_COMMIT: libc::c_int = 4;
        const PURGE_DELAY: libc::c_int = 15;
        for option in [ARENA_EAGER_COMMIT, PURGE_DELAY] {
            // SAFETY: takes two numbers, and refuses unknown options.
            unsafe { mi_option_set(option, 0) };
        }
    }
}
