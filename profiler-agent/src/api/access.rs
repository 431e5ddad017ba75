//! Who asks, and whether that is enough: the token of a request, and what it may do.
//!
//! Two layers: the outer one looks at the token and bounds the requests of strangers, which have none; the inner one,
//! behind the checks of Host and Origin, refuses what the token is not enough for.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::Instant,
};

use axum::{
    extract::{ConnectInfo, FromRequestParts, MatchedPath, Request, State},
    http::{HeaderMap, HeaderValue, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::{
    auth::{Role, Tokens},
    connections::Caller,
    error::ApiError,
    http_metrics::Limited,
    needs::{Need, need},
    state::ApiState,
    strangers::{Admission, REFUSAL_TIME},
};

impl<S: Send + Sync> FromRequestParts<S> for Role {
    type Rejection = std::convert::Infallible;

    /// Of a request that no layer has looked at it is the least.
    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        Ok(parts
            .extensions
            .get::<Self>()
            .copied()
            .unwrap_or(Self::Look))
    }
}

/// What a request shows about its sender.
#[derive(Clone, Copy, Debug)]
enum Sender {
    /// It has a token, or none is needed.
    Holder(Role),
    NoToken,
    WrongToken,
}

impl Sender {
    fn of(tokens: &Tokens, headers: &HeaderMap) -> Self {
        if tokens.full_token().is_none() {
            return Self::Holder(Role::Full);
        }
        let mut all = headers.get_all(header::AUTHORIZATION).iter();
        let given = all.next().map(HeaderValue::as_bytes);
        if all.next().is_some() {
            // Which one counts would be the sender's guess and a proxy's.
            return Self::WrongToken;
        }
        let bearer = given.and_then(|value| {
            let (scheme, rest) = value.split_at_checked(7)?;
            scheme
                .eq_ignore_ascii_case(b"bearer ")
                .then(|| rest.trim_ascii())
        });
        match bearer {
            None => Self::NoToken,
            Some(given) => tokens.role_of(given).map_or(Self::WrongToken, Self::Holder),
        }
    }
}

/// What the route of a request needs.
pub(super) fn need_of(request: &Request) -> Need {
    let route = request.extensions().get::<MatchedPath>();
    need(request.method(), route.map(MatchedPath::as_str))
}

/// Lets requests with a token pass, and others as far as there is room for strangers.
pub(super) async fn admit(
    State(state): State<ApiState>,
    mut request: Request,
    next: Next,
) -> Response {
    let sender = Sender::of(&state.parts.tokens, request.headers());
    request.extensions_mut().insert(sender);
    let caller = request.extensions().get::<Caller>();
    let is_first = caller.is_some_and(Caller::is_first_request);
    if matches!(sender, Sender::Holder(_)) {
        return next.run(request).await;
    }
    let need = need_of(&request);
    // To open a connection costs more than this answer: without it a flood would fail health checks, which mostly are
    // the first request of theirs.
    if is_first && need.is_open() {
        return next.run(request).await;
    }
    match state.strangers.turn(need, Instant::now()) {
        Admission::Now => next.run(request).await,
        Admission::After(wait) => {
            state.http.count_limited(Limited::StrangersDelayed);
            tokio::time::sleep(wait).await;
            next.run(request).await
        }
        Admission::Never => {
            state.http.count_limited(Limited::StrangersRefused);
            // A connection has one request at a time: this is what bounds a flood of refusals.
            tokio::time::sleep(REFUSAL_TIME).await;
            ApiError::TooManyStrangers.into_response()
        }
    }
}

/// Refuses requests whose token is not enough for their route.
pub(super) async fn require(
    State(state): State<ApiState>,
    mut request: Request,
    next: Next,
) -> Response {
    let need = need_of(&request);
    let sender = request.extensions().get::<Sender>().copied();
    match sender.unwrap_or(Sender::NoToken) {
        Sender::Holder(role) => {
            trust(&request);
            if need == Need::Full && role != Role::Full {
                return ApiError::ReadOnlyToken.into_response();
            }
            request.extensions_mut().insert(role);
            next.run(request).await
        }
        Sender::NoToken | Sender::WrongToken if need.is_open() => next.run(request).await,
        Sender::NoToken => refuse(&state, &request, ApiError::MissingToken),
        Sender::WrongToken => refuse(&state, &request, ApiError::WrongToken),
    }
}

/// The refusal of a request without a right token; of an address that has tried too many, another one.
fn refuse(state: &ApiState, request: &Request, error: ApiError) -> Response {
    let address = address_of(request);
    let now = Instant::now();
    let is_wrong = error == ApiError::WrongToken;
    if is_wrong {
        state.http.count_wrong_token();
    }
    if let Some(wait) = state.strangers.wait_after_wrong_tokens(address, now) {
        state.http.count_limited(Limited::WrongTokens);
        if is_wrong {
            state.strangers.note_slowed(now);
        }
        let wait_s = wait.as_secs().max(1);
        return ApiError::TooManyWrongTokens { wait_s }.into_response();
    }
    if is_wrong {
        state.strangers.note_wrong_token(address, now);
    }
    error.into_response()
}

/// The peer of a request's connection. Those that no connection brought share one address.
fn address_of(request: &Request) -> IpAddr {
    let info = request.extensions().get::<ConnectInfo<SocketAddr>>();
    info.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |info| info.0.ip())
}

/// The connection of a request that may be answered does not have to make room for others any more.
fn trust(request: &Request) {
    if let Some(caller) = request.extensions().get::<Caller>() {
        caller.trust();
    }
}
