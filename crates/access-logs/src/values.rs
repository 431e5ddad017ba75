//! Checks, cuts and counts values of messages and attributes on their way into an entry.

use std::str::FromStr;

use bytes::Bytes;

use crate::{
    encoded::Time,
    limits::{Counts, Limits},
    wire::Place,
};

/// The end of a text that was cut.
pub const CUT_MARK: &str = "…";
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Reads values within limits, and counts.
#[derive(Debug)]
pub(crate) struct Values<'a> {
    pub(crate) limits: &'a Limits,
    pub(crate) counts: Counts,
}

impl<'a> Values<'a> {
    pub(crate) fn new(limits: &'a Limits) -> Self {
        Self {
            limits,
            counts: Counts::default(),
        }
    }

    pub(crate) fn malformed(&mut self) {
        self.counts.malformed_values = self.counts.malformed_values.saturating_add(1);
    }

    /// Counts a value that is present and impossible.
    fn checked<T>(&mut self, value: Option<T>) -> Option<T> {
        if value.is_none() {
            self.malformed();
        }
        value
    }

    /// The text, cut between characters if it is too long.
    pub(crate) fn text(&mut self, text: Bytes) -> Bytes {
        let limit = self.limits.text_bytes;
        if text.len() <= limit {
            return text;
        }
        self.counts.cut_texts = self.counts.cut_texts.saturating_add(1);
        let mut end = limit.saturating_sub(CUT_MARK.len());
        let continues = |at: usize| text.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
        // A character of UTF-8 has at most three continuation bytes. With more it is not UTF-8 and can be cut anywhere.
        for _ in 0..3 {
            if end > 0 && continues(end) {
                end -= 1;
            }
        }
        let mut cut = Vec::with_capacity(end + CUT_MARK.len());
        cut.extend_from_slice(text.get(..end).unwrap_or_default());
        cut.extend_from_slice(CUT_MARK.as_bytes());
        cut.into()
    }

    /// The text at a place of a message, cut as [`Self::text`] does it.
    pub(crate) fn text_at(&mut self, message: &Bytes, place: Place) -> Bytes {
        if place.is_empty() {
            return Bytes::new();
        }
        self.text(message.slice(place.range()))
    }

    /// Nanoseconds of a duration that is not negative, or since 1970; of at most 584 years.
    pub(crate) fn nanoseconds(&mut self, time: Option<Time>) -> Option<u64> {
        let Time { seconds, nanos } = time?;
        self.checked(nanoseconds(seconds, nanos))
    }

    /// A status of HTTP; 0 means that no response was sent.
    pub(crate) fn status(&mut self, code: u32) -> Option<u16> {
        if code == 0 {
            return None;
        }
        self.checked(u16::try_from(code).ok().filter(|code| *code < 1000))
    }

    /// A number in decimal digits.
    pub(crate) fn number<T: FromStr>(&mut self, text: &[u8]) -> Option<T> {
        let text = std::str::from_utf8(text).ok();
        self.checked(text.and_then(|text| text.parse().ok()))
    }

    /// Whole milliseconds as nanoseconds.
    pub(crate) fn milliseconds(&mut self, text: &[u8]) -> Option<u64> {
        let milliseconds: u64 = self.number(text)?;
        self.checked(milliseconds.checked_mul(1_000_000))
    }

    /// `1527590590.528123456`: seconds since 1970 with nine decimal places.
    pub(crate) fn decimal_time(&mut self, text: &[u8]) -> Option<u64> {
        self.checked(decimal_time(text))
    }
}

fn nanoseconds(seconds: i64, nanos: i32) -> Option<u64> {
    let seconds = u64::try_from(seconds).ok()?;
    let nanos = u64::try_from(nanos).ok()?;
    if nanos >= NANOS_PER_SECOND {
        return None;
    }
    seconds.checked_mul(NANOS_PER_SECOND)?.checked_add(nanos)
}

