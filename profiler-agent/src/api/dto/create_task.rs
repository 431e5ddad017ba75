//! What a task is started with, as a client asks for it.

use profiler_model::{self as model, RequestSource};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    event_loop::LoopRules,
    request_rules::{Asked, Refusal, RequestRule, RequestSamples},
    tasks::{IMPORTED_BY, Target, TaskKind, target_of},
    wait_counts::OffCpuMode,
};

#[expect(
    clippy::unnecessary_wraps,
    reason = "serde wants the type of the field"
)]
fn default_duration() -> Option<u64> {
    Some(10)
}

fn default_frequency() -> u32 {
    model::DEFAULT_FREQUENCY_HZ
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct CreateTask {
    pub(in crate::api) kind: TaskKind,
    pub(in crate::api) target: Target,
    /// 1 to 3600; null: until stopped.
    #[serde(default = "default_duration")]
    #[schema(default = 10, minimum = 1, maximum = 3600)]
    pub(in crate::api) duration_s: Option<u64>,
    /// Samples per second and CPU, 1 to 4999; not with `network`, which does not sample.
    #[serde(default = "default_frequency")]
    #[schema(default = 99, minimum = 1, maximum = 4999)]
    pub(in crate::api) frequency_hz: u32,
    /// Also who ended the waits; not with `on_cpu`.
    #[serde(default)]
    #[schema(default = false)]
    pub(in crate::api) wakers: bool,
    /// Also how long system calls on sockets take, with `network`; slows every system call of the machine.
    #[serde(default)]
    #[schema(default = false)]
    pub(in crate::api) timed: bool,
    /// Whether each wait is counted or waits are sampled; null: the agent's setting.
    #[serde(default)]
    pub(in crate::api) off_cpu_mode: Option<OffCpuMode>,
    /// Shorter waits are left out; for kinds that measure waits.
    #[serde(default)]
    #[schema(default = 0)]
    pub(in crate::api) min_wait_ns: u64,
    /// Longer waits are left out; null: none are.
    #[serde(default)]
    pub(in crate::api) max_wait_ns: Option<u64>,
    /// Also how long threads stay away from epoll, with `on_cpu`, `off_cpu` and `wall`; the result is at
    /// `/event-loop`.
    #[serde(default)]
    pub(in crate::api) event_loop: Option<LoopRules>,
    /// Where requests are taken from, each source once, with `requests`: `access_log` is what Envoys report to the agent, which must have
    /// been started with `--access-logs`; `tls` needs `sockets`. Null: `sockets`, and `tls` where that is true.
    #[serde(default)]
    pub(in crate::api) source: Option<Vec<RequestSource>>,
    /// Also plaintext at the functions of TLS libraries, as `tls` in `source`, with `requests`; the agent must have been started
    /// with `--allow-tls-capture`.
    #[serde(default)]
    #[schema(default = false)]
    pub(in crate::api) tls: Option<bool>,
    /// Part of the time in which that is on, 1 to 100.
    #[serde(default)]
    #[schema(default = 100, minimum = 1, maximum = 100)]
    pub(in crate::api) tls_duty_percent: Option<u8>,
    /// Samples have the first 4096 bytes of bodies of HTTP, as far as they were captured, with `requests`; the
    /// agent must have been started with `--allow-bodies`.
    #[serde(default)]
    #[schema(default = false)]
    pub(in crate::api) bodies: Option<bool>,
    /// Samples have the path as it was sent, its query masked, with `requests`.
    #[serde(default)]
    #[schema(default = false)]
    pub(in crate::api) raw_paths: Option<bool>,
    /// Which requests are kept one by one, with `requests`.
    #[serde(default)]
    pub(in crate::api) samples: Option<RequestSamples>,
    /// Requests that are kept besides, with `requests`; at most 16.
    #[serde(default)]
    pub(in crate::api) rules: Option<Vec<RequestRule>>,
    /// First bytes of each read and write that are looked at, 64 to 16384, with `requests`.
    #[serde(default)]
    #[schema(default = 1024, minimum = 64, maximum = 16384)]
    pub(in crate::api) capture_bytes: Option<u32>,
    /// Share of one CPU in percent, 1 to 100, that reading payload may use before connections are sampled,
    /// with `requests`.
    #[serde(default)]
    #[schema(default = 5, minimum = 1, maximum = 100)]
    pub(in crate::api) cpu_percent: Option<u32>,
    /// Name that tasks share which belong together: 1 to 64 letters, digits, `-`, `_` and `.`.
    #[serde(default)]
    pub(in crate::api) group: Option<String>,
}

impl CreateTask {
    /// The specification. Bounds are the engine's.
    pub(in crate::api) fn into_spec(self) -> Result<model::TaskSpec, Refusal> {
        let Self {
            kind,
            target,
            duration_s,
            frequency_hz,
            wakers,
            timed,
            off_cpu_mode,
            min_wait_ns,
            max_wait_ns,
            event_loop,
            source,
            tls,
            tls_duty_percent,
            bodies,
            raw_paths,
            samples,
            rules,
            capture_bytes,
            cpu_percent,
            group: _,
        } = self;
        let sampled = Sampled {
            frequency_hz,
            wakers,
            waits: model::WaitRules {
                mode: off_cpu_mode.map(Into::into),
                min_ns: min_wait_ns,
                max_ns: max_wait_ns,
            },
            event_loop: event_loop.map(Into::into),
        };
        let edges = model::EdgeSpec { timed };
        let asked = Asked {
            source,
            tls,
            tls_duty_percent,
            bodies,
            raw_paths,
            samples,
            rules: rules.map(|rules| rules.into_iter().map(Into::into).collect()),
            capture_bytes,
            cpu_percent,
        };
        let recording = match kind {
            TaskKind::OnCpu => sampled.recording(model::SampleKind::OnCpu, timed, &asked)?,
            TaskKind::OffCpu => sampled.recording(model::SampleKind::OffCpu, timed, &asked)?,
            TaskKind::Wall => sampled.recording(model::SampleKind::Wall, timed, &asked)?,
            TaskKind::Network => {
                sampled.is_not_for(model::TaskKind::Network)?;
                no_requests(&asked, model::TaskKind::Network)?;
                model::Recording::Edges(edges)
            }
            TaskKind::Requests => {
                sampled.is_not_for(model::TaskKind::Requests)?;
                let options = asked.options()?;
                model::Recording::Requests(model::RequestSpec { edges, options })
            }
            TaskKind::Imported => return Err(("kind", IMPORTED_BY.to_owned())),
        };
        Ok(model::TaskSpec {
            target: target_of(target).map_err(|detail| ("target", detail.to_owned()))?,
            duration_s,
            recording,
        })
    }
}

/// The fields of tasks that take samples.
struct Sampled {
    frequency_hz: u32,
    wakers: bool,
    waits: model::WaitRules,
    event_loop: Option<model::LoopRules>,
}

impl Sampled {
    /// Refused with fields that tasks without samples have.
    fn recording(
        self,
        kind: model::SampleKind,
        timed: bool,
        asked: &Asked,
    ) -> Result<model::Recording, Refusal> {
        if timed {
            let kind = kind.name();
            return Err((
                "timed",
                format!(
                    "timed measures system calls on sockets, which {kind} does not: take network"
                ),
            ));
        }
        no_requests(asked, kind.into())?;
        let Self {
            frequency_hz,
            wakers,
            waits,
            event_loop,
        } = self;
        Ok(model::Recording::Samples(model::SampleSpec {
            kind,
            frequency_hz,
            wakers,
            waits,
            event_loop,
        }))
    }

    /// Refuses what was given of these fields: tasks of this kind take no samples.
    fn is_not_for(&self, kind: model::TaskKind) -> Result<(), Refusal> {
        let kind = kind.name();
        let waits = |field| {
            format!("{field} is about waits, which {kind} does not measure: take off_cpu or wall")
        };
        let given = [
            (
                "frequency_hz",
                self.frequency_hz != default_frequency(),
                format!(
                    "frequency_hz is a rate of samples, which {kind} does not take: leave it out"
                ),
            ),
            (
                "wakers",
                self.wakers,
                format!("wakers end waits, which {kind} does not record: take off_cpu or wall"),
            ),
            (
                "event_loop",
                self.event_loop.is_some(),
                format!(
                    "event loops are watched beside samples, which {kind} does not take: take on_cpu, off_cpu or wall"
                ),
            ),
            ("min_wait_ns", self.waits.min_ns != 0, waits("min_wait_ns")),
            (
                "max_wait_ns",
                self.waits.max_ns.is_some(),
                waits("max_wait_ns"),
            ),
            (
                "off_cpu_mode",
                self.waits.mode.is_some(),
                waits("off_cpu_mode"),
            ),
        ];
        let first = given.into_iter().find(|(_, is_given, _)| *is_given);
        first.map_or(Ok(()), |(field, _, detail)| Err((field, detail)))
    }
}

/// Refuses fields about requests in tasks that look for none.
fn no_requests(asked: &Asked, kind: model::TaskKind) -> Result<(), Refusal> {
    asked.first_given().map_or(Ok(()), |field| {
        let kind = kind.name();
        Err((
            field,
            format!("{field} is about requests, which {kind} does not look for: take requests"),
        ))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn refusal(kind: &str, field: &str, value: &Value) -> Option<String> {
        let mut task = json!({"kind": kind, "target": {"all": true}});
        task[field] = value.clone();
        let task: CreateTask = serde_json::from_value(task).unwrap();
        task.into_spec().err().map(|(refused, detail)| {
            assert_eq!(refused, field);
            detail
        })
    }

    #[test]
    fn fields_about_samples_are_not_for_tasks_without_them() {
        for (field, value) in [
            ("frequency_hz", json!(100)),
            ("wakers", json!(true)),
            ("min_wait_ns", json!(5)),
            ("max_wait_ns", json!(5)),
            ("off_cpu_mode", json!("every")),
            ("event_loop", json!({"threshold_ms": 20})),
        ] {
            for kind in ["network", "requests"] {
                let detail = refusal(kind, field, &value).unwrap();
                assert!(
                    detail.contains(&format!("which {kind} does not")),
                    "{detail}"
                );
            }
            assert_eq!(refusal("wall", field, &value), None);
        }
        assert_eq!(
            refusal("network", "wakers", &json!(true)).unwrap(),
            "wakers end waits, which network does not record: take off_cpu or wall"
        );
        assert_eq!(
            refusal("network", "event_loop", &json!({"threshold_ms": 20})).unwrap(),
            "event loops are watched beside samples, which network does not take: take on_cpu, off_cpu or wall"
        );
        assert_eq!(refusal("network", "frequency_hz", &json!(99)), None);
    }

    #[test]
    fn only_tasks_that_watch_connections_are_timed() {
        for kind in ["on_cpu", "off_cpu", "wall"] {
            assert_eq!(
                refusal(kind, "timed", &json!(true)).unwrap(),
                format!(
                    "timed measures system calls on sockets, which {kind} does not: take network"
                )
            );
        }
        for kind in ["network", "requests"] {
            assert_eq!(refusal(kind, "timed", &json!(true)), None);
        }
    }

    #[test]
    fn options_of_requests_are_only_for_them() {
        for kind in ["on_cpu", "off_cpu", "wall", "network"] {
            assert_eq!(
                refusal(kind, "capture_bytes", &json!(2048)).unwrap(),
                format!(
                    "capture_bytes is about requests, which {kind} does not look for: take requests"
                )
            );
        }
        assert_eq!(refusal("requests", "capture_bytes", &json!(2048)), None);
    }

    #[test]
    fn an_import_is_not_started_as_a_task() {
        let detail = refusal("imported", "kind", &json!("imported")).unwrap();
        assert_eq!(detail, IMPORTED_BY);
    }
}
