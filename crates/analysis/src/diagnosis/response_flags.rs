//! Response flags: what went wrong with requests, as Envoys say in their access logs.

use std::cmp::Reverse;

use profiler_access_logs::flags::{FLAGS, Flag};
use profiler_model::{LoggingEnvoy, diagnosis::Estimate, printable::printable_within, thousands};

use super::{input::DiagnosisInput, interval::proportion};
use crate::{latency::NAME_COLUMNS, logged_requests::places_text};

/// Fewer requests with a flag, or a smaller share of an Envoy's, are no finding.
const FEWEST: u64 = 5;
const LEAST_PERCENT: u128 = 1;
/// Flags of requests that nothing went wrong with.
const NO_TROUBLE: [&str; 1] = ["RFCF"];
/// Flags of what is configured to happen: worth knowing, no fault.
const ON_PURPOSE: [&str; 6] = ["DI", "FI", "RL", "UAEX", "DO", "UDO"];
/// Further Envoys that are named.
const OTHERS: usize = 3;

/// A flag that is a finding.
pub(super) struct FlaggedRequests {
    /// End of the finding's id: `uf`.
    pub(super) id: String,
    /// `UF (UpstreamConnectionFailure)`.
    pub(super) name: String,
    /// Of the Envoy of which the greatest share has it.
    pub(super) estimate: Estimate,
    /// How many, of which Envoy, what that means and what usually causes it.
    pub(super) reason: String,
    pub(super) is_on_purpose: bool,
}

/// The requests of one Envoy that have a flag.
struct OfEnvoy<'a> {
    envoy: &'a LoggingEnvoy,
    count: u64,
    /// Requests and connections, with the flag or without.
    all: u64,
}

impl OfEnvoy<'_> {
    fn estimate(&self) -> Estimate {
        proportion(self.count, self.all)
    }

    /// `envoy (7)`.
    fn name(&self) -> String {
        let process = &self.envoy.process;
        let name = printable_within(&process.name(), NAME_COLUMNS);
        match process.pid {
            Some(pid) => format!("{name} ({pid})"),
            None => name,
        }
    }
}

/// Flags that enough requests of a diagnosed Envoy have, in the order of [`FLAGS`]. Envoys that are only what they call
/// themselves are left out.
pub(super) fn flagged(input: &DiagnosisInput<'_>) -> Vec<FlaggedRequests> {
    let logged = input.requests.and_then(|table| table.logged.as_ref());
    let diagnosed = input.answering();
    let envoys: Vec<&LoggingEnvoy> = logged
        .into_iter()
        .flat_map(|logged| &logged.envoys)
        .filter(|envoy| {
            let pid = envoy.process.pid;
            pid.is_some_and(|pid| diagnosed.contains(&pid))
        })
        .collect();
    FLAGS
        .iter()
        .filter(|flag| !NO_TROUBLE.contains(&flag.short_name))
        .filter_map(|flag| of_flag(flag, &envoys))
        .collect()
}

fn of_flag(flag: &Flag, envoys: &[&LoggingEnvoy]) -> Option<FlaggedRequests> {
    let mut found: Vec<OfEnvoy<'_>> = envoys
        .iter()
        .filter_map(|envoy| of_envoy(flag, envoy))
        .collect();
    // By the share, in millionths.
    found.sort_by_key(|one| Reverse(u128::from(one.count) * 1_000_000 / u128::from(one.all)));
    let (worst, others) = found.split_first()?;
    Some(FlaggedRequests {
        id: flag.short_name.to_lowercase(),
        name: format!("{} ({})", flag.short_name, flag.long_name),
        estimate: worst.estimate(),
        reason: reason(flag, worst, others),
        is_on_purpose: ON_PURPOSE.contains(&flag.short_name),
    })
}

/// `None` where too few have it.
fn of_envoy<'a>(flag: &Flag, envoy: &'a LoggingEnvoy) -> Option<OfEnvoy<'a>> {
    let count = *envoy.flags.get(flag.short_name)?;
    let all = envoy.requests.saturating_add(envoy.connections).max(count);
    let is_enough = u128::from(count) * 100 >= u128::from(all) * LEAST_PERCENT;
    (count >= FEWEST && is_enough).then_some(OfEnvoy { envoy, count, all })
}

fn reason(flag: &Flag, worst: &OfEnvoy<'_>, others: &[OfEnvoy<'_>]) -> String {
    let what = match worst.envoy.connections {
        0 => "requests",
        _ => "requests and connections",
    };
    let places = places_text(worst.envoy, flag.short_name)
        .map_or_else(String::new, |places| format!(": {places}"));
    let mut reason = format!(
        "{} of {} {what} of {} have it{places}. {} Usual cause: {}.",
        thousands(worst.count),
        thousands(worst.all),
        worst.name(),
        flag.meaning,
        flag.cause
    );
    let mut names: Vec<String> = others
        .iter()
        .take(OTHERS)
        .map(|one| format!("{} {:.1} %", one.name(), one.estimate().value))
        .collect();
    let rest = others.len().saturating_sub(OTHERS);
    if rest > 0 {
        names.push(format!("{rest} more"));
    }
    if !names.is_empty() {
        reason.push_str(" Also: ");
        reason.push_str(&names.join(", "));
        reason.push('.');
    }
    reason
}
