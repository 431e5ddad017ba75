//! What is wrong with a task is said in the words of the API; here in those of the command line.

use anyhow::anyhow;
use profiler_model::TaskSpec;

use super::CliError;
use profiler_engine::task;

/// Names of the API and how they are given here.
const FLAGS: [(&str, &str); 23] = [
    ("bodies", "--bodies"),
    ("capture_bytes", "--capture-bytes"),
    ("cpu_percent", "--cpu-percent"),
    ("duration_s", "--duration in seconds"),
    (
        "event_loop.threshold_ms",
        "--event-loop-stalls in milliseconds",
    ),
    ("frequency_hz", "--frequency"),
    ("max_wait_ns", "--max-wait"),
    ("min_wait_ns", "--min-wait"),
    ("off_cpu", "off-cpu"),
    ("off_cpu_mode", "--off-cpu-mode"),
    ("on_cpu", "on-cpu"),
    ("source", "--source"),
    ("target.cgroup", "--cgroup"),
    ("target.comm", "--comm"),
    ("target.container", "--container"),
    ("target.network_namespace", "--netns"),
    ("target.pids", "--pid"),
    ("target.pod.container", "--container"),
    ("target.pod.labels", "--labels"),
    ("target.pod.name", "--pod"),
    ("target.pod.namespace", "the namespace of --pod"),
    ("tls", "--tls"),
    ("tls_duty_percent", "--tls-duty"),
];

/// Checks what can be checked without looking at the machine, as the API does. Errors have the names of flags.
pub(super) fn check(spec: &TaskSpec) -> Result<(), CliError> {
    task::validate_with(spec, flag_of).map_err(|error| CliError::Config(anyhow!(error)))
}

/// How a field or a kind is given here.
fn flag_of(name: &'static str) -> &'static str {
    let flag = FLAGS.iter().find(|(of_api, _)| *of_api == name);
    flag.map_or(name, |(_, flag)| flag)
}

#[cfg(test)]
mod tests {
    use profiler_model::{PodSelector, Recording, SampleKind, SampleSpec, Target, WaitRules};

    use super::*;

    #[test]
    fn errors_have_the_names_of_flags() {
        let of = |samples: SampleSpec| TaskSpec {
            target: Target::Pids(vec![1]),
            duration_s: Some(1),
            recording: Recording::Samples(samples),
        };
        let refused = |spec: TaskSpec| match check(&spec) {
            Err(error) => error.to_string(),
            Ok(()) => panic!("accepted"),
        };
        let waits = WaitRules {
            max_ns: Some(0),
            ..WaitRules::default()
        };
        let spec = of(SampleSpec {
            waits,
            ..SampleKind::OffCpu.into()
        });
        assert_eq!(
            refused(spec),
            "--max-wait must be above 0 and not below --min-wait"
        );
        let spec = of(SampleSpec {
            wakers: true,
            ..SampleKind::OnCpu.into()
        });
        assert_eq!(
            refused(spec),
            "wakers end waits, which on-cpu does not record: take off-cpu or wall"
        );
        // What a user wrote stays.
        let labels = PodSelector {
            labels: Some("on_cpu oops".to_owned()),
            ..PodSelector::default()
        };
        let spec = TaskSpec {
            target: Target::Pod(labels),
            ..of(SampleKind::OffCpu.into())
        };
        let text = refused(spec);
        assert!(text.starts_with("--labels: \"on_cpu oops\""), "{text}");
    }
}
