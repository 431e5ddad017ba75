//! Which waits are idling: a thread that has nothing to do, as opposed to one that is held up.
//!
//! Rules are data (`rules/idle.toml`, or the user's file). They are applied when a result is read, to
//! names, so that results of any age profit from better rules; nothing is ever thrown away.

mod rules;
mod classify;
mod apply;

#[cfg(test)]
mod fixtures_tests;
#[cfg(test)]
mod tests;

pub use rules::{IdleRules, IdleRulesError};
