//! The kernel side of payload: what it needs to know, its ring buffer, and what is ordered of it.

use std::collections::HashMap;

use aya::{
    maps::{Array, MapData, RingBuf},
    programs::{RawTracePoint, RawTracePointRunOptions, TestRun as _},
};
use btf_rs::Btf;
use profiler_common::{
    http::HttpCounts,
    payload::{
        ORDER_DIRECTION_SHIFT, PAYLOAD_COUNTERS, PLACE_BUFFER, PLACE_BUFFER_FROM, PLACE_BUFFER_TO,
        PLACE_MESSAGE, PLACE_MESSAGES, PLACE_PARTS, PayloadConfig, Sampling,
    },
};
use rustix::time::{ClockId, clock_getres};

use super::{
    load_error::LoadError,
    loaded_object::LoadedObject,
    offsets::{OffsetError, byte_and_mask, member_offset},
    payload_records::PieceRecord,
    programs::{ProgramRow, row},
};

const HTTP_COUNTS: &str = "HTTP_COUNTS";
const CAPTURE: &ProgramRow = row("network_capture");

/// Where system calls say what they move.
const PLACES: [(libc::c_long, u32); 12] = [
    (libc::SYS_read, PLACE_BUFFER),
    (libc::SYS_write, PLACE_BUFFER),
    (libc::SYS_recvfrom, PLACE_BUFFER_FROM),
    (libc::SYS_sendto, PLACE_BUFFER_TO),
    (libc::SYS_readv, PLACE_PARTS),
    (libc::SYS_writev, PLACE_PARTS),
    (libc::SYS_preadv2, PLACE_PARTS),
    (libc::SYS_pwritev2, PLACE_PARTS),
    (libc::SYS_recvmsg, PLACE_MESSAGE),
    (libc::SYS_sendmsg, PLACE_MESSAGE),
    (libc::SYS_recvmmsg, PLACE_MESSAGES),
    (libc::SYS_sendmmsg, PLACE_MESSAGES),
];

/// The global of the programs; `capture_bytes` of each piece are captured, `None`: no payload is.
pub(super) fn config(btf: &Btf, capture_bytes: Option<u32>) -> Result<PayloadConfig, OffsetError> {
    let Some(capture_bytes) = capture_bytes else {
        return Ok(PayloadConfig::default());
    };
    let at = |structure, path: &[&'static str]| member_offset(btf, structure, path);
    let Registers {
        result,
        first,
        fifth,
    } = registers(&at)?;
    let (tcp_chrono_type, chrono_mask) = byte_and_mask(btf, "tcp_sock", "chrono_type")?;
    Ok(PayloadConfig {
        watched: 1,
        capture_bytes,
        sock_socket: at("sock", &["sk_socket"])?,
        socket_file: at("socket", &["file"])?,
        registers_result: result,
        registers_first: first,
        registers_fifth: fifth,
        tcp_chrono_start: at("tcp_sock", &["chrono_start"])?,
        tcp_chrono_stat: at("tcp_sock", &["chrono_stat"])?,
        tcp_chrono_type,
        chrono_mask,
        tick_ns: tick_ns(),
    })
}

/// Length of the kernel's tick, of which its coarse clock moves one at a time.
fn tick_ns() -> u32 {
    let tick = clock_getres(ClockId::MonotonicCoarse);
    u32::try_from(tick.tv_nsec).unwrap_or(0)
}

/// Where `struct pt_regs` has what is read of a system call.
struct Registers {
    /// Where its result will be.
    result: u32,
    /// A copy of its first argument; 0 where none is needed.
    first: u32,
    fifth: u32,
}

#[cfg(target_arch = "x86_64")]
fn registers(
    at: &impl Fn(&'static str, &[&'static str]) -> Result<u32, OffsetError>,
) -> Result<Registers, OffsetError> {
    Ok(Registers {
        result: at("pt_regs", &["ax"])?,
        first: 0,
        fifth: at("pt_regs", &["r8"])?,
    })
}

#[cfg(target_arch = "aarch64")]
fn registers(
    at: &impl Fn(&'static str, &[&'static str]) -> Result<u32, OffsetError>,
) -> Result<Registers, OffsetError> {
    let arguments = at("pt_regs", &["regs"])?;
    Ok(Registers {
        result: arguments,
        first: at("pt_regs", &["orig_x0"])?,
        fifth: arguments + 32,
    })
}

/// The ring buffer of pieces.
pub struct PieceReader {
    ring: RingBuf<MapData>,
}

impl std::fmt::Debug for PieceReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PieceReader")
    }
}

