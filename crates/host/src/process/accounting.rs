//! What the kernel accounts to a process and its threads: CPU time, and time spent waiting for a CPU.
//!
//! Sources: `/proc/PID/stat` (utime + stime of the whole process, also of threads that have ended, in
//! clock ticks), `/proc/PID/task/TID/schedstat` (time on a CPU and time runnable without one, in
//! nanoseconds; `Documentation/scheduler/sched-stats.rst`). The kernel writes zeros there when it was
//! built without this information.

use std::{collections::BTreeMap, io};

use profiler_image::proc_dir::{ProcDir, ProcessStat};
use profiler_model::ProcessKey;

/// Threads of one process that are read; a proxy has some dozen.
const MAX_THREADS: usize = 4096;
/// Largest `schedstat`: three numbers.
const SCHEDSTAT_LIMIT: usize = 256;

/// One thread's accounts since it started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadAccount {
    /// Untrusted text.
    pub name: String,
    /// Time on a CPU.
    pub cpu_ns: u64,
    /// Time in which it could have run and had no CPU; `None` where the kernel does not account it.
    pub run_queue_ns: Option<u64>,
    /// Whether `cpu_ns` has the resolution of `schedstat`, not that of clock ticks.
    exact: bool,
}

/// A process's accounts since it started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessAccount {
    pub key: ProcessKey,
    /// Untrusted text.
    pub comm: String,
    /// Time on CPUs in clock ticks, also of threads that have ended.
    coarse_ns: u64,
    pub threads: BTreeMap<u32, ThreadAccount>,
}

impl ProcessAccount {
    /// Reads a process. Fails when it has ended or cannot be read. Blocks.
    pub fn read(pid: u32) -> io::Result<Self> {
        let (dir, stat) = living(pid)?;
        let tick_ns = tick_ns();
        let threads = dir.thread_stats(MAX_THREADS).into_iter();
        let threads = threads.map(|(tid, stat)| {
            let text = dir.read(&format!("task/{tid}/schedstat"), SCHEDSTAT_LIMIT);
            let exact = text.ok().and_then(|bytes| parse_schedstat(&bytes));
            let account = ThreadAccount {
                name: stat.comm,
                cpu_ns: exact.map_or(stat.cpu_ticks.saturating_mul(tick_ns), |(cpu, _)| cpu),
                run_queue_ns: exact.map(|(_, wait)| wait),
                exact: exact.is_some(),
            };
            (tid, account)
        });
        Ok(Self {
            key: ProcessKey {
                pid,
                start_ticks: stat.start_ticks,
            },
            comm: stat.comm,
            coarse_ns: stat.cpu_ticks.saturating_mul(tick_ns),
            threads: threads.collect(),
        })
    }

    /// CPU time of the process between an earlier reading and this one. In nanoseconds where the
    /// threads are the same ones and the kernel accounts them so, in clock ticks otherwise.
    pub fn cpu_ns_since(&self, earlier: &Self) -> u64 {
        let same = self.threads.len() == earlier.threads.len()
            && self.threads.keys().eq(earlier.threads.keys())
            && self.threads.values().all(|thread| thread.exact);
        if same {
            self.exact_ns().saturating_sub(earlier.exact_ns())
        } else {
            self.coarse_ns.saturating_sub(earlier.coarse_ns)
        }
    }

    fn exact_ns(&self) -> u64 {
        self.threads.values().map(|thread| thread.cpu_ns).sum()
    }
}

/// Time that each thread of a process has waited for a CPU since it started, by thread id, in nanoseconds; empty where the
/// kernel does not account it. Blocks: reads a file for each thread.
pub fn run_queue_times(pid: u32) -> io::Result<BTreeMap<u32, u64>> {
    let dir = ProcDir::open(pid)?;
    let threads = dir.thread_ids(MAX_THREADS).into_iter();
    let times = threads.filter_map(|tid| {
        let bytes = dir.read(&format!("task/{tid}/schedstat"), SCHEDSTAT_LIMIT);
        Some((tid, parse_schedstat(&bytes.ok()?)?.1))
    });
    Ok(times.collect())
}

