//! Percentiles of values that are kept in buckets: the bucket is known, the value inside it is not.

use profiler_common::network::BOUNDS_US;

use super::Values;

/// Where a value lies, in microseconds: above `above_us` and not above `up_to_us`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Between {
    /// `None`: below the first bound.
    pub above_us: Option<u64>,
    /// `None`: above the last bound.
    pub up_to_us: Option<u64>,
}

impl Values {
    /// The bucket that holds the value which `thousandths` of all values do not exceed; `None` without
    /// values.
    pub fn percentile(&self, thousandths: u64) -> Option<Between> {
        let all: u128 = self.counts.iter().map(|count| u128::from(*count)).sum();
        if all == 0 {
            return None;
        }
        let rank = (all * u128::from(thousandths)).div_ceil(1000).max(1);
        let mut seen = 0;
        let found = self.counts.iter().position(|count| {
            seen += u128::from(*count);
            seen >= rank
        })?;
        let bound = |index: usize| BOUNDS_US.get(index).map(|bound| u64::from(*bound));
        Some(Between {
            above_us: found.checked_sub(1).and_then(bound),
            up_to_us: bound(found),
        })
    }
}

impl std::fmt::Display for Between {
    /// Both bounds in the unit of the larger one: `1-1.2 ms`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.above_us, self.up_to_us) {
            (Some(above), Some(up_to)) => {
                let (unit_us, unit) = unit(up_to);
                write!(
                    f,
                    "{}-{} {unit}",
                    Scaled(above, unit_us),
                    Scaled(up_to, unit_us)
                )
            }
            // Whole microseconds are counted: none of them is less than one.
            (None, _) => f.write_str("<1 us"),
            (Some(above), None) => {
                let (unit_us, unit) = unit(above);
                write!(f, ">{} {unit}", Scaled(above, unit_us))
            }
        }
    }
}

/// A time that is known exactly, in the unit of its size: `1.234 ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Microseconds(pub u64);

impl std::fmt::Display for Microseconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (unit_us, unit) = unit(self.0);
        write!(f, "{} {unit}", Scaled(self.0, unit_us))
    }
}

fn unit(value_us: u64) -> (u64, &'static str) {
    match value_us {
        0..1_000 => (1, "us"),
        1_000..1_000_000 => (1_000, "ms"),
        1_000_000.. => (1_000_000, "s"),
    }
}

/// A value in another unit, without digits that say nothing.
struct Scaled(u64, u64);

impl std::fmt::Display for Scaled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(value, unit) = *self;
        write!(f, "{}", value / unit)?;
        let rest = value % unit;
        if rest == 0 {
            return Ok(());
        }
        let width = unit.ilog10() as usize;
        let digits = format!("{rest:0width$}");
        write!(f, ".{}", digits.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(buckets: &[(usize, u64)]) -> Values {
        let mut values = Values::default();
        for (bucket, count) in buckets {
            for _ in 0..*count {
                values.add(*bucket, 1);
            }
        }
        values
    }

    fn check(buckets: &[(usize, u64)], thousandths: u64, expected: &str) {
        let found = values(buckets).percentile(thousandths).unwrap();
        assert_eq!(found.to_string(), expected, "{buckets:?}");
    }

    #[test]
    fn a_percentile_is_told_as_its_bucket() {
        check(&[(6, 1)], 500, "1-1.2 ms");
        check(&[(0, 1)], 990, "<1 us");
        check(&[(1, 99), (5, 1)], 990, "0-10 us");
        check(&[(1, 99), (5, 2)], 990, "0.5-1 ms");
        check(&[(29, 1)], 500, "300-500 ms");
        check(&[(30, 1)], 500, "0.5-1 s");
        check(&[(34, 1)], 500, ">5 s");
    }

    #[test]
    fn the_median_of_two_is_the_first() {
        check(&[(2, 1), (9, 1)], 500, "10-50 us");
        check(&[(2, 1), (9, 1)], 1000, "1.7-2 ms");
        check(&[(2, 1), (9, 1)], 0, "10-50 us");
    }

    #[test]
    fn an_exact_time_has_the_unit_of_its_size() {
        for (us, expected) in [(6, "6 us"), (1_234, "1.234 ms"), (2_500_000, "2.5 s")] {
            assert_eq!(Microseconds(us).to_string(), expected);
        }
    }

    #[test]
    fn nothing_has_no_percentile() {
        assert_eq!(Values::default().percentile(500), None);
    }
}
