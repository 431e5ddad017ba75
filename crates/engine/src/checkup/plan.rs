//! From a request to the tasks of a check-up.

use std::time::{Duration, UNIX_EPOCH};

use profiler_model::{
    LoopRules, Recording, RequestOptions, RequestSpec, SampleKind, SampleSpec, Target, TaskKind,
    TaskSpec,
};

/// The kinds of a check-up's tasks, in their order. `web/src/lib/checkup.ts` has the same.
pub const KINDS: [TaskKind; 3] = [TaskKind::OnCpu, TaskKind::OffCpu, TaskKind::Requests];
/// What names of check-ups begin with.
pub(super) const PREFIX: &str = "checkup-";

/// Turns of event loops from this length on are stalls, in milliseconds: two samples at the rate where
/// none is given, and what makes the requests of all other connections late.
const STALL_MS: u32 = 20;

/// What a user asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckupRequest {
    pub target: Target,
    pub duration_s: u64,
    /// Of on-CPU samples.
    pub frequency_hz: u32,
    /// Read plaintext at the functions of TLS libraries, for the requests.
    pub tls: bool,
    /// Access logs are received: those of the target tell its requests as well.
    pub access_log: bool,
}

/// The tasks of a check-up, in the order of [`KINDS`].
pub fn specs(request: &CheckupRequest) -> [TaskSpec; 3] {
    let on_cpu = SampleSpec {
        frequency_hz: request.frequency_hz,
        event_loop: Some(LoopRules {
            threshold_ms: STALL_MS,
        }),
        ..SampleKind::OnCpu.into()
    };
    [
        Recording::Samples(on_cpu),
        Recording::Samples(SampleKind::OffCpu.into()),
        Recording::Requests(RequestSpec {
            options: RequestOptions {
                access_log: request.access_log,
                tls: request.tls,
                ..RequestOptions::default()
            },
            ..RequestSpec::default()
        }),
    ]
    .map(|recording| TaskSpec {
        target: request.target.clone(),
        duration_s: Some(request.duration_s),
        recording,
    })
}

/// A name by the time, in milliseconds since the Unix epoch: `checkup-20261122-083030-3f`.
pub(super) fn name(now_ms: u64) -> String {
    let time = UNIX_EPOCH
        .checked_add(Duration::from_millis(now_ms))
        .unwrap_or(UNIX_EPOCH);
    let text = humantime::format_rfc3339_seconds(time).to_string();
    let digits = text.replace([':', 'Z'], "").replacen('-', "", 2);
    format!(
        "{PREFIX}{}-{}",
        digits.replace('T', "-"),
        base36(now_ms % 1000)
    )
}

/// A number as JavaScript's `toString(36)` writes it.
fn base36(mut number: u64) -> String {
    let mut digits = Vec::new();
    loop {
        let digit = u32::try_from(number % 36).unwrap_or(0);
        digits.push(char::from_digit(digit, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use profiler_model::DEFAULT_FREQUENCY_HZ;

    use super::*;
    use crate::task;

    #[test]
    fn names_are_those_of_the_page() {
        assert_eq!(name(1_795_336_230_123), "checkup-20261122-083030-3f");
        assert_eq!(name(0), "checkup-19700101-000000-0");
        assert_eq!(name(999), "checkup-19700101-000000-rr");
    }

    #[test]
    fn the_tasks_of_a_check_up_hold_for_the_engine() {
        let request = CheckupRequest {
            target: Target::Comm("envoy".into()),
            duration_s: 60,
            frequency_hz: 499,
            tls: true,
            access_log: true,
        };
        let specs = specs(&request);
        assert_eq!(specs.each_ref().map(TaskSpec::kind), KINDS);
        for spec in &specs {
            task::validate(spec).unwrap();
            assert_eq!(spec.target, request.target);
            assert_eq!(spec.duration_s, Some(60));
        }
        let rates = specs
            .each_ref()
            .map(|spec| Some(spec.samples()?.frequency_hz));
        assert_eq!(rates, [Some(499), Some(DEFAULT_FREQUENCY_HZ), None]);
        let options = specs[2].requests().unwrap();
        assert!(options.tls && options.access_log && options.sockets);
    }
}
