//! Numbers of tracepoints, which the kernel tells in tracefs alone.

use std::{
    ffi::CStr,
    fs::File,
    io::{self, Read as _},
    os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
    path::Path,
};

use rustix::fs::{Mode, OFlags, open, openat};

/// Where tracefs is, if it is mounted.
const MOUNTED: &str = "/sys/kernel/tracing";
const NAME: &CStr = c"tracefs";
/// Command of `fsconfig` that makes the file system.
const FSCONFIG_CMD_CREATE: u32 = 6;
/// Flags of `fsopen` and `fsmount`: descriptors are closed at exec.
const CLOSE_ON_EXEC: u32 = 1;
/// A number and a newline.
const MAX_BYTES: u64 = 32;

/// The root of tracefs.
#[derive(Debug)]
pub(super) struct TraceFs {
    root: OwnedFd,
}

impl TraceFs {
    /// Opens tracefs where it is mounted, and otherwise without mounting it anywhere
    /// (`CAP_SYS_ADMIN`, Linux 5.2).
    pub(super) fn open() -> io::Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        if Path::new(MOUNTED).join("events").exists() {
            let root = open(MOUNTED, flags, Mode::empty())?;
            return Ok(Self { root });
        }
        detached().map(|root| Self { root })
    }

    /// The number of the tracepoint `syscalls:NAME`; `None` when this kernel does not have it.
    pub(super) fn system_call(&self, name: &str) -> io::Result<Option<u64>> {
        let path = format!("events/syscalls/{name}/id");
        let file = match openat(&self.root, path, OFlags::CLOEXEC, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut text = String::new();
        file.take(MAX_BYTES).read_to_string(&mut text)?;
        let number = text.trim().parse();
        number.map(Some).map_err(io::Error::other)
    }
}

/// An instance of tracefs that no path leads to.
fn detached() -> io::Result<OwnedFd> {
    let context = descriptor(|| {
        // SAFETY: the name is a C string that outlives the call.
        unsafe { libc::syscall(libc::SYS_fsopen, NAME.as_ptr(), CLOSE_ON_EXEC) }
    })?;
    // SAFETY: the command takes neither key nor value.
    let made = unsafe {
        libc::syscall(
            libc::SYS_fsconfig,
            context.as_raw_fd(),
            FSCONFIG_CMD_CREATE,
            std::ptr::null::<libc::c_char>(),
            std::ptr::null::<libc::c_void>(),
            0,
        )
    };
    if made != 0 {
        return Err(io::Error::last_os_error());
    }
    descriptor(|| {
        // SAFETY: the call takes numbers alone.
        unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), CLOSE_ON_EXEC, 0) }
    })
}

/// Owns the descriptor that a system call returns.
fn descriptor(call: impl FnOnce() -> libc::c_long) -> io::Result<OwnedFd> {
    let result = call();
    let Ok(number) = i32::try_from(result) else {
        return Err(io::Error::other("a descriptor out of range"));
    };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
