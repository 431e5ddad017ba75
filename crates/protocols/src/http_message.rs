//! What HTTP heads state about an exchange, in any version.

use std::{
    hash::{BuildHasher as _, RandomState},
    sync::OnceLock,
};

use super::{
    Exchange, Options, Outcome, Protocol, headers,
    route::{cut, fold_grpc_path, fold_path, mask_query},
    text::printable_text,
    trace::{TraceSource, take_trace_header},
};

/// Most headers that are kept of an exchange.
const HEADERS: usize = 32;
const METHOD_BYTES: usize = 32;
/// A name of 253 bytes and a port.
const AUTHORITY_BYTES: usize = 260;

/// Puts what a head says into an exchange.
#[derive(Debug)]
pub(crate) struct Intake<'a> {
    exchange: &'a mut Exchange,
    options: &'a Options,
    trace: TraceSource,
}

impl<'a> Intake<'a> {
    pub(crate) fn new(exchange: &'a mut Exchange, options: &'a Options) -> Self {
        Self {
            exchange,
            options,
            trace: TraceSource::None,
        }
    }

    pub(crate) fn method(&mut self, method: &str) {
        self.exchange.method = Some(bounded(method, METHOD_BYTES));
    }

    /// A request target that was seen whole.
    pub(crate) fn target(&mut self, target: &str) {
        self.exchange.path_hash = Some(path_hash(target.as_bytes()));
        self.path(target);
    }

    /// The beginning of a target; the path must be whole, its query need not be.
    pub(crate) fn path(&mut self, target: &str) {
        let fold = if self.exchange.protocol == Protocol::Grpc {
            fold_grpc_path
        } else {
            fold_path
        };
        self.exchange.route = Some(fold(target));
        if self.options.privacy.raw_paths {
            self.exchange.path = Some(mask_query(target, self.options.limits.text_bytes));
        }
    }

    /// `Host`, `:authority` or the target of a CONNECT.
    pub(crate) fn authority(&mut self, authority: &str) {
        // A name and a password may stand before the host.
        let host = authority
            .rsplit('@')
            .next()
            .unwrap_or_default()
            .trim_ascii();
        // A query or a path has no place there.
        let is_host = |letter: char| {
            letter.is_alphanumeric()
                || matches!(letter, '.' | '-' | '_' | ':' | '[' | ']' | '%' | '*')
        };
        let end = host.find(|letter| !is_host(letter)).unwrap_or(host.len());
        let host = host.get(..end).unwrap_or_default();
        self.exchange.authority = Some(bounded(host, AUTHORITY_BYTES));
    }

    /// A header of the request; `name` is in lower case.
    pub(crate) fn request_header(&mut self, name: &str, value: &[u8]) {
        let value = String::from_utf8_lossy(value);
        take_trace_header(&mut self.exchange.trace, &mut self.trace, name, &value);
        self.keep(name, &value);
    }

    /// A header of the answer.
    pub(crate) fn response_header(&mut self, name: &str, value: &[u8]) {
        let value = String::from_utf8_lossy(value);
        if name == "x-envoy-upstream-service-time" {
            self.exchange.upstream_service_ms = value.trim_ascii().parse().ok();
        }
        if name == "x-request-id" && self.exchange.trace.request_id.is_none() {
            take_trace_header(&mut self.exchange.trace, &mut self.trace, name, &value);
        }
        self.keep(name, &value);
    }

    fn keep(&mut self, name: &str, value: &str) {
        if self.exchange.headers.len() < HEADERS
            && let Some(kept) = headers::keep(name, value, &self.options.privacy)
        {
            self.exchange.headers.push(kept);
        }
    }
}

/// The outcome of a request by its HTTP status.
pub fn outcome_of_status(status: u16) -> Outcome {
    match status {
        400..=499 => Outcome::ClientError,
        500..=599 => Outcome::ServerError,
        _ => Outcome::Ok,
    }
}

/// A hash that is the same for the same path as long as the process runs, and says nothing outside of it.
pub(crate) fn path_hash(path: &[u8]) -> u64 {
    static KEYS: OnceLock<RandomState> = OnceLock::new();
    KEYS.get_or_init(RandomState::new).hash_one(path)
}

fn bounded(text: &str, limit: usize) -> String {
    // A letter has a byte at least.
    let end = text
        .char_indices()
        .nth(limit)
        .map_or(text.len(), |(end, _)| end);
    let mut text = printable_text(text.get(..end).unwrap_or(text));
    cut(&mut text, limit);
    text
}
