//! How much of a profile is idle, and by which rules. Which waits are is decided in `idle`.

use std::fmt::Write as _;

use crate::percent;

/// Rules that a line of text names.
const NAMED_RULES: usize = 3;

/// Which samples are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdleMode {
    #[default]
    Show,
    Hide,
    Only,
}

impl IdleMode {
    pub const ALL: [Self; 3] = [Self::Show, Self::Hide, Self::Only];

    pub fn name(self) -> &'static str {
        match self {
            Self::Show => "show",
            Self::Hide => "hide",
            Self::Only => "only",
        }
    }
}

/// What one rule holds for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleShare {
    pub name: String,
    pub count: u64,
    pub ns: u64,
}

/// Idle waits as a part of everything in a profile, shown or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdleShare {
    pub mode: IdleMode,
    pub count: u64,
    pub ns: u64,
    pub total_count: u64,
    pub total_ns: u64,
    /// Rules that hold for something, most time first.
    pub rules: Vec<RuleShare>,
}

impl IdleShare {
    /// Share of the time in percent.
    pub fn percent(&self) -> f64 {
        percent(self.ns, self.total_ns)
    }

    /// One line for people: the share, and which rules made it.
    pub fn line(&self) -> String {
        let mode = match self.mode {
            IdleMode::Show => "",
            IdleMode::Hide => " hidden",
            IdleMode::Only => " shown alone",
        };
        let mut text = format!(
            "idle{mode}: {:.1} % of the time, {} of {} switches",
            self.percent(),
            self.count,
            self.total_count
        );
        let named: Vec<String> = self
            .rules
            .iter()
            .take(NAMED_RULES)
            .map(|rule| format!("{} {:.1} %", rule.name, percent(rule.ns, self.total_ns)))
            .collect();
        if !named.is_empty() {
            let more = self.rules.len().saturating_sub(NAMED_RULES);
            let more = match more {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            // Writing to a String cannot fail.
            let _infallible = write!(text, " ({}{more})", named.join(", "));
        }
        text
    }
}
