//! Times and counts for people.

/// Nanoseconds with three digits and a unit, rounded as the page does: both show the same numbers.
pub fn short_time(ns: u64) -> String {
    let (unit_ns, digits, _) = shown(ns);
    let step = unit_ns / 10_u64.pow(digits);
    let rounded = ns.saturating_add(step / 2) / step * step;
    // 999.6 us are 1.00 ms.
    let (unit_ns, digits, unit) = shown(rounded);
    let whole = rounded / unit_ns;
    if digits == 0 {
        return format!("{whole} {unit}");
    }
    let rest = rounded % unit_ns / (unit_ns / 10_u64.pow(digits));
    let width = usize::try_from(digits).unwrap_or(0);
    format!("{whole}.{rest:0width$} {unit}")
}

/// How so much time is shown: in which unit, and with how many digits behind the point.
fn shown(ns: u64) -> (u64, u32, &'static str) {
    let (unit_ns, unit) = match ns {
        0..1_000 => return (1, 0, "ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        1_000_000_000.. => (1_000_000_000, "s"),
    };
    let digits = match ns / unit_ns {
        0..10 => 2,
        10..100 => 1,
        100.. => 0,
    };
    (unit_ns, digits, unit)
}

/// `1,234,567`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
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
            (9_994, "9.99 us"),
            (9_995, "10.0 us"),
            (999_499, "999 us"),
            (999_999, "1.00 ms"),
            (104_857_599, "105 ms"),
            (100_499_999, "100 ms"),
            (u64::MAX, "18446744073 s"),
            (1_000_000, "1.00 ms"),
            (61_000_000_000, "61.0 s"),
        ] {
            assert_eq!(short_time(ns), expected);
        }
    }

    #[test]
    fn thousands_are_apart() {
        for (number, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (12_345_678, "12,345,678"),
        ] {
            assert_eq!(thousands(number), expected);
        }
    }
}
