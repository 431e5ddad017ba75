//! CPU time of the processes of a session by the kernel's accounting, beside that of their samples.
//!
//! The clock's ticks show nothing about it: an idle CPU may sleep through them, and each that hits another
//! process is not a sample either.

use std::collections::HashMap;

use profiler_clock::steady_ns;
use profiler_common::process::start_ticks;
use profiler_host::process::accounting::cpu_time;
use profiler_model::CpuCoverage;

use super::{
    source::Counted,
    timeline::{Origin, monotonic_ns},
};

/// Processes whose accounts are read: each costs a file at both ends.
const PROCESSES: usize = 256;

/// A process from the first reading of its account on.
#[derive(Clone, Copy, Debug)]
struct Account {
    start_ticks: u64,
    /// Samples from this bucket on count.
    from_bucket: u32,
    first_ns: u64,
    /// `None` until it is read again, and when it has ended by then.
    last_ns: Option<u64>,
    sampled_ns: u64,
}

/// Accounts of the processes that were seen first.
#[derive(Debug)]
pub(super) struct CpuAccounts {
    origin: Origin,
    /// Start of the collection, as start times in /proc.
    origin_ticks: u64,
    accounts: HashMap<u32, Account>,
}

impl CpuAccounts {
    /// With the processes that are known from the start. Blocks: reads /proc.
    pub(super) fn of(origin: Origin, pids: impl IntoIterator<Item = u32>) -> Self {
        let mut accounts = Self {
            origin,
            origin_ticks: start_ticks(boottime_ns(origin)),
            accounts: HashMap::new(),
        };
        for pid in pids {
            accounts.follow(pid);
        }
        accounts
    }

    /// Follows one more process. Blocks: reads /proc.
    pub(super) fn follow(&mut self, pid: u32) {
        if self.accounts.len() >= PROCESSES || self.accounts.contains_key(&pid) {
            return;
        }
        let Ok(read) = cpu_time(pid) else {
            return; // it has ended
        };
        let (from_bucket, first_ns) = if read.start_ticks > self.origin_ticks {
            (0, 0) // it has begun since, and all of its time counts
        } else {
            let bucket = self.origin.bucket(monotonic_ns());
            (bucket.saturating_add(1), read.ns)
        };
        let account = Account {
            start_ticks: read.start_ticks,
            from_bucket,
            first_ns,
            last_ns: None,
            sampled_ns: 0,
        };
        self.accounts.insert(pid, account);
    }

    /// Adds the samples of a drain.
    pub(super) fn add(&mut self, counted: &[Counted]) {
        for counted in counted {
            if let Some(account) = self.accounts.get_mut(&counted.key.pid)
                && counted.key.bucket >= account.from_bucket
            {
                account.sampled_ns = account.sampled_ns.saturating_add(counted.total_ns);
            }
        }
    }

    /// Reads the accounts again, at the end of what is sampled. Blocks: reads /proc.
    pub(super) fn read(&mut self) {
        for (pid, account) in &mut self.accounts {
            let read = cpu_time(*pid).ok();
            let same = read.filter(|read| read.start_ticks == account.start_ticks);
            account.last_ns = same.map(|read| read.ns);
        }
    }

    /// The sums of the processes that were there at both readings; `None` where the accounts are too
    /// coarse for them.
    pub(super) fn coverage(&self) -> Option<CpuCoverage> {
        let mut sums = CpuCoverage::default();
        for account in self.accounts.values() {
            if let Some(last_ns) = account.last_ns {
                sums.processes += 1;
                sums.sampled_ns = sums.sampled_ns.saturating_add(account.sampled_ns);
                let accounted = last_ns.saturating_sub(account.first_ns);
                sums.accounted_ns = sums.accounted_ns.saturating_add(accounted);
            }
        }
        sums.is_known().then_some(sums)
    }
}

/// The origin on the clock of start times, which goes on while the machine sleeps.
fn boottime_ns(origin: Origin) -> u64 {
    steady_ns().saturating_sub(monotonic_ns().saturating_sub(origin.kernel_ns))
}

#[cfg(test)]
mod tests {
    use profiler_common::on_cpu::CountKey;
    use profiler_model::ThreadState;

    use super::*;

    fn sample(pid: u32, bucket: u32, total_ns: u64) -> Counted {
        Counted {
            key: CountKey {
                pid,
                bucket,
                ..CountKey::default()
            },
            state: ThreadState::OnCpu,
            count: 1,
            total_ns,
            waker: None,
        }
    }

    #[test]
    fn samples_are_held_against_accounts_of_processes_that_live() {
        let account = |last_ns| Account {
            start_ticks: 1,
            from_bucket: 11,
            first_ns: 500_000_000,
            last_ns,
            sampled_ns: 0,
        };
        let mut accounts = CpuAccounts::of(Origin::now(), []);
        accounts.accounts.insert(1, account(Some(2_500_000_000)));
        accounts.accounts.insert(2, account(None));
        accounts.add(&[
            sample(1, 10, 100_000_000),
            sample(1, 11, 900_000_000),
            sample(1, 40, 1_000_000_000),
            sample(2, 11, 5_000_000_000),
            sample(3, 11, 5_000_000_000),
        ]);
        let expected = CpuCoverage {
            sampled_ns: 1_900_000_000,
            accounted_ns: 2_000_000_000,
            processes: 1,
        };
        assert_eq!(accounts.coverage(), Some(expected));
    }

    #[test]
    fn a_process_that_has_ended_has_no_account() {
        let start = || {
            let mut sleep = std::process::Command::new("sleep");
            sleep.arg("60").spawn().expect("start sleep")
        };
        let old = std::process::id();
        let origin = Origin::now();
        let (mut ending, mut living) = (start(), start());
        let pids = [old, ending.id(), living.id()];
        let mut accounts = CpuAccounts::of(origin, pids);
        ending.kill().expect("end sleep");
        ending.wait().expect("reap sleep");
        accounts.read();
        let there = pids.map(|pid| accounts.accounts[&pid].last_ns.is_some());
        living.kill().expect("end sleep");
        living.wait().expect("reap sleep");
        assert_eq!(there, [true, false, true]);
        assert!(accounts.accounts[&old].from_bucket > 0);
    }
}