impl PieceReader {
    /// Hands at most `most` records to `visit`, in the order in which they came; the number of those
    /// that were there.
    pub fn read(&mut self, most: usize, mut visit: impl FnMut(PieceRecord<'_>)) -> usize {
        for number in 0..most {
            let Some(item) = self.ring.next() else {
                return number;
            };
            if let Some(record) = PieceRecord::decode(&item) {
                visit(record);
            } else {
                tracing::debug!(bytes = item.len(), "undecodable piece of payload");
            }
        }
        most
    }
}

/// Says of which connections how much is captured.
pub struct CaptureControl {
    program: RawTracePoint,
    sampling: Array<MapData, u32>,
}

impl std::fmt::Debug for CaptureControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CaptureControl")
    }
}

impl CaptureControl {
    /// From now on so many first bytes of each piece of a connection are captured, or as
    /// `profiler_common::payload::CAPTURE_*` says. False when there is no such connection.
    pub fn order(&self, cookie: u64, capture_bytes: u32) -> Result<bool, LoadError> {
        order(&self.program, cookie, u64::from(capture_bytes))
    }

    /// From now on these connections are captured.
    pub fn sample(&mut self, sampling: Sampling) -> Result<(), LoadError> {
        self.sampling
            .set(0, sampling.bits(), 0)
            .map_err(|source| LoadError::Map {
                map: "PIECE_SAMPLING",
                source: source.into(),
            })
    }
}

/// Runs the program of orders; whether there is such a connection.
fn order(program: &RawTracePoint, cookie: u64, order: u64) -> Result<bool, LoadError> {
    let mut options = RawTracePointRunOptions::new();
    let [first, second, ..] = &mut options.args;
    (*first, *second) = (cookie, order);
    let result = program.test_run(options).map_err(|source| LoadError::Run {
        program: CAPTURE.name,
        source: std::io::Error::other(source),
    })?;
    Ok(result.return_value == 1)
}

impl LoadedObject {
    /// Tells which end a connection is, by `DIRECTION_*`, that the programs have met before that was known.
    pub fn direct(&mut self, cookie: u64, direction: u32) -> Result<(), LoadError> {
        let direction = u64::from(direction) << ORDER_DIRECTION_SHIFT;
        order(self.command(CAPTURE)?, cookie, direction).map(drop)
    }

    /// Requests of HTTP that are over, by the cookie of their connection.
    pub fn http_counts(&self) -> Result<HashMap<u64, HttpCounts>, LoadError> {
        self.by_cookie(HTTP_COUNTS)
    }

    /// Takes out the requests of a connection that has ended.
    pub fn take_http_counts(&mut self, cookie: u64) -> Result<Option<HttpCounts>, LoadError> {
        self.take(HTTP_COUNTS, &cookie.to_ne_bytes())
    }

    /// Tells the programs which system calls are which, and loads the program of
    /// [`CaptureControl::order`]; before the programs are attached.
    pub(super) fn load_capture(&mut self) -> Result<(), LoadError> {
        for (number, place) in PLACES {
            if let Ok(number) = u32::try_from(number) {
                self.set_number("PAYLOAD_PLACES", number, place)?;
            }
        }
        self.load_command(CAPTURE)
    }

    /// Takes the ring buffer of pieces; an error the second time.
    pub fn take_pieces(&mut self) -> Result<PieceReader, LoadError> {
        let ring = self.take_ring("PIECES")?;
        Ok(PieceReader { ring })
    }

    /// Takes what says of which connections how much is captured; an error the second time.
    pub fn take_capture_control(&mut self) -> Result<CaptureControl, LoadError> {
        const SAMPLING: &str = "PIECE_SAMPLING";
        let program = self.shared_command(CAPTURE)?;
        let map = self.ebpf().take_map(SAMPLING);
        let map = map.ok_or(LoadError::NoMap(SAMPLING))?;
        let sampling = Array::try_from(map).map_err(|source| LoadError::Map {
            map: SAMPLING,
            source: source.into(),
        })?;
        Ok(CaptureControl { program, sampling })
    }

    /// Pieces that were lost and the like, by `profiler_common::payload`, summed over CPUs.
    pub fn payload_counters(&self) -> Result<[u64; PAYLOAD_COUNTERS as usize], LoadError> {
        self.sums("PIECE_COUNTS")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::offsets::kernel_btf;

    #[test]
    fn a_task_without_payload_needs_nothing_of_the_kernel() {
        let btf = kernel_btf().expect("this kernel has BTF");
        let none = config(&btf, None).expect("nothing is looked up");
        assert_eq!(none, PayloadConfig::default());
        let some = config(&btf, Some(1024)).expect("every member is there");
        assert_eq!((some.watched, some.capture_bytes), (1, 1024));
        assert!(some.sock_socket > 0 && some.socket_file > 0 && some.registers_result > 0);
    }
}
