//! Whether a rule's patterns hold for one function, and the name that they give to a member of a family.

use profiler_model::name_pattern::any;

use super::rules::Rule;

/// Ends of a name that say the same as the folder of the filter's source.
const FILTER_ENDS: [&str; 2] = ["_filter", "filter"];
/// Longer names of members are cut.
const MEMBER_BYTES: usize = 40;

/// Whether the rule's patterns hold for a function, and the member's name that they give.
#[expect(
    clippy::option_option,
    reason = "the rule does not hold, holds, holds with a name"
)]
pub(super) fn fit(rule: &Rule, name: &str, module: &str) -> Option<Option<String>> {
    let entry = &rule.entry;
    if !entry.module.is_empty() && !any(&entry.module, module) {
        return None;
    }
    let mut patterns = entry.frames.iter().chain(&entry.symbols).peekable();
    let explicit = || own_member(rule).map(str::to_owned);
    if patterns.peek().is_none() {
        return Some(explicit());
    }
    for pattern in patterns {
        if let Some(captured) = pattern.captured(name) {
            return Some(Some(member_name(captured)));
        }
        if pattern.matches(name) {
            return Some(explicit());
        }
    }
    None
}

/// The member of a family that the rule itself names.
pub(super) fn own_member(rule: &Rule) -> Option<&str> {
    let id = rule.entry.feature.as_ref()?.get_ref();
    let (_, member) = id.split_once(':')?;
    Some(member).filter(|member| *member != "*")
}

/// The name without what compilers put in front of a method's name.
pub(super) fn plain(name: &str) -> &str {
    const BEFORE: [&str; 3] = [
        "non-virtual thunk to ",
        "virtual thunk to ",
        "covariant return thunk to ",
    ];
    BEFORE
        .into_iter()
        .find_map(|before| name.strip_prefix(before))
        .unwrap_or(name)
}

/// `RBACFilter`, `rbac` and `rbac_filter` are one member: `rbac`.
fn member_name(captured: &str) -> String {
    let characters: Vec<char> = captured.chars().take(MEMBER_BYTES).collect();
    let mut name = String::new();
    for (place, character) in characters.iter().enumerate() {
        let before = place.checked_sub(1).map(|before| characters[before]);
        let after = characters.get(place + 1);
        let begins_word = character.is_ascii_uppercase()
            && before.is_some_and(|before| {
                before.is_ascii_lowercase()
                    || before.is_ascii_digit()
                    || (before.is_ascii_uppercase() && after.is_some_and(char::is_ascii_lowercase))
            });
        if begins_word {
            name.push('_');
        }
        name.push(character.to_ascii_lowercase());
    }
    let end = FILTER_ENDS.into_iter().find(|end| name.ends_with(end));
    let stem = end.map_or(name.len(), |end| name.len() - end.len());
    if stem > 0 {
        name.truncate(stem);
    }
    name
}
