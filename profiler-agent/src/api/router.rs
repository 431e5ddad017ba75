//! Routes with their OpenAPI description, and the layers around them.

use axum::{
    Router,
    extract::DefaultBodyLimit,
    http::header,
    middleware::{from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get},
};
use profiler_model::diagnosis::DiagnosisScope;
use tokio::runtime::Handle;
use utoipa::{
    Modify, OpenApi,
    openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    access, dto,
    error::{no_method, no_route},
    guard, headers,
    http::{
        access_logs, checkups, containers, diagnosis, diff, edge_connections, edge_series, edges,
        event_loop, events, health, imports, meta, node, overview, pods, processes, profiles,
        quality, requests, support_bundle, symbols, tasks, timeline, waits,
    },
    http_metrics,
    needs::listed,
    parameters::Given,
    refusals,
    state::ApiState,
    ui, unsent,
};

#[derive(Debug, thiserror::Error)]
pub enum RouterError {
    #[error("encode the OpenAPI document: {0}")]
    Document(#[from] serde_json::Error),
    #[error("the table of access says nothing of {method} {route}: add it to api/needs.rs")]
    NotListed { method: &'static str, route: String },
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "profiler-agent",
        description = "Profiles processes, containers and the whole node by eBPF. Every request but those for \
            `/healthz` and `/readyz` needs the header `Authorization: Bearer TOKEN`; with the read-only token nothing can \
            be changed (403 `read_only_token`). Errors are `application/problem+json` with a stable `code`. \
            Times are nanoseconds since the Unix epoch. Text from processes is untrusted."
    ),
    components(schemas(
        dto::Problem,
        dto::DiagnosisFormat,
        dto::DiffFormat,
        dto::DiffNorm,
        dto::ProfileFormat,
        dto::ProfileIdle,
        dto::ProfileValue,
        dto::TaskDeletedEvent,
        dto::ProcessEvent,
        dto::ProcessesEvent,
        DiagnosisScope,
        dto::LaggedEvent
    )),
    modifiers(&BearerToken)
)]
struct Document;

struct BearerToken;

impl Modify for BearerToken {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        document
            .components
            .get_or_insert_default()
            .add_security_scheme("token", SecurityScheme::Http(scheme));
        document.security = Some(vec![SecurityRequirement::new("token", [] as [&str; 0])]);
    }
}

fn documented() -> (Router<ApiState>, utoipa::openapi::OpenApi) {
    let (router, mut document) = described();
    refusals::declare(&mut document);
    (router, document)
}

fn described() -> (Router<ApiState>, utoipa::openapi::OpenApi) {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::metrics))
        .routes(routes!(meta::meta))
        .routes(routes!(meta::probes))
        .routes(routes!(meta::agent_self))
        .routes(routes!(node::kernel))
        .routes(routes!(node::measure_runs))
        .routes(routes!(node::feature_checks))
        .routes(routes!(node::configuration))
        .routes(routes!(support_bundle::support_bundle))
        .routes(routes!(processes::list))
        .routes(routes!(processes::show))
        .routes(routes!(processes::symbols))
        .routes(routes!(containers::list))
        .routes(routes!(overview::show))
        .routes(routes!(pods::list))
        .routes(routes!(access_logs::show))
        .routes(routes!(access_logs::requests))
        .routes(routes!(tasks::list, tasks::create))
        .routes(routes!(tasks::show, tasks::delete))
        .routes(routes!(tasks::stop))
        .routes(routes!(checkups::list, checkups::create))
        .routes(routes!(checkups::compare_two))
        .routes(routes!(checkups::show, checkups::delete))
        .routes(routes!(checkups::show_diagnosis))
        .routes(routes!(imports::import))
        .routes(routes!(profiles::profile))
        .routes(routes!(profiles::threads))
        .routes(routes!(timeline::timeline))
        .routes(routes!(timeline::sequence))
        .routes(routes!(diff::diff))
        .routes(routes!(waits::waits))
        .routes(routes!(diagnosis::diagnosis))
        .routes(routes!(diagnosis::rules))
        .routes(routes!(quality::quality))
        .routes(routes!(event_loop::event_loop))
        .routes(routes!(requests::requests))
        .routes(routes!(edges::edges))
        .routes(routes!(edges::edge_events))
        .routes(routes!(edges::node_edges))
        .routes(routes!(edges::node_edge_events))
        .routes(routes!(edge_series::task_edge_series))
        .routes(routes!(edge_series::node_edge_series))
        .routes(routes!(edge_connections::task_edge_connections))
        .routes(routes!(edge_connections::node_edge_connections))
        .routes(routes!(symbols::list, symbols::upload))
        .routes(routes!(symbols::replace, symbols::delete))
        .routes(routes!(events::events))
        .split_for_parts()
}

/// The OpenAPI document as indented JSON, ending in a newline.
pub fn openapi_json() -> Result<String, serde_json::Error> {
    let (_, document) = documented();
    Ok(document.to_pretty_json()? + "\n")
}

/// The complete service: routes inside all layers. Handlers run in the tokio runtime in which this is called,
/// whatever runtime the connections are served in.
pub fn router(state: ApiState) -> Result<Router, RouterError> {
    let router = routes()?
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(DefaultBodyLimit::max(guard::MAX_BODY_BYTES))
        .layer(from_fn_with_state(Handle::current(), guard::run_inside))
        // The last layer is the outermost.
        .layer(from_fn_with_state(state.clone(), guard::limit_load))
        .layer(from_fn_with_state(state.clone(), guard::limit_body))
        .layer(from_fn_with_state(state.clone(), access::require))
        .layer(from_fn_with_state(state.clone(), guard::check_addressing))
        .layer(from_fn_with_state(state.clone(), access::admit))
        .layer(from_fn_with_state(state.unsent.clone(), unsent::count))
        .layer(from_fn_with_state(state.http.clone(), http_metrics::count))
        .layer(from_fn(headers::add))
        .with_state(state);
    Ok(router)
}

/// Every route, each of which the table of access lists.
fn routes() -> Result<Router<ApiState>, RouterError> {
    let (mut router, mut document) = documented();
    for (route, item) in &mut document.paths.paths {
        for (method, _) in refusals::operations(item) {
            check_listed(method, route)?;
        }
    }
    let json = openapi_json()?;
    let undocumented: [(&str, MethodRouter<ApiState>); 5] = [
        (
            "/api/v1/openapi.json",
            get(move |_: Given<()>| async move { openapi(json) }),
        ),
        ("/", get(ui::index)),
        ("/index.html", get(ui::index)),
        ("/favicon.ico", get(ui::favicon)),
        ("/assets/{*path}", get(ui::asset)),
    ];
    for (route, handler) in undocumented {
        check_listed("GET", route)?;
        router = router.route(route, handler);
    }
    Ok(router)
}

fn check_listed(method: &'static str, route: &str) -> Result<(), RouterError> {
    match listed(method, route) {
        Some(_) => Ok(()),
        None => Err(RouterError::NotListed {
            method,
            route: route.to_owned(),
        }),
    }
}

fn openapi(document: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], document).into_response()
}
