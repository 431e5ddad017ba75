//! Patterns of names in files of rules: `*` stands for any text, everything else for itself.

use serde::Deserialize;

/// Longer ones are a mistake.
const MAX_BYTES: usize = 256;

/// A pattern that does not match everything.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Pattern(String);

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.is_empty() {
            return Err("a pattern is empty".to_owned());
        }
        if text.bytes().all(|byte| byte == b'*') {
            return Err(format!(
                "the pattern {text:?} matches everything: leave the condition out"
            ));
        }
        if text.len() > MAX_BYTES {
            return Err(format!("a pattern is longer than {MAX_BYTES} bytes"));
        }
        Ok(Self(text))
    }
}

impl Pattern {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What `{name}` stands for in `text`, if all of it fits: letters, digits and `_`, as many as
    /// there are. Before `{name}` there is no `*`.
    pub fn captured<'a>(&self, text: &'a str) -> Option<&'a str> {
        let (before, after) = self.0.split_once("{name}")?;
        let rest = text.strip_prefix(before)?;
        let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
        let end = rest.find(|character| !is_part(character));
        let (name, rest) = rest.split_at(end.unwrap_or(rest.len()));
        let fits = match after {
            "" => rest.is_empty(),
            after => fits(after, rest),
        };
        (fits && !name.is_empty()).then_some(name)
    }

    /// Whether the whole of `text` fits. Takes time in proportion to the length of `text`, for each
    /// `*` at most once.
    pub fn matches(&self, text: &str) -> bool {
        fits(&self.0, text)
    }
}

fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    let mut rest = rest;
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else {
            return false;
        };
        rest = after;
    }
    rest.ends_with(last)
}

/// Whether one of `patterns` matches.
pub fn any(patterns: &[Pattern], text: &str) -> bool {
    patterns.iter().any(|pattern| pattern.matches(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, matching: &[&str], other: &[&str]) {
        let parsed = Pattern::try_from(pattern.to_owned()).unwrap();
        for text in matching {
            assert!(parsed.matches(text), "{pattern} should match {text}");
        }
        for text in other {
            assert!(!parsed.matches(text), "{pattern} should not match {text}");
        }
    }

    #[test]
    fn stars_stand_for_any_text() {
        check("poll", &["poll"], &["ppoll", "poll_", ""]);
        check(
            "wrk:*",
            &["wrk:", "wrk:worker_0"],
            &["awrk:worker_0", "wrk"],
        );
        check("*park", &["park", "do_park"], &["parked"]);
        check(
            "a*b*c",
            &["abc", "a-b-c", "abbc", "abcbc"],
            &["acb", "ab", "ac", "xabc"],
        );
        check("a*a", &["aa", "aba"], &["a"]);
        check("*::recv<*", &["std::recv<u8>", "::recv<"], &["std::recv"]);
        check("ä*ö", &["äö", "ä-ö"], &["ä", "ö"]);
    }

    #[test]
    fn a_name_is_taken_out_of_the_text() {
        let pattern = Pattern::try_from("A::B::{name}::*".to_owned()).unwrap();
        assert_eq!(pattern.captured("A::B::C1_d::e(int)"), Some("C1_d"));
        for other in ["A::B::::e", "A::B::C", "A::C::D::e", "A::B::C<x>::e"] {
            assert_eq!(pattern.captured(other), None, "{other}");
        }
        let at_the_end = Pattern::try_from("dir/{name}".to_owned()).unwrap();
        assert_eq!(at_the_end.captured("dir/x"), Some("x"));
        assert_eq!(at_the_end.captured("dir/x/y"), None);
    }

    #[test]
    fn patterns_that_say_nothing_are_refused() {
        for text in ["", "*", "***", &"x".repeat(257)] {
            Pattern::try_from(text.to_owned()).unwrap_err();
        }
    }
}
