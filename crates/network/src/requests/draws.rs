//! How far an estimate from sampled connections may be off.
//!
//! What decides that something is captured is a draw, and has the same chance 1/n for all: `y` requests of a captured one stand for
//! `n * y` (Horvitz and Thompson 1952), and bring `n * (n - 1) * y^2` to the variance of the sum. Draws are put into groups at
//! random, and the variance is that between the groups (Wolter 2007, Introduction to Variance Estimation, 2.4), so that
//! no draw has to be remembered. Where one draw has requests at several n, the variance comes out too high, never too low.

use profiler_model::float;

use super::observed_request::ObservedRequest;

const GROUPS: usize = 64;
/// With fewer groups that have a draw the interval would promise too much.
const LEAST_GROUPS: u32 = 10;
/// The same where all were turns: every connection has had some.
const LEAST_GROUPS_OF_TURNS: u32 = 4;
/// Draws that are added at the highest n, where few or none were captured then: a Poisson number of which none was seen is
/// below 3.7 with a chance of 97.5 % (Garwood 1936), which is 1.96 times the root of this.
const UNSEEN: f64 = 3.6;

#[derive(Clone, Debug)]
pub(super) struct Draws {
    /// Of each group the sum of `sqrt(n * (n - 1))` for each request.
    groups: [f64; GROUPS],
    /// Requests where n was above 1, and by bits the groups with a draw then.
    requests: u64,
    drawn: u64,
    /// All of them were turns.
    are_turns: bool,
    /// The highest n, and the groups with a draw then.
    highest: u32,
    at_highest: u64,
}

impl Default for Draws {
    fn default() -> Self {
        Self {
            groups: [0.0; GROUPS],
            requests: 0,
            drawn: 0,
            are_turns: true,
            highest: 1,
            at_highest: 0,
        }
    }
}

impl Draws {
    /// A request that was seen while not all connections were captured.
    pub(super) fn add(&mut self, seen: &ObservedRequest) {
        let group = group(seen);
        let one_of = seen.drawn.one_of();
        if let Some(sum) = self.groups.get_mut(group) {
            *sum += pairs(one_of).sqrt();
        }
        self.requests += 1;
        self.drawn |= 1 << group;
        self.are_turns &= seen.drawn.round() != 0;
        self.note(one_of, 1 << group);
    }

    fn note(&mut self, one_of: u32, groups: u64) {
        if one_of > self.highest {
            (self.highest, self.at_highest) = (one_of, 0);
        }
        if one_of == self.highest {
            self.at_highest |= groups;
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (sum, more) in self.groups.iter_mut().zip(&other.groups) {
            *sum += more;
        }
        self.requests += other.requests;
        self.drawn |= other.drawn;
        self.are_turns &= other.are_turns;
        self.note(other.highest, other.at_highest);
    }

    /// Of the sum that all requests stand for; the highest n was `fewest`. `None`: not known, as there are too few draws.
    pub(super) fn variance(&self, fewest: u32) -> Option<u64> {
        let fewest = fewest.max(self.highest);
        if fewest <= 1 {
            return Some(0);
        }
        let drawn = self.drawn.count_ones();
        let least = if self.are_turns {
            LEAST_GROUPS_OF_TURNS
        } else {
            LEAST_GROUPS
        };
        if drawn < least {
            return None;
        }
        let at_fewest = if self.highest == fewest {
            self.at_highest.count_ones()
        } else {
            0
        };
        let unseen = if at_fewest < LEAST_GROUPS {
            UNSEEN * pairs(fewest) * self.requests_of_one().powi(2)
        } else {
            0.0
        };
        let between = between(self.groups.iter().copied());
        Some(rounded((between + unseen) * spread(drawn)))
    }

    /// Of a part of `whole` requests, which are known: `all` has the draws of the whole, which stand for `estimated`
    /// requests, and those of the part for `part`. `None`: as above.
    ///
    /// The part is `whole * part / estimated`, a ratio estimator, whose residuals vary as what the draws have of the part beyond
    /// their share of all (Cochran 1977, Sampling Techniques, 6.4). Of what no draw has seen nothing shows there, which is
    /// added as above.
    pub(super) fn variance_of_part(
        &self,
        part: u64,
        all: &Self,
        estimated: u64,
        whole: u64,
    ) -> Option<u64> {
        all.variance(1)?;
        if estimated == 0 || all.drawn == 0 {
            return None;
        }
        let share = float(part) / float(estimated);
        let residuals = self.groups.iter().zip(&all.groups);
        let residuals = residuals.map(|(part, all)| part - share * all);
        let factor = float(whole) / float(estimated);
        let unseen = UNSEEN * (float(whole) / all.number()).powi(2);
        let variance = between(residuals) * factor.powi(2) * spread(all.drawn.count_ones());
        Some(rounded(variance + unseen))
    }

    /// Requests of one draw, on average.
    fn requests_of_one(&self) -> f64 {
        float(self.requests) / self.number()
    }

    /// Draws, counted by the groups without one (Whang, Vander-Zanden and Taylor 1990, A Linear-Time Probabilistic Counting
    /// Algorithm), the last of which is never taken for filled.
    fn number(&self) -> f64 {
        let groups = float(GROUPS as u64);
        let empty = f64::from(self.drawn.count_zeros().max(1));
        groups * (groups / empty).ln()
    }
}

fn between(sums: impl Iterator<Item = f64> + Clone) -> f64 {
    let groups = float(GROUPS as u64);
    let mean = sums.clone().sum::<f64>() / groups;
    let squares = sums.map(|sum| (sum - mean).powi(2));
    squares.sum::<f64>() * groups / (groups - 1.0)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative; beyond the range it is the greatest number"
)]
fn rounded(variance: f64) -> u64 {
    variance.round() as u64
}

/// How much wider than the normal distribution Student's is, as a ratio of variances, for the mean of N values.
fn spread(draws: u32) -> f64 {
    let freedom = f64::from(draws.saturating_sub(1));
    freedom / (freedom - 2.0)
}

fn pairs(one_of: u32) -> f64 {
    let n = f64::from(one_of);
    n * (n - 1.0)
}

/// The group of what decided that a request was captured: the client's port, as all connections with the same one are captured
/// or none is, however often it is used again; the cookie of Unix sockets, which have no ports; and the round, where
/// connections take turns.
fn group(seen: &ObservedRequest) -> usize {
    let key = match seen.client.port() {
        0 => seen.cookie,
        port => u64::from(port),
    };
    let hash = mix(key ^ mix(u64::from(seen.drawn.round())));
    usize::try_from(hash % GROUPS as u64).unwrap_or(0)
}

/// `SplitMix64` (Steele, Lea and Flood 2014, Fast Splittable Pseudorandom Number Generators).
fn mix(number: u64) -> u64 {
    let hash = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
