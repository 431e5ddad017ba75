//! Bounds for requests without a right token: how many are answered, all together and after wrong tokens from one
//! address. Who has a token never gets here.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    time::{Duration, Instant},
};

use super::needs::Need;
use parking_lot::{Mutex, MutexGuard};

/// Time between two of them, which makes 1,000 in a second.
const INTERVAL: Duration = Duration::from_millis(1);
/// Unused time up to this may be used at once: a browser loads the files of the page together.
const BURST: Duration = Duration::from_millis(250);
/// A request for the page or for health waits at most this long. Each connection has one request at a time and their
/// number is bounded, so that no flood of others makes it wait longer.
const LONGEST_WAIT: Duration = Duration::from_millis(300);
/// How long a refusal is kept back.
pub(super) const REFUSAL_TIME: Duration = Duration::from_millis(100);

/// Wrong tokens of one address in [`WINDOW`] that are answered as such.
const MOST_WRONG_TOKENS: u32 = 30;
const WINDOW: Duration = Duration::from_mins(1);
/// Addresses that are remembered; one more takes the place of that which was heard of longest ago.
const MOST_ADDRESSES: usize = 1024;
/// Shortest time between two lines of the log about wrong tokens.
const LOG_INTERVAL: Duration = Duration::from_mins(1);

/// When a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Now,
    After(Duration),
    Never,
}

#[derive(Debug, Default)]
pub(super) struct Strangers {
    turns: Mutex<AdmissionQueue>,
    wrong: Mutex<WrongTokens>,
}

impl Strangers {
    /// Gives a request the next turn, unless that is too far away.
    pub(super) fn turn(&self, need: Need, now: Instant) -> Admission {
        let longest = if need.is_open() {
            LONGEST_WAIT
        } else {
            Duration::ZERO
        };
        lock(&self.turns).take(longest, now)
    }

    /// How long an address has to wait that has sent too many wrong tokens.
    pub(super) fn wait_after_wrong_tokens(
        &self,
        address: IpAddr,
        now: Instant,
    ) -> Option<Duration> {
        lock(&self.wrong).wait(network_of(address), now)
    }

    /// Remembers a wrong token and logs it: the address at a detailed level, the number always.
    pub(super) fn note_wrong_token(&self, address: IpAddr, now: Instant) {
        tracing::debug!(%address, "a request had a wrong token");
        let mut wrong = lock(&self.wrong);
        let count = wrong.add(network_of(address), now);
        let unsaid = wrong.take_unsaid(now);
        drop(wrong);
        tell(unsaid);
        if count == MOST_WRONG_TOKENS {
            // Once in a window of each address that is remembered.
            tracing::warn!(
                count,
                "an address has sent too many wrong tokens and has to wait"
            );
        }
    }

    /// The same for one that came while its address had to wait.
    pub(super) fn note_slowed(&self, now: Instant) {
        let mut wrong = lock(&self.wrong);
        wrong.unsaid += 1;
        let unsaid = wrong.take_unsaid(now);
        drop(wrong);
        tell(unsaid);
    }
}

