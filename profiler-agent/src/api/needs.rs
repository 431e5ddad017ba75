//! The table of routes: which token each of them needs. A route that is not in it cannot be made.

use axum::http::Method;

/// What a request must carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Nothing: the page without data, which a browser loads before it can send the token.
    Page,
    /// Nothing: what orchestrators ask. The answers are one word, and load must not make them fail, because
    /// whoever asks would then restart the agent.
    Health,
    /// A token, also the read-only one.
    Look,
    /// The full token.
    Full,
}

impl Need {
    /// Whether it is answered without a token.
    pub(super) fn is_open(self) -> bool {
        match self {
            Self::Page | Self::Health => true,
            Self::Look | Self::Full => false,
        }
    }
}

/// Method, route and need. GET stands for HEAD as well.
pub(super) const ROUTES: [(&str, &str, Need); 60] = [
    ("GET", "/", Need::Page),
    ("GET", "/index.html", Need::Page),
    ("GET", "/favicon.ico", Need::Page),
    ("GET", "/assets/{*path}", Need::Page),
    ("GET", "/healthz", Need::Health),
    ("GET", "/readyz", Need::Health),
    ("GET", "/metrics", Need::Look),
    ("GET", "/api/v1/openapi.json", Need::Look),
    ("GET", "/api/v1/meta", Need::Look),
    ("GET", "/api/v1/probes", Need::Look),
    ("GET", "/api/v1/self", Need::Look),
    ("GET", "/api/v1/self/kernel", Need::Look),
    // Makes the kernel count.
    ("POST", "/api/v1/self/kernel/statistics", Need::Full),
    ("GET", "/api/v1/features", Need::Look),
    ("GET", "/api/v1/config", Need::Look),
    // Holds the log.
    ("GET", "/api/v1/support-bundle", Need::Full),
    ("GET", "/api/v1/events", Need::Look),
    ("GET", "/api/v1/processes", Need::Look),
    ("GET", "/api/v1/processes/{id}", Need::Look),
    ("GET", "/api/v1/processes/{id}/symbols", Need::Look),
    ("GET", "/api/v1/containers", Need::Look),
    ("GET", "/api/v1/overview", Need::Look),
    ("GET", "/api/v1/pods", Need::Look),
    ("GET", "/api/v1/access-logs", Need::Look),
    ("GET", "/api/v1/access-logs/requests", Need::Look),
    ("GET", "/api/v1/tasks", Need::Look),
    ("POST", "/api/v1/tasks", Need::Full),
    ("GET", "/api/v1/tasks/{id}", Need::Look),
    ("DELETE", "/api/v1/tasks/{id}", Need::Full),
    ("POST", "/api/v1/tasks/{id}/stop", Need::Full),
    ("GET", "/api/v1/tasks/{id}/profile", Need::Look),
    ("GET", "/api/v1/tasks/{id}/threads", Need::Look),
    ("GET", "/api/v1/tasks/{id}/timeline", Need::Look),
    ("GET", "/api/v1/tasks/{id}/sequence", Need::Look),
    ("GET", "/api/v1/tasks/{id}/waits", Need::Look),
    ("GET", "/api/v1/tasks/{id}/diagnosis", Need::Look),
    ("GET", "/api/v1/tasks/{id}/quality", Need::Look),
    ("GET", "/api/v1/tasks/{id}/event-loop", Need::Look),
    ("GET", "/api/v1/tasks/{id}/requests", Need::Look),
    ("GET", "/api/v1/tasks/{id}/edges", Need::Look),
    ("GET", "/api/v1/tasks/{id}/edges/events", Need::Look),
    ("GET", "/api/v1/tasks/{id}/edges/{edge}/series", Need::Look),
    (
        "GET",
        "/api/v1/tasks/{id}/edges/{edge}/connections",
        Need::Look,
    ),
    ("GET", "/api/v1/network/edges", Need::Look),
    ("GET", "/api/v1/network/edges/events", Need::Look),
    ("GET", "/api/v1/network/edges/{edge}/series", Need::Look),
    (
        "GET",
        "/api/v1/network/edges/{edge}/connections",
        Need::Look,
    ),
    ("GET", "/api/v1/checkups", Need::Look),
    ("POST", "/api/v1/checkups", Need::Full),
    ("GET", "/api/v1/checkups/compare", Need::Look),
    ("GET", "/api/v1/checkups/{id}", Need::Look),
    ("DELETE", "/api/v1/checkups/{id}", Need::Full),
    ("GET", "/api/v1/checkups/{id}/diagnosis", Need::Look),
    ("GET", "/api/v1/diagnosis/rules", Need::Look),
    ("GET", "/api/v1/diff", Need::Look),
    ("POST", "/api/v1/imports", Need::Full),
    ("GET", "/api/v1/symbols", Need::Look),
    ("POST", "/api/v1/symbols", Need::Full),
    ("PUT", "/api/v1/symbols/{build_id}", Need::Full),
    ("DELETE", "/api/v1/symbols/{build_id}", Need::Full),
];

/// The entry of a route in the table, if there is one.
pub(super) fn listed(method: &str, route: &str) -> Option<Need> {
    let method = if method == Method::HEAD.as_str() {
        Method::GET.as_str()
    } else {
        method
    };
    ROUTES
        .iter()
        .find(|(listed, path, _)| *listed == method && *path == route)
        .map(|(_, _, need)| *need)
}

/// What a request needs whose path is that of `route`. A method that the route does not have asks for the full token,
/// a path that nothing has for any: only a client with a token learns what exists.
pub(super) fn need(method: &Method, route: Option<&str>) -> Need {
    match route {
        Some(route) => listed(method.as_str(), route).unwrap_or(Need::Full),
        None => Need::Look,
    }
}
