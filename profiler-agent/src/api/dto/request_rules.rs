//! What a requests task is asked for.

use profiler_model::{self as model, RequestSource};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Which requests are kept as samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::api) enum RequestSamples {
    /// The slowest and the first failing ones of each edge in each 10 s, and those that a rule wants.
    #[default]
    Slow,
    /// All, as long as there is room.
    All,
}

/// Conditions that must all hold for a request to be kept; at least one must be given. What is not known
/// of a request fits no condition about it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::api) struct RequestRule {
    /// Regular expression that is searched in `METHOD ROUTE`, and in the path with `raw_paths`.
    #[serde(default)]
    operation: Option<String>,
    #[serde(default)]
    #[schema(default = 0)]
    min_duration_ns: u64,
    /// Of request and answer together.
    #[serde(default)]
    #[schema(default = 0)]
    min_bytes: u64,
    /// One of these, or one of `grpc_status`.
    #[serde(default)]
    status: Vec<RequestStatusClass>,
    #[serde(default)]
    grpc_status: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub(in crate::api) enum RequestStatusClass {
    #[serde(rename = "4xx")]
    ClientError,
    #[serde(rename = "5xx")]
    ServerError,
}

impl From<RequestRule> for model::SampleRule {
    fn from(rule: RequestRule) -> Self {
        let RequestRule {
            operation,
            min_duration_ns,
            min_bytes,
            status,
            grpc_status,
        } = rule;
        Self {
            operation,
            min_duration_ns,
            min_bytes,
            statuses: status.into_iter().map(Into::into).collect(),
            grpc_statuses: grpc_status,
        }
    }
}

/// Reads a rule as a task of the API has it.
///
/// # Errors
/// The text is no JSON, or has fields that a rule does not have.
pub fn parse_sample_rule(text: &str) -> Result<model::SampleRule, serde_json::Error> {
    serde_json::from_str::<RequestRule>(text).map(Into::into)
}

impl From<&model::SampleRule> for RequestRule {
    fn from(rule: &model::SampleRule) -> Self {
        let model::SampleRule {
            operation,
            min_duration_ns,
            min_bytes,
            statuses,
            grpc_statuses,
        } = rule;
        Self {
            operation: operation.clone(),
            min_duration_ns: *min_duration_ns,
            min_bytes: *min_bytes,
            status: statuses.iter().copied().map(Into::into).collect(),
            grpc_status: grpc_statuses.clone(),
        }
    }
}

impl From<RequestStatusClass> for model::StatusClass {
    fn from(class: RequestStatusClass) -> Self {
        match class {
            RequestStatusClass::ClientError => Self::ClientError,
            RequestStatusClass::ServerError => Self::ServerError,
        }
    }
}

impl From<model::StatusClass> for RequestStatusClass {
    fn from(class: model::StatusClass) -> Self {
        match class {
            model::StatusClass::ClientError => Self::ClientError,
            model::StatusClass::ServerError => Self::ServerError,
        }
    }
}

/// What a requests task looks for.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(in crate::api) struct RequestSettings {
    /// Where requests are taken from.
    source: Vec<RequestSource>,
    tls: bool,
    tls_duty_percent: u8,
    bodies: bool,
    raw_paths: bool,
    samples: RequestSamples,
    rules: Vec<RequestRule>,
    capture_bytes: u32,
    cpu_percent: u32,
}

impl From<&model::RequestOptions> for RequestSettings {
    fn from(options: &model::RequestOptions) -> Self {
        let model::RequestOptions {
            access_log: _,
            sockets: _,
            tls,
            tls_duty_percent,
            bodies,
            raw_paths,
            samples_all,
            rules,
            capture_bytes,
            cpu_percent,
        } = options;
        Self {
            source: options.sources(),
            tls: *tls,
            tls_duty_percent: *tls_duty_percent,
            bodies: *bodies,
            raw_paths: *raw_paths,
            samples: if *samples_all {
                RequestSamples::All
            } else {
                RequestSamples::Slow
            },
            rules: rules.iter().map(Into::into).collect(),
            capture_bytes: *capture_bytes,
            cpu_percent: *cpu_percent,
        }
    }
}

/// A field, and what is wrong with it.
pub(super) type Refusal = (&'static str, String);

/// The fields of a new task that only tasks of kind `requests` have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) source: Option<Vec<RequestSource>>,
    pub(super) tls: Option<bool>,
    pub(super) tls_duty_percent: Option<u8>,
    pub(super) bodies: Option<bool>,
    pub(super) raw_paths: Option<bool>,
    pub(super) samples: Option<RequestSamples>,
    pub(super) rules: Option<Vec<model::SampleRule>>,
    pub(super) capture_bytes: Option<u32>,
    pub(super) cpu_percent: Option<u32>,
}

impl Asked {
    /// A field that was given.
    pub(super) fn first_given(&self) -> Option<&'static str> {
        let Self {
            source,
            tls,
            tls_duty_percent,
            bodies,
            raw_paths,
            samples,
            rules,
            capture_bytes,
            cpu_percent,
        } = self;
        let given = [
            ("source", source.is_some()),
            ("tls", tls.is_some()),
            ("tls_duty_percent", tls_duty_percent.is_some()),
            ("bodies", bodies.is_some()),
            ("raw_paths", raw_paths.is_some()),
            ("samples", samples.is_some()),
            ("rules", rules.is_some()),
            ("capture_bytes", capture_bytes.is_some()),
            ("cpu_percent", cpu_percent.is_some()),
        ];
        let first = given.into_iter().find(|(_, is_given)| *is_given)?;
        Some(first.0)
    }

    /// The defaults, with what was given.
    pub(super) fn options(self) -> Result<model::RequestOptions, Refusal> {
        let Self {
            source,
            tls,
            tls_duty_percent,
            bodies,
            raw_paths,
            samples,
            rules,
            capture_bytes,
            cpu_percent,
        } = self;
        let usual = model::RequestOptions::default();
        let source = source.unwrap_or_else(|| usual.sources());
        let has = |wanted| source.contains(&wanted);
        if let Some(problem) = problem_of(&source) {
            return Err(("source", problem));
        }
        if tls == Some(false) && has(RequestSource::Tls) {
            return Err((
                "tls",
                "tls is false and source has it: leave one of them out".to_owned(),
            ));
        }
        Ok(model::RequestOptions {
            access_log: has(RequestSource::AccessLog),
            sockets: has(RequestSource::Sockets),
            tls: tls.unwrap_or(usual.tls) || has(RequestSource::Tls),
            tls_duty_percent: tls_duty_percent.unwrap_or(usual.tls_duty_percent),
            bodies: bodies.unwrap_or(usual.bodies),
            raw_paths: raw_paths.unwrap_or(usual.raw_paths),
            samples_all: samples.unwrap_or_default() == RequestSamples::All,
            rules: rules.unwrap_or(usual.rules),
            capture_bytes: capture_bytes.unwrap_or(model::RequestOptions::usual_capture_bytes(
                bodies.unwrap_or(usual.bodies),
            )),
            cpu_percent: cpu_percent.unwrap_or(usual.cpu_percent),
        })
    }
}

/// Why this is no list of sources. Which of them go together is the engine's to say.
fn problem_of(source: &[RequestSource]) -> Option<String> {
    if source.is_empty() {
        let names = RequestSource::ALL.map(RequestSource::name).join(", ");
        return Some(format!("source must name at least one of {names}"));
    }
    let twice = RequestSource::ALL
        .into_iter()
        .find(|wanted| source.iter().filter(|found| *found == wanted).count() > 1)?;
    let name = twice.name();
    Some(format!("source has {name} more than once: name each once"))
}
