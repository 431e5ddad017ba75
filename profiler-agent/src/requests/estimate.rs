//! Estimates for edges of which only a part was captured, by the bytes that all their connections moved.
//!
//! The kernel counts the bytes of every connection and those of them that were captured. Requests that were seen, times
//! all bytes, divided by the captured ones, is a ratio estimator (Cochran 1977, Sampling Techniques, 6.3 and 6.4): it does not
//! matter of how many connections one was captured, and one connection that was captured for a part of the time is enough.
//!
//! How far off it may be shows where requests and bytes are counted in groups: by connection where there are many, by time
//! where there are few.

use std::net::SocketAddr;

use crate::network::Traffic;

const GROUPS: usize = 32;
/// Time that goes into one group; then comes the next group. What a connection does is alike for less than that.
const SLICE_NS: u64 = 1_000_000_000;
/// With connections in fewer groups they say too little of how different the others are.
const LEAST_OF_CONNECTIONS: usize = 10;
/// The same of time.
const LEAST_OF_TIME: usize = 5;
/// One part in so many of the bytes may be of connections of which nothing was captured, where the groups are of time.
const MOST_UNSEEN: u64 = 20;

/// What was counted, in groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Groups([u64; GROUPS]);

impl Groups {
    pub(super) fn add_at(&mut self, at_ns: u64, number: u64) {
        self.add(at_ns / SLICE_NS, number);
    }

    fn add(&mut self, group: u64, number: u64) {
        let index = usize::try_from(group % GROUPS as u64).unwrap_or(0);
        if let Some(sum) = self.0.get_mut(index) {
            *sum = sum.saturating_add(number);
        }
    }

    fn merge(&mut self, other: &Self) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum = sum.saturating_add(more);
        }
    }

    fn sum(&self) -> u64 {
        self.0.iter().fold(0, |sum, one| sum.saturating_add(*one))
    }

    fn filled(&self) -> usize {
        self.0.iter().filter(|one| **one > 0).count()
    }
}

/// The same by time and by connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Grouped {
    by_time: Groups,
    by_connection: Groups,
}

impl Grouped {
    /// A request of a connection, which is known by its client.
    pub(super) fn add(&mut self, at_ns: u64, client: SocketAddr) {
        self.by_time.add_at(at_ns, 1);
        self.by_connection.add(group_of(client), 1);
    }

    /// Bytes of a connection.
    pub(super) fn add_all(&mut self, times: &Groups, client: Option<SocketAddr>) {
        self.by_time.merge(times);
        if let Some(client) = client {
            self.by_connection.add(group_of(client), times.sum());
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.by_time.merge(&other.by_time);
        self.by_connection.merge(&other.by_connection);
    }
}

/// Both ends of a connection agree on it.
fn group_of(client: SocketAddr) -> u64 {
    // Fibonacci hashing. Its bits are others than those that decide what is captured.
    u64::from(client.port()).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56
}

/// Bytes of the connections of an edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Coverage {
    moved: u64,
    captured: u64,
    /// Of connections of which nothing was captured.
    unseen: u64,
}

impl Coverage {
    pub(super) fn add(&mut self, traffic: Traffic) {
        self.moved = self.moved.saturating_add(traffic.moved);
        self.captured = self.captured.saturating_add(traffic.captured);
        if traffic.captured == 0 {
            self.unseen = self.unseen.saturating_add(traffic.moved);
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.moved = self.moved.saturating_add(other.moved);
        self.captured = self.captured.saturating_add(other.captured);
        self.unseen = self.unseen.saturating_add(other.unseen);
    }

    /// By how much more was moved than was captured; `None`: nothing was captured.
    pub(super) fn factor(&self) -> Option<f64> {
        (self.captured > 0).then(|| (float(self.moved) / float(self.captured)).max(1.0))
    }

    /// Of the number of requests of one kind; `None`: not known.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative; beyond the range it is the greatest number"
    )]
    pub(super) fn variance(&self, requests: &Grouped, bytes: &Grouped) -> Option<u64> {
        let factor = self.factor()?;
        if self.moved <= self.captured {
            return Some(0);
        }
        let (requests, bytes) = if bytes.by_connection.filled() >= LEAST_OF_CONNECTIONS {
            (requests.by_connection, bytes.by_connection)
        } else if self.unseen.saturating_mul(MOST_UNSEEN) <= self.moved
            && bytes.by_time.filled() >= LEAST_OF_TIME
        {
            (requests.by_time, bytes.by_time)
        } else {
            return None;
        };
        let ratio = float(requests.sum()) / float(bytes.sum());
        let squares = requests.0.iter().zip(bytes.0).map(|(requests, bytes)| {
            let off = float(*requests) - ratio * float(bytes);
            off * off
        });
        let groups = float(bytes.filled() as u64);
        // n / (n - 1), and (n - 1) / (n - 3) as in Student's distribution: of few groups the variance is uncertain itself.
        let of_sample = squares.sum::<f64>() * groups / (groups - 3.0);
        Some((factor * (factor - 1.0) * of_sample).ceil() as u64)
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "estimates need no more than 53 bits"
)]
fn float(number: u64) -> f64 {
    number as f64
}

/// So many times `number`, rounded.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative; beyond the range it is the greatest number"
)]
pub(super) fn times(number: u64, factor: f64) -> u64 {
    (float(number) * factor).round() as u64
}

#[cfg(test)]
#[path = "estimate_tests.rs"]
mod tests;
