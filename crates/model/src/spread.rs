//! Values of any size in buckets whose width is a small part of the value.

use serde::{Deserialize, Serialize};

/// Buckets for each doubling: a bucket is at most 1/16 (6.25 %) as wide as the values in it.
const STEPS: u64 = 16;
/// `STEPS` is two to the power of this.
const STEP_BITS: u32 = 4;

/// How often values were seen, with their sum. Values below 32 have a bucket each; above, every
/// doubling has 16 buckets of the same width, so there are never more than 976.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    pub count: u64,
    /// In the unit of the values.
    pub sum: u64,
    pub least: Option<u64>,
    pub greatest: Option<u64>,
    /// Number of the bucket with how many values it has, in the order of the buckets; none is empty.
    buckets: Vec<(u16, u64)>,
}

/// Where a value lies: not below `from`, not above `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub from: u64,
    pub to: u64,
}

impl Spread {
    pub fn add(&mut self, value: u64) {
        self.add_times(value, 1);
    }

    /// Adds a value that was seen `times` times.
    pub fn add_times(&mut self, value: u64, times: u64) {
        if times == 0 {
            return;
        }
        self.count = self.count.saturating_add(times);
        self.sum = self.sum.saturating_add(value.saturating_mul(times));
        self.least = Some(self.least.map_or(value, |least| least.min(value)));
        self.greatest = self.greatest.max(Some(value));
        self.put(bucket_of(value), times);
    }

    /// Of values that were counted elsewhere by buckets at least as narrow: `values` has one value of each bucket with how many
    /// there are.
    pub fn of_buckets(
        sum: u64,
        least: u64,
        greatest: u64,
        values: impl Iterator<Item = (u64, u64)>,
    ) -> Self {
        let mut spread = Self::default();
        for (value, times) in values {
            spread.add_times(value, times);
        }
        if spread.count > 0 {
            spread.sum = sum;
            spread.least = Some(least);
            spread.greatest = Some(greatest);
        }
        spread
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Self) {
        let Self {
            count,
            sum,
            least,
            greatest,
            buckets,
        } = other;
        self.count = self.count.saturating_add(*count);
        self.sum = self.sum.saturating_add(*sum);
        self.least = [self.least, *least].into_iter().flatten().min();
        self.greatest = self.greatest.max(*greatest);
        for (bucket, times) in buckets {
            self.put(*bucket, *times);
        }
    }

    fn put(&mut self, bucket: u16, times: u64) {
        match self.place_of(bucket) {
            Ok(found) => {
                if let Some((_, count)) = self.buckets.get_mut(found) {
                    *count = count.saturating_add(times);
                }
            }
            Err(place) => self.buckets.insert(place, (bucket, times)),
        }
    }

    /// Where a bucket is, or belongs. Where all buckets between the first one and this one have values, as they mostly do once there
    /// are many, it is as far behind the first one as its number says.
    fn place_of(&self, bucket: u16) -> Result<usize, usize> {
        let first = self.buckets.first().map_or(bucket, |(first, _)| *first);
        let furthest = usize::from(bucket.saturating_sub(first));
        if let Some((at, _)) = self.buckets.get(furthest)
            && *at == bucket
        {
            return Ok(furthest);
        }
        self.buckets.binary_search_by_key(&bucket, |(at, _)| *at)
    }

    /// The arithmetic mean, rounded down; `None` without values.
    pub fn mean(&self) -> Option<u64> {
        self.sum.checked_div(self.count)
    }

    /// Where the value lies which `thousandths` of all values do not exceed; `None` without values.
    pub fn percentile(&self, thousandths: u64) -> Option<Bounds> {
        let all: u128 = self
            .buckets
            .iter()
            .map(|(_, times)| u128::from(*times))
            .sum();
        if all == 0 {
            return None;
        }
        let rank = (all * u128::from(thousandths)).div_ceil(1000).max(1);
        let mut seen = 0;
        let (bucket, _) = self.buckets.iter().find(|(_, times)| {
            seen += u128::from(*times);
            seen >= rank
        })?;
        let Bounds { from, to } = bounds_of(*bucket);
        // No value of the bucket is beyond the ends of all values.
        Some(Bounds {
            from: self.least.map_or(from, |least| from.max(least)),
            to: self.greatest.map_or(to, |greatest| to.min(greatest)),
        })
    }

