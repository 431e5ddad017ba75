//! Single requests of a task.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use profiler_model::{self as model, RequestSource};
use profiler_network::requests::{shown_end, status_name};
use profiler_protocols::{Body, Exchange, Outcome, Status};
use serde::Serialize;
use utoipa::ToSchema;

use super::requests::{RequestEdge, RequestEnd};

/// One request.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RequestSample {
    #[schema(required)]
    edge: Option<RequestEdge>,
    protocol: &'static str,
    source: RequestSource,
    tls: bool,
    #[schema(required)]
    method: Option<String>,
    #[schema(required)]
    route: Option<String>,
    /// As it was sent, its query masked; null unless the task was asked for raw paths.
    #[schema(required)]
    path: Option<String>,
    #[schema(required)]
    authority: Option<String>,
    #[schema(required)]
    status: Option<RequestStatus>,
    outcome: RequestOutcome,
    /// Nanoseconds since the Unix epoch.
    begin_ns: u64,
    duration_ns: u64,
    /// From the first byte of the request to its last, and to the first of the answer.
    #[schema(required)]
    request_end_ns: Option<u64>,
    #[schema(required)]
    first_byte_ns: Option<u64>,
    /// Null: not known.
    #[schema(required)]
    request_bytes: Option<u64>,
    #[schema(required)]
    response_bytes: Option<u64>,
    /// Messages of a stream: to the server, to the client.
    #[schema(required, value_type = Option<(u64, u64)>)]
    messages: Option<[u64; 2]>,
    /// With `bodies`, of HTTP; null: there was none, or it was not looked at.
    #[schema(required)]
    request_body: Option<RequestBody>,
    #[schema(required)]
    response_body: Option<RequestBody>,
    trace: RequestTrace,
    /// Chosen headers of request and answer: name, value.
    #[schema(value_type = Vec<(String, String)>)]
    headers: Vec<[String; 2]>,
    /// Number of the request on its connection; with HTTP/2 that of its stream.
    stream: u64,
    seen_by: RequestEnd,
    /// Who moved its first byte.
    pid: u32,
    #[schema(required)]
    tid: Option<u32>,
    /// The client's end of the connection: `ADDRESS:PORT`, or `unix:` and a number of its own.
    client: String,
    kept_as: KeptAs,
    /// Number of the rule that wanted it, from 0.
    #[schema(required)]
    rule: Option<u8>,
}

/// The beginning of a body, as it was sent.
#[derive(Debug, Serialize, ToSchema)]
struct RequestBody {
    encoding: BodyEncoding,
    data: String,
    /// More came behind it.
    cut: bool,
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
enum BodyEncoding {
    #[serde(rename = "utf-8")]
    Utf8,
    /// It is no text.
    #[serde(rename = "base64")]
    Base64,
}

/// A number for HTTP and gRPC; otherwise the protocol's own code, or `ok`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
enum RequestStatus {
    Number(u32),
    Code(String),
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum RequestOutcome {
    Ok,
    ClientError,
    ServerError,
    Broken,
    /// Its end was not seen whole.
    Unknown,
}

/// Why a request is among the samples.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum KeptAs {
    Slow,
    Failed,
    Rule,
    All,
}

/// Ids that tie requests together.
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_field_names, reason = "they are names of the API")]
struct RequestTrace {
    /// `x-request-id`.
    #[schema(required)]
    request_id: Option<String>,
    /// Of `traceparent`, `b3` or `sw8`.
    #[schema(required)]
    trace_id: Option<String>,
    #[schema(required)]
    span_id: Option<String>,
}

pub(super) fn sample(
    found: &model::RequestSample,
    edge: Option<RequestEdge>,
    source: RequestSource,
) -> RequestSample {
    let model::RequestSample {
        edge: _,
        tls,
        seen_by,
        pid,
        tid,
        client,
        begin_ns,
        reason,
        exchange,
    } = found;
    let Exchange {
        protocol,
        method,
        route,
        path,
        authority,
        status,
        outcome,
        begin_ns: began_ns,
        request_end_ns,
        first_byte_ns,
        end_ns: _,
        is_timed: _,
        request_bytes,
        response_bytes,
        request_size_known,
        response_size_known,
        messages,
        trace,
        headers,
        stream,
        upstream_service_ms: _,
        path_hash: _,
        request_body,
        response_body,
    } = exchange;
    let since = |at: &Option<u64>| at.map(|at| at.saturating_sub(*began_ns));
    RequestSample {
        // Of one request the connection is known.
        edge: edge.map(|edge| edge.of_client(*client)),
        protocol: protocol.name(),
        source,
        tls: *tls,
        method: method.clone(),
        route: route.clone(),
        path: path.clone(),
        authority: authority.clone(),
        status: status.as_ref().map(status_of),
        outcome: match outcome {
            Outcome::Ok => RequestOutcome::Ok,
            Outcome::ClientError => RequestOutcome::ClientError,
            Outcome::ServerError => RequestOutcome::ServerError,
            Outcome::Broken => RequestOutcome::Broken,
            Outcome::Unknown => RequestOutcome::Unknown,
        },
        begin_ns: *begin_ns,
        duration_ns: exchange.duration_ns(),
        request_end_ns: since(request_end_ns),
        first_byte_ns: since(first_byte_ns),
        request_bytes: request_size_known.then_some(*request_bytes),
        response_bytes: response_size_known.then_some(*response_bytes),
        messages: messages.map(|messages| [messages.to_server, messages.to_client]),
        request_body: request_body.as_ref().map(body_of),
        response_body: response_body.as_ref().map(body_of),
        trace: RequestTrace {
            request_id: trace.request_id.clone(),
            trace_id: trace.trace_id.clone(),
            span_id: trace.span_id.clone(),
        },
        headers: headers
            .iter()
            .map(|(name, value)| [name.clone(), value.clone()])
            .collect(),
        stream: *stream,
        seen_by: (*seen_by).into(),
        pid: *pid,
        tid: *tid,
        client: shown_end(*client),
        kept_as: match reason {
            model::SampleReason::Slow => KeptAs::Slow,
            model::SampleReason::Failed => KeptAs::Failed,
            model::SampleReason::Rule(_) => KeptAs::Rule,
            model::SampleReason::All => KeptAs::All,
        },
        rule: match reason {
            model::SampleReason::Rule(number) => Some(*number),
            model::SampleReason::Slow | model::SampleReason::Failed | model::SampleReason::All => {
                None
            }
        },
    }
}

fn body_of(body: &Body) -> RequestBody {
    let (encoding, data) = match text_of(body) {
        Some(text) => (BodyEncoding::Utf8, text.to_owned()),
        None => (BodyEncoding::Base64, STANDARD.encode(&body.bytes)),
    };
    RequestBody {
        encoding,
        data,
        cut: body.is_cut,
    }
}

/// A body that is text; the cut may lie within its last character.
fn text_of(body: &Body) -> Option<&str> {
    match std::str::from_utf8(&body.bytes) {
        Ok(text) => Some(text),
        Err(error) if body.is_cut && error.error_len().is_none() => {
            let whole = body.bytes.get(..error.valid_up_to())?;
            std::str::from_utf8(whole).ok()
        }
        Err(_) => None,
    }
}

fn status_of(status: &Status) -> RequestStatus {
    match status {
        Status::Http(code) => RequestStatus::Number((*code).into()),
        Status::Grpc(number) => RequestStatus::Number(*number),
        Status::Code(_) | Status::Fine => RequestStatus::Code(status_name(status)),
    }
}
