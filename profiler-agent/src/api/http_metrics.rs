//! What is counted of the HTTP API itself.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

pub(super) type Label = [(&'static str, String); 1];
pub(super) type Counters = Family<Label, Counter>;

/// Requests by class of status, and those of strangers.
#[derive(Debug)]
pub(super) struct HttpMetrics {
    requests: Counters,
    limited: Counters,
    wrong_tokens: Counter,
}

/// Why a request without a right token was not answered at once.
#[derive(Clone, Copy, Debug)]
pub(super) enum Limited {
    /// It waited for its turn.
    StrangersDelayed,
    StrangersRefused,
    /// Its address had sent too many wrong tokens.
    WrongTokens,
}

impl Limited {
    const ALL: [Self; 3] = [
        Self::StrangersDelayed,
        Self::StrangersRefused,
        Self::WrongTokens,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::StrangersDelayed => "strangers_delayed",
            Self::StrangersRefused => "strangers_refused",
            Self::WrongTokens => "wrong_tokens",
        }
    }
}

impl HttpMetrics {
    pub(super) fn count_limited(&self, why: Limited) {
        self.limited
            .get_or_create(&label("reason", why.name()))
            .inc();
    }

    pub(super) fn count_wrong_token(&self) {
        self.wrong_tokens.inc();
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "http_requests",
            "Answers of the HTTP API by class of status",
            self.requests.clone(),
        );
        registry.register(
            "http_limited",
            "Requests without a right token that were delayed or refused because there were too many",
            self.limited.clone(),
        );
        registry.register(
            "http_wrong_tokens",
            "Requests with a wrong token",
            self.wrong_tokens.clone(),
        );
    }
}

impl Default for HttpMetrics {
    fn default() -> Self {
        let requests = Counters::default();
        for class in CLASSES {
            drop(requests.get_or_create(&label("class", class)));
        }
        let limited = Counters::default();
        for why in Limited::ALL {
            drop(limited.get_or_create(&label("reason", why.name())));
        }
        Self {
            requests,
            limited,
            wrong_tokens: Counter::default(),
        }
    }
}

pub(super) fn label(name: &'static str, value: &str) -> Label {
    [(name, value.to_owned())]
}

/// Counts every answer, those of the guard included.
pub(super) async fn count(
    State(metrics): State<Arc<HttpMetrics>>,
    request: Request,
    next: Next,
) -> Response {
    let response = next.run(request).await;
    let class = usize::from(response.status().as_u16() / 100).saturating_sub(1);
    if let Some(class) = CLASSES.get(class) {
        metrics.requests.get_or_create(&label("class", class)).inc();
    }
    response
}