    /// The buckets that have values, in order, with how many each has.
    pub fn buckets(&self) -> impl Iterator<Item = (Bounds, u64)> + '_ {
        self.buckets
            .iter()
            .map(|(bucket, times)| (bounds_of(*bucket), *times))
    }
}

fn bucket_of(value: u64) -> u16 {
    let Some(doublings) = value
        .checked_ilog2()
        .and_then(|log| log.checked_sub(STEP_BITS))
    else {
        // Below 16 the value is the bucket.
        return u16::try_from(value).unwrap_or(u16::MAX);
    };
    // From 16 to 31 for every value of at least 16.
    let step = value >> doublings;
    u16::try_from(u64::from(doublings) * STEPS + step).unwrap_or(u16::MAX)
}

fn bounds_of(bucket: u16) -> Bounds {
    let bucket = u64::from(bucket);
    if bucket < 2 * STEPS {
        return Bounds {
            from: bucket,
            to: bucket,
        };
    }
    let doublings = bucket / STEPS - 1;
    let step = bucket % STEPS + STEPS;
    // A damaged result may have buckets that no value falls into.
    let shift = u32::try_from(doublings).unwrap_or(u32::MAX);
    let from = step.checked_shl(shift).unwrap_or(u64::MAX);
    let width = 1_u64.checked_shl(shift).unwrap_or(u64::MAX);
    Bounds {
        from,
        to: from.saturating_add(width - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_lies_within_the_bounds_of_its_bucket() {
        let mut value = 1_u64;
        let mut values = vec![0, 15, 16, 17, 31, 32, 33, u64::MAX];
        while let Some(next) = value.checked_mul(7) {
            values.extend([value, value + 1, next - 1]);
            value = next;
        }
        for value in values {
            let Bounds { from, to } = bounds_of(bucket_of(value));
            assert!((from..=to).contains(&value), "{value} in {from}..={to}");
            assert!(
                to - from <= value / STEPS,
                "{value}: {from} to {to} is too wide"
            );
        }
    }

    #[test]
    fn buckets_follow_one_another_without_a_gap() {
        let last = bucket_of(u64::MAX);
        assert_eq!(last, 975);
        for bucket in 0..last {
            assert_eq!(
                bounds_of(bucket).to + 1,
                bounds_of(bucket + 1).from,
                "{bucket}"
            );
        }
        assert_eq!(bounds_of(last).to, u64::MAX);
    }

    #[test]
    fn a_bucket_that_no_value_has_does_no_harm() {
        let bounds = bounds_of(u16::MAX);
        assert!(bounds.from <= bounds.to);
    }

    #[test]
    fn percentiles_are_told_as_bounds() {
        let mut spread = Spread::default();
        for value in 1..=1000 {
            spread.add(value * 1000);
        }
        for (thousandths, exact) in [
            (500, 500_000),
            (900, 900_000),
            (990, 990_000),
            (1000, 1_000_000),
        ] {
            let Bounds { from, to } = spread.percentile(thousandths).unwrap();
            assert!(
                (from..=to).contains(&exact),
                "{thousandths}: {from} to {to}"
            );
        }
        assert_eq!(
            spread.percentile(0).unwrap(),
            Bounds {
                from: 1000,
                to: 1023
            }
        );
        assert_eq!(spread.mean(), Some(500_500));
        assert_eq!(Spread::default().percentile(500), None);
        assert_eq!(Spread::default().mean(), None);
    }

    #[test]
    fn one_value_is_told_exactly() {
        let mut spread = Spread::default();
        spread.add(123_456_789);
        let exact = Bounds {
            from: 123_456_789,
            to: 123_456_789,
        };
        assert_eq!(spread.percentile(500), Some(exact));
    }

    #[test]
    fn merging_is_adding_all_values() {
        let (mut all, mut even, mut odd) =
            (Spread::default(), Spread::default(), Spread::default());
        for value in 0..500_u64 {
            let value = value * value;
            all.add(value);
            let half = if value % 2 == 0 { &mut even } else { &mut odd };
            half.add(value);
        }
        even.merge(&odd);
        assert_eq!(even, all);
        even.merge(&Spread::default());
        assert_eq!(even, all);
    }
}