fn tell(unsaid: Option<u64>) {
    if let Some(count) = unsaid {
        tracing::warn!(count, "requests had a wrong token");
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change leaves both whole.
    mutex.lock()
}

/// The network of an address: one host has a whole /64 of IPv6.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let first = address.to_bits() >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from_bits(first))
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// Turns in the order in which they are asked for.
#[derive(Debug, Default)]
struct AdmissionQueue {
    /// The first free turn.
    next: Option<Instant>,
}

impl AdmissionQueue {
    fn take(&mut self, longest: Duration, now: Instant) -> Admission {
        let first = now.checked_sub(BURST).unwrap_or(now);
        let turn = self.next.map_or(first, |next| next.max(first));
        let wait = turn.saturating_duration_since(now);
        if wait > longest {
            return Admission::Never;
        }
        self.next = Some(turn + INTERVAL);
        if wait.is_zero() {
            Admission::Now
        } else {
            Admission::After(wait)
        }
    }
}

/// Wrong tokens by address.
#[derive(Debug, Default)]
struct WrongTokens {
    tries: HashMap<IpAddr, Tries>,
    /// Those that were not logged yet.
    unsaid: u64,
    said: Option<Instant>,
}

#[derive(Debug)]
struct Tries {
    /// When the first of these came.
    since: Instant,
    last: Instant,
    count: u32,
}

impl WrongTokens {
    fn wait(&self, network: IpAddr, now: Instant) -> Option<Duration> {
        let tries = self.tries.get(&network)?;
        let left = WINDOW.saturating_sub(now.saturating_duration_since(tries.since));
        (tries.count >= MOST_WRONG_TOKENS && !left.is_zero()).then_some(left)
    }

    /// How many the address has sent in this window.
    fn add(&mut self, network: IpAddr, now: Instant) -> u32 {
        self.unsaid += 1;
        if !self.tries.contains_key(&network) {
            self.make_room();
        }
        let fresh = Tries {
            since: now,
            last: now,
            count: 0,
        };
        let tries = self.tries.entry(network).or_insert(fresh);
        if now.saturating_duration_since(tries.since) >= WINDOW {
            tries.since = now;
            tries.count = 0;
        }
        tries.count = tries.count.saturating_add(1);
        tries.last = now;
        tries.count
    }

    fn make_room(&mut self) {
        if self.tries.len() < MOST_ADDRESSES {
            return;
        }
        let oldest = self.tries.iter().min_by_key(|(_, tries)| tries.last);
        if let Some(network) = oldest.map(|(network, _)| *network) {
            self.tries.remove(&network);
        }
    }

    /// How many a line of the log may tell of now.
    fn take_unsaid(&mut self, now: Instant) -> Option<u64> {
        let is_due = self
            .said
            .is_none_or(|said| now.saturating_duration_since(said) >= LOG_INTERVAL);
        if !is_due || self.unsaid == 0 {
            return None;
        }
        self.said = Some(now);
        Some(std::mem::take(&mut self.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Later than any instant that is counted back to.
    fn start() -> Instant {
        Instant::now() + 10 * SECOND
    }

    #[test]
    fn a_thousand_in_a_second_are_answered() {
        let begin = start();
        let strangers = Strangers::default();
        let mut answered = 0;
        for tenth_ms in 0..40_000 {
            let now = begin + Duration::from_micros(100) * tenth_ms;
            answered += u32::from(strangers.turn(Need::Look, now) == Admission::Now);
        }
        // Four seconds, and what may come at once.
        assert!((4_240..=4_260).contains(&answered), "{answered}");
    }

    #[test]
    fn the_page_and_health_checks_wait_in_line() {
        let now = start();
        let strangers = Strangers::default();
        while strangers.turn(Need::Look, now) == Admission::Now {}
        assert_eq!(strangers.turn(Need::Full, now), Admission::Never);
        let mut waits = Vec::new();
        while let Admission::After(wait) = strangers.turn(Need::Page, now) {
            waits.push(wait);
        }
        assert!(waits.is_sorted(), "in the order in which they came");
        assert_eq!(waits.len(), 300, "one in each millisecond");
        assert_eq!(strangers.turn(Need::Health, now), Admission::Never);
        // Others have their turn when those have had theirs.
        assert_eq!(
            strangers.turn(Need::Look, now + LONGEST_WAIT),
            Admission::Never
        );
        let after = now + LONGEST_WAIT + 2 * INTERVAL;
        assert_eq!(strangers.turn(Need::Look, after), Admission::Now);
    }

    #[test]
    fn thirty_wrong_tokens_of_one_address_in_a_minute_are_too_many() {
        let begin = start();
        let strangers = Strangers::default();
        let (one, other) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        for number in 0..30 {
            assert_eq!(strangers.wait_after_wrong_tokens(one, begin), None);
            strangers.note_wrong_token(one, begin + number * SECOND);
        }
        let now = begin + 30 * SECOND;
        let wait = strangers.wait_after_wrong_tokens(one, now);
        assert_eq!(wait, Some(30 * SECOND));
        assert_eq!(strangers.wait_after_wrong_tokens(other, now), None);
        let mapped = "::ffff:10.0.0.1".parse().unwrap();
        assert_eq!(strangers.wait_after_wrong_tokens(mapped, now), wait);
        let over = begin + WINDOW;
        assert_eq!(strangers.wait_after_wrong_tokens(one, over), None);
        strangers.note_wrong_token(one, over);
        assert_eq!(strangers.wait_after_wrong_tokens(one, over), None, "anew");
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let now = start();
        let strangers = Strangers::default();
        for number in 0..30_u16 {
            let address = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, number, 0, 0, 1);
            strangers.note_wrong_token(address.into(), now);
        }
        let same = "2001:db8:0:1::7".parse().unwrap();
        assert!(strangers.wait_after_wrong_tokens(same, now).is_some());
        let next = "2001:db8:0:2::7".parse().unwrap();
        assert_eq!(strangers.wait_after_wrong_tokens(next, now), None);
    }

    #[test]
    fn addresses_are_bounded_and_the_oldest_is_forgotten() {
        let begin = start();
        let mut wrong = WrongTokens::default();
        let address = |number: usize| {
            let number = u32::try_from(number).unwrap();
            IpAddr::from(number.to_be_bytes())
        };
        for _ in 0..MOST_WRONG_TOKENS {
            wrong.add(address(0), begin);
            wrong.add(address(1), begin);
        }
        for number in 2..MOST_ADDRESSES {
            wrong.add(address(number), begin + SECOND);
        }
        wrong.add(address(1), begin + SECOND);
        wrong.add(address(MOST_ADDRESSES), begin + SECOND);
        assert_eq!(wrong.tries.len(), MOST_ADDRESSES);
        let now = begin + SECOND;
        assert_eq!(wrong.wait(address(0), now), None, "forgotten");
        assert!(wrong.wait(address(1), now).is_some(), "heard of since");
    }

    #[test]
    fn the_log_tells_of_wrong_tokens_once_a_minute() {
        let begin = start();
        let mut wrong = WrongTokens::default();
        let address = IpAddr::from([10, 0, 0, 1]);
        wrong.add(address, begin);
        assert_eq!(wrong.take_unsaid(begin), Some(1));
        for _ in 0..5 {
            wrong.add(address, begin + SECOND);
            assert_eq!(wrong.take_unsaid(begin + SECOND), None);
        }
        assert_eq!(wrong.take_unsaid(begin + LOG_INTERVAL), Some(5));
        assert_eq!(wrong.take_unsaid(begin + 3 * LOG_INTERVAL), None);
    }
}