fn decimal_time(text: &[u8]) -> Option<u64> {
    let (seconds, nanos) = std::str::from_utf8(text).ok()?.split_once('.')?;
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if nanos.len() != 9 || !is_number(nanos) || !is_number(seconds) {
        return None;
    }
    let seconds: u64 = seconds.parse().ok()?;
    seconds
        .checked_mul(NANOS_PER_SECOND)?
        .checked_add(nanos.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::Values;
    use crate::{encoded::Time, limits::Limits};

    fn limits(text_bytes: usize) -> Limits {
        Limits {
            text_bytes,
            ..Limits::default()
        }
    }

    #[test]
    fn text_is_cut_between_characters_and_marked() {
        let check = |text: &'static str, limit: usize, expected: &str| {
            let limits = limits(limit);
            let mut values = Values::new(&limits);
            let cut = values.text(Bytes::from_static(text.as_bytes()));
            assert_eq!(cut, expected.as_bytes(), "{text}");
            assert_eq!(values.counts.cut_texts, u64::from(text != expected));
        };
        check("", 8, "");
        check("12345678", 8, "12345678");
        check("123456789", 8, "12345…");
        check("1234€6789", 8, "1234…");
        check("€€€€", 8, "€…");
        check("abc", 2, "…");
    }

    #[test]
    fn bytes_that_are_no_text_are_cut_too() {
        let limits = limits(64);
        let mut values = Values::new(&limits);
        let cut = values.text(Bytes::from(vec![0x80; 100]));
        assert!((60..=64).contains(&cut.len()), "{}", cut.len());
    }

    #[test]
    fn durations_are_checked() {
        let check = |seconds: i64, nanos: i32, expected: Option<u64>| {
            let limits = Limits::default();
            let mut values = Values::new(&limits);
            let duration = values.nanoseconds(Some(Time { seconds, nanos }));
            assert_eq!(duration, expected);
            let malformed = u64::from(expected.is_none());
            assert_eq!(values.counts.malformed_values, malformed);
        };
        check(0, 0, Some(0));
        check(3, 5, Some(3_000_000_005));
        check(0, 999_999_999, Some(999_999_999));
        check(0, 1_000_000_000, None);
        check(-1, 0, None);
        check(0, -1, None);
        check(18_446_744_073, 709_551_615, Some(u64::MAX));
        check(18_446_744_073, 709_551_616, None);
        check(i64::MAX, 0, None);
    }

    #[test]
    fn an_absent_duration_is_absent_and_not_malformed() {
        let limits = Limits::default();
        let mut values = Values::new(&limits);
        assert_eq!(values.nanoseconds(None), None);
        assert_eq!(values.counts.malformed_values, 0);
    }

    #[test]
    fn text_of_numbers_and_times() {
        let limits = Limits::default();
        let mut values = Values::new(&limits);
        assert_eq!(values.number::<u64>(b"42"), Some(42));
        assert_eq!(values.milliseconds(b"7"), Some(7_000_000));
        let time = values.decimal_time(b"1527590590.528123456");
        assert_eq!(time, Some(1_527_590_590_528_123_456));
        assert_eq!(values.status(200), Some(200));
        assert_eq!(values.status(0), None);
        assert_eq!(values.counts.malformed_values, 0);
        let wrong: [(&[u8], bool); 6] = [
            (b"-1", true),
            (b"1.5", false),
            (b"1.+23456789", false),
            (b".123456789", false),
            (b"99999999999999999999.123456789", false),
            (b"\xff", true),
        ];
        for (text, is_number) in wrong {
            let found = if is_number {
                values.number::<u64>(text)
            } else {
                values.decimal_time(text)
            };
            assert_eq!(found, None, "{text:?}");
        }
        assert_eq!(values.milliseconds(b"18446744073709551615"), None);
        assert_eq!(values.status(1000), None);
        assert_eq!(values.counts.malformed_values, 8);
    }
}
