//! Perf events that run a program.

use std::{
    io,
    os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd},
};

use aya::sys::SyscallError;

const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 8;
/// `_IO('$', 0)`, `_IOW('$', 4, __u64)` and `_IOW('$', 8, __u32)`.
const PERF_EVENT_IOC_ENABLE: libc::Ioctl = 0x2400;
const PERF_EVENT_IOC_PERIOD: libc::Ioctl = 0x4008_2404;
const PERF_EVENT_IOC_SET_BPF: libc::Ioctl = 0x4004_2408;
/// Bits of [`EventAttributes::flags`]: it waits to be enabled; `sample_period` is a frequency.
const DISABLED: u64 = 1;
const FREQUENCY: u64 = 1 << 10;

/// `PERF_TYPE_*`, and what of it.
#[derive(Clone, Copy, Debug)]
pub(super) enum EventKind {
    /// Cycles of the hardware, so many samples a second.
    Cycles { frequency_hz: u64 },
    /// A timer.
    CpuClock { period_ns: u64 },
    /// A tracepoint by its number; its program is run on every CPU.
    Tracepoint { number: u64 },
}

/// The first version of `struct perf_event_attr`.
#[repr(C)]
#[derive(Debug, Default)]
struct EventAttributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint: u32,
    config1: u64,
}

/// Its length.
const ATTRIBUTE_BYTES: u32 = 64;

const _: () = assert!(size_of::<EventAttributes>() == ATTRIBUTE_BYTES as usize);

/// An event of one CPU, with its program; both end when it is dropped.
#[derive(Debug)]
pub(super) struct PerfEvent(OwnedFd);

impl PerfEvent {
    pub(super) fn attach(
        kind: EventKind,
        cpu: u32,
        program: BorrowedFd<'_>,
    ) -> Result<Self, SyscallError> {
        let (number, config, sample_period, flags) = match kind {
            EventKind::Cycles { frequency_hz } => (0, 0, frequency_hz, FREQUENCY),
            EventKind::CpuClock { period_ns } => (1, 0, period_ns, 0),
            EventKind::Tracepoint { number } => (2, number, 0, 0),
        };
        let attributes = EventAttributes {
            kind: number,
            size: ATTRIBUTE_BYTES,
            config,
            sample_period,
            flags: flags | DISABLED,
            ..EventAttributes::default()
        };
        // SAFETY: the attributes have the length that they say, and outlive the call.
        let result = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                -1,
                cpu,
                -1,
                PERF_FLAG_FD_CLOEXEC,
            )
        };
        let number = i32::try_from(result).unwrap_or(-1);
        if number < 0 {
            return Err(failed("perf_event_open"));
        }
        // SAFETY: the kernel has just made this descriptor for us.
        let event = Self(unsafe { OwnedFd::from_raw_fd(number) });
        event.request(
            "PERF_EVENT_IOC_SET_BPF",
            PERF_EVENT_IOC_SET_BPF,
            program.as_raw_fd(),
        )?;
        event.request("PERF_EVENT_IOC_ENABLE", PERF_EVENT_IOC_ENABLE, 0)?;
        Ok(event)
    }

    fn request(
        &self,
        call: &'static str,
        request: libc::Ioctl,
        argument: i32,
    ) -> Result<(), SyscallError> {
        // SAFETY: requests that take a number.
        if unsafe { libc::ioctl(self.0.as_raw_fd(), request, argument) } != 0 {
            return Err(failed(call));
        }
        Ok(())
    }

    /// Ticks with this period from now on; the one that has begun does not end.
    pub(super) fn set_period(&self, period_ns: u64) -> io::Result<()> {
        let period = &raw const period_ns;
        // SAFETY: the request reads one number of 64 bits, which outlives the call.
        if unsafe { libc::ioctl(self.0.as_raw_fd(), PERF_EVENT_IOC_PERIOD, period) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

fn failed(call: &'static str) -> SyscallError {
    SyscallError {
        call,
        io_error: io::Error::last_os_error(),
    }
}
