//! Times for people.

/// Nanoseconds with three digits and a unit.
pub fn short_time(ns: u64) -> String {
    let (unit_ns, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        1_000_000_000.. => (1_000_000_000, "s"),
    };
    let whole = ns / unit_ns;
    let digits = match whole {
        0..10 => 2,
        10..100 => 1,
        100.. => 0,
    };
    if digits == 0 {
        return format!("{whole} {unit}");
    }
    let scale = 10_u64.pow(digits);
    let rest = ns % unit_ns * scale / unit_ns;
    let width = usize::try_from(digits).unwrap_or(0);
    format!("{whole}.{rest:0width$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        for (ns, expected) in [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_050, "1.05 us"),
            (12_345, "12.3 us"),
            (999_999, "999 us"),
            (1_000_000, "1.00 ms"),
            (61_000_000_000, "61.0 s"),
        ] {
            assert_eq!(short_time(ns), expected);
        }
    }
}