/// What a process has used since it started, also in threads that have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTime {
    pub start_ticks: u64,
    /// In steps of a clock tick.
    pub ns: u64,
}

/// CPU time of a process. Fails when it has ended or cannot be read. Blocks: reads one file.
pub fn cpu_time(pid: u32) -> io::Result<CpuTime> {
    let (_dir, stat) = living(pid)?;
    Ok(CpuTime {
        start_ticks: stat.start_ticks,
        ns: stat.cpu_ticks.saturating_mul(tick_ns()),
    })
}

/// A process that has not ended.
fn living(pid: u32) -> io::Result<(ProcDir, ProcessStat)> {
    let dir = ProcDir::open(pid)?;
    let stat = dir.stat()?;
    if stat.zombie {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok((dir, stat))
}

/// Length of a clock tick.
fn tick_ns() -> u64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1)
}

/// Time on a CPU and time waiting for one. `None` when the kernel wrote only zeros, which a thread
/// cannot have once it can be read: it ran at least once.
fn parse_schedstat(bytes: &[u8]) -> Option<(u64, u64)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut words = text.split_ascii_whitespace();
    let mut number = || words.next()?.parse::<u64>().ok();
    let (cpu, wait, times) = (number()?, number()?, number()?);
    (cpu > 0 || times > 0).then_some((cpu, wait))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn burn(time: Duration) {
        let began = Instant::now();
        let mut value = 1_u64;
        while began.elapsed() < time {
            value = std::hint::black_box(value.wrapping_mul(3));
        }
    }

    #[test]
    fn schedstat_has_three_numbers_or_nothing() {
        assert_eq!(parse_schedstat(b"1200 300 7\n"), Some((1200, 300)));
        for text in ["0 0 0\n", "", "1 2", "1 2 x", "-1 2 3", "\u{e4} 2 3"] {
            assert_eq!(parse_schedstat(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn the_own_process_uses_what_it_burns() {
        let pid = std::process::id();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let (started, has_started) = std::sync::mpsc::channel();
        let other = std::thread::Builder::new()
            .name("burns".into())
            .spawn(move || {
                started.send(rustix::thread::gettid()).unwrap();
                while stopped.try_recv().is_err() {
                    burn(Duration::from_millis(1));
                }
            })
            .unwrap();
        let tid = u32::try_from(has_started.recv().unwrap().as_raw_nonzero().get()).unwrap();
        let first = ProcessAccount::read(pid).unwrap();
        burn(Duration::from_millis(120));
        let second = ProcessAccount::read(pid).unwrap();
        stop.send(()).unwrap();
        other.join().unwrap();
        assert_eq!(first.key, second.key);
        let thread = |account: &ProcessAccount| account.threads[&tid].clone();
        assert_eq!(thread(&first).name, "burns");
        let used = thread(&second).cpu_ns - thread(&first).cpu_ns;
        let whole = second.cpu_ns_since(&first);
        assert!(used > 0 && whole >= used, "{used} of {whole}");
        assert!(thread(&second).run_queue_ns >= thread(&first).run_queue_ns);
        assert_eq!(first.cpu_ns_since(&second), 0, "never below zero");
    }

    #[test]
    fn a_thread_that_ended_falls_back_to_the_process_s_own_account() {
        let account = |coarse_ns, threads: &[(u32, u64)]| ProcessAccount {
            key: ProcessKey {
                pid: 1,
                start_ticks: 1,
            },
            comm: "x".into(),
            coarse_ns,
            threads: threads
                .iter()
                .map(|(tid, cpu_ns)| {
                    let account = ThreadAccount {
                        name: "t".into(),
                        cpu_ns: *cpu_ns,
                        run_queue_ns: Some(0),
                        exact: true,
                    };
                    (*tid, account)
                })
                .collect(),
        };
        let first = account(100, &[(1, 30), (2, 65)]);
        let same = account(200, &[(1, 40), (2, 160)]);
        let less = account(200, &[(1, 40)]);
        assert_eq!(same.cpu_ns_since(&first), 105);
        assert_eq!(less.cpu_ns_since(&first), 100);
    }

    #[test]
    fn a_process_that_is_gone_is_an_error() {
        assert!(ProcessAccount::read(u32::MAX).is_err());
    }
}
