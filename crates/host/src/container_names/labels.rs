//! Label selectors as users of kubectl write them.

use std::collections::{BTreeMap, BTreeSet};

use kube::core::{Expression, Selector, SelectorExt as _};

/// Requirements in one selector.
const MOST: usize = 64;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{requirement:?} is not a requirement on labels: write KEY, !KEY, KEY=VALUE, KEY!=VALUE, KEY in (A,B) or KEY notin (A,B)"
)]
pub struct LabelError {
    requirement: String,
}

/// Requirements that labels must all meet.
#[derive(Clone, Debug)]
pub struct LabelSelector(Selector);

impl LabelSelector {
    /// Reads `app=web,tier in (a,b),!canary`
    /// (<https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors>).
    pub fn parse(text: &str) -> Result<Self, LabelError> {
        let requirements = split(text);
        let refused = |requirement: &str| LabelError {
            requirement: requirement.trim().to_owned(),
        };
        if requirements.len() > MOST {
            return Err(refused(text));
        }
        let expressions = requirements
            .into_iter()
            .map(|requirement| expression(requirement.trim()).ok_or_else(|| refused(requirement)))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self(expressions.into_iter().collect()))
    }

    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.matches(labels)
    }
}

/// At commas that are not in parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    text.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth <= 0
    })
    .collect()
}

fn expression(text: &str) -> Option<Expression> {
    if let Some(key) = text.strip_prefix('!') {
        return Some(Expression::DoesNotExist(key_of(key)?));
    }
    if let Some((key, value)) = text.split_once("!=") {
        return Some(Expression::NotEqual(key_of(key)?, value_of(value)?));
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return Some(Expression::Equal(key_of(key)?, value_of(value)?));
    }
    let Some((key, rest)) = text.split_once(char::is_whitespace) else {
        return Some(Expression::Exists(key_of(text)?));
    };
    let (operator, values) = rest.trim().split_once('(')?;
    let values: BTreeSet<String> = values
        .strip_suffix(')')?
        .split(',')
        .map(value_of)
        .collect::<Option<_>>()?;
    match operator.trim() {
        "in" => Some(Expression::In(key_of(key)?, values)),
        "notin" => Some(Expression::NotIn(key_of(key)?, values)),
        _ => None,
    }
}

fn key_of(text: &str) -> Option<String> {
    let text = text.trim();
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    (!text.is_empty() && text.chars().all(is_part)).then(|| text.to_owned())
}

/// May be empty.
fn value_of(text: &str) -> Option<String> {
    let text = text.trim();
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    text.chars().all(is_part).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(selector: &str, labels: &[(&str, &str)]) -> bool {
        let labels = labels
            .iter()
            .map(|&(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        LabelSelector::parse(selector).unwrap().matches(&labels)
    }

    #[test]
    fn every_form_of_a_requirement_is_understood() {
        let labels = [("app", "web"), ("app.kubernetes.io/tier", "front")];
        for (selector, expected) in [
            ("app=web", true),
            ("app==web", true),
            (" app = web ", true),
            ("app!=web", false),
            ("app!=db", true),
            ("missing!=db", true),
            ("app", true),
            ("!app", false),
            ("!missing", true),
            ("app in (db, web)", true),
            ("app notin (db,web)", false),
            ("app=web,app.kubernetes.io/tier in (front),!canary", true),
            ("app=web,app.kubernetes.io/tier=back", false),
        ] {
            assert_eq!(fits(selector, &labels), expected, "{selector}");
        }
    }

    #[test]
    fn what_is_no_selector_is_refused_with_the_part_that_is_wrong() {
        for (selector, wrong) in [
            ("", ""),
            ("app=web,", ""),
            ("app=web,tier within (a)", "tier within (a)"),
            ("app in (a", "app in (a"),
            ("a b", "a b"),
            ("=web", "=web"),
            ("app=we b", "app=we b"),
            ("app=<script>", "app=<script>"),
        ] {
            let error = LabelSelector::parse(selector).unwrap_err();
            assert_eq!(error.requirement, wrong, "{selector}");
        }
        assert!(LabelSelector::parse(&"a,".repeat(100)).is_err());
    }
}
