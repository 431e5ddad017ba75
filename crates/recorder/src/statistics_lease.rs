//! The kernel's run-time statistics of BPF programs, enabled while they are in use.
//!
//! They cost some 20 ns a run, so that they are lent: who wants them asks again before the time is over.

use std::{
    io,
    os::fd::OwnedFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Where the kernel shows that an administrator has turned them on.
const SWITCH: &str = "/proc/sys/kernel/bpf_stats_enabled";

/// What keeps the statistics enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatisticsState {
    Off,
    /// The agent was started with `--bpf-stats`.
    Agent,
    /// The setting `kernel.bpf_stats_enabled` of the machine.
    Kernel,
    /// A request, for this long from now on.
    Lent(Duration),
}

#[derive(Debug)]
struct Lease {
    _statistics: OwnedFd,
    until: Instant,
}

/// See the module. Cheap to clone.
#[derive(Clone, Debug)]
pub struct StatisticsLease {
    always: bool,
    enable: fn() -> io::Result<OwnedFd>,
    lease: Arc<Mutex<Option<Lease>>>,
}

impl StatisticsLease {
    /// `always`: the agent keeps them on for its life.
    pub fn new(always: bool, enable: fn() -> io::Result<OwnedFd>) -> Self {
        Self {
            always,
            enable,
            lease: Arc::default(),
        }
    }

    pub fn state(&self) -> StatisticsState {
        if self.always {
            return StatisticsState::Agent;
        }
        if std::fs::read_to_string(SWITCH).is_ok_and(|text| text.trim() == "1") {
            return StatisticsState::Kernel;
        }
        match &*self.lock() {
            None => StatisticsState::Off,
            Some(lease) => {
                StatisticsState::Lent(lease.until.saturating_duration_since(Instant::now()))
            }
        }
    }

    /// Turns them on, or leaves them on, for `time` from now. Needs a tokio runtime.
    pub fn lend(&self, time: Duration) -> io::Result<()> {
        let until = Instant::now() + time;
        let mut held = self.lock();
        if let Some(lease) = &mut *held {
            lease.until = lease.until.max(until);
            return Ok(());
        }
        *held = Some(Lease {
            _statistics: (self.enable)()?,
            until,
        });
        drop(held);
        tokio::spawn(self.clone().end_in_time());
        Ok(())
    }

    async fn end_in_time(self) {
        loop {
            let until = match &mut *self.lock() {
                None => return,
                held @ Some(_) => {
                    let until = held.as_ref().map(|lease| lease.until);
                    if until.is_some_and(|until| until <= Instant::now()) {
                        *held = None;
                    }
                    until
                }
            };
            let Some(until) = until.filter(|until| *until > Instant::now()) else {
                return;
            };
            tokio::time::sleep_until(until.into()).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Lease>> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "stands in for a system call")]
    fn pretend() -> io::Result<OwnedFd> {
        Ok(std::fs::File::open("/dev/null").unwrap().into())
    }

    fn refuse() -> io::Result<OwnedFd> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    #[tokio::test]
    async fn a_lease_ends_by_itself_and_can_be_renewed() {
        let lease = StatisticsLease::new(false, pretend);
        if lease.state() == StatisticsState::Kernel {
            // The machine counts anyway; what is lent does not show.
            return;
        }
        assert_eq!(lease.state(), StatisticsState::Off);
        lease.lend(Duration::from_millis(20)).unwrap();
        lease.lend(Duration::from_millis(200)).unwrap();
        let StatisticsState::Lent(left) = lease.state() else {
            panic!("{:?}", lease.state());
        };
        assert!(left > Duration::from_millis(20), "{left:?}");
        for _ in 0..1000 {
            if lease.state() == StatisticsState::Off {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("still {:?}", lease.state());
    }

    #[tokio::test]
    async fn a_refusal_is_told_and_leaves_nothing_on() {
        let lease = StatisticsLease::new(false, refuse);
        let before = lease.state();
        assert!(lease.lend(Duration::from_secs(1)).is_err());
        assert_eq!(lease.state(), before);
        assert_eq!(
            StatisticsLease::new(true, refuse).state(),
            StatisticsState::Agent
        );
    }
}
