//! Routes, and the layers around them.

use std::io;

use axum::{
    Router,
    extract::DefaultBodyLimit,
    handler::Handler,
    http::header,
    middleware::{from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get, on},
};
use flate2::read::GzDecoder;
use tokio::runtime::Handle;
use utoipa::openapi::HttpMethod;
use utoipa_axum::PathItemExt as _;

use super::{
    access,
    error::{ApiError, no_method, no_route},
    guard, headers,
    http::{
        access_logs, checkups, containers, diagnosis, diff, edge_connections, edge_series, edges,
        event_loop, events, health, imports, meta, node, overview, pods, processes, profiles,
        quality, requests, support_bundle, symbols, tasks, timeline, waits,
    },
    http_metrics,
    needs::listed,
    parameters::Given,
    state::ApiState,
    ui, unsent,
};

#[derive(Debug, thiserror::Error)]
pub enum RouterError {
    #[error("the table of access says nothing of {method} {route}: add it to api/needs.rs")]
    NotListed { method: &'static str, route: String },
}

/// Hands every handler that has a description in the OpenAPI document to a macro.
macro_rules! handlers {
    ($with:ident) => {
        $with! {
            health::healthz,
            health::readyz,
            health::metrics,
            meta::meta,
            meta::probes,
            meta::agent_self,
            node::kernel,
            node::measure_runs,
            node::feature_checks,
            node::configuration,
            support_bundle::support_bundle,
            processes::list,
            processes::show,
            processes::symbols,
            containers::list,
            overview::show,
            pods::list,
            access_logs::show,
            access_logs::requests,
            tasks::list,
            tasks::create,
            tasks::show,
            tasks::delete,
            tasks::stop,
            checkups::list,
            checkups::create,
            checkups::compare_two,
            checkups::show,
            checkups::delete,
            checkups::show_diagnosis,
            imports::import,
            profiles::profile,
            profiles::threads,
            timeline::timeline,
            timeline::sequence,
            diff::diff,
            waits::waits,
            diagnosis::diagnosis,
            diagnosis::rules,
            quality::quality,
            event_loop::event_loop,
            requests::requests,
            edges::edges,
            edges::edge_events,
            edges::node_edges,
            edges::node_edge_events,
            edge_series::task_edge_series,
            edge_series::node_edge_series,
            edge_connections::task_edge_connections,
            edge_connections::node_edge_connections,
            symbols::list,
            symbols::upload,
            symbols::replace,
            symbols::delete,
            events::events,
        }
    };
}
#[cfg(test)]
pub(super) use handlers;

/// A handler with the path and the method of its description.
struct Route {
    path: String,
    method: &'static str,
    handler: MethodRouter<ApiState>,
}

/// `P` is the description of the handler.
fn described<P, H, T>(handler: H) -> impl Iterator<Item = Route>
where
    P: utoipa::Path,
    H: Handler<T, ApiState>,
    T: 'static,
{
    P::methods().into_iter().map(move |method| Route {
        path: P::path(),
        method: name_of(&method),
        handler: on(method.to_method_filter(), handler.clone()),
    })
}

macro_rules! routes_of {
    ($($module:ident::$handler:ident,)+) => {
        pastey::paste! {
            fn described_routes() -> Vec<Route> {
                let mut routes = Vec::new();
                $(routes.extend(described::<$module::[<__path_ $handler>], _, _>($module::$handler));)+
                routes
            }
        }
    };
}
handlers!(routes_of);

fn name_of(method: &HttpMethod) -> &'static str {
    match method {
        HttpMethod::Get => "GET",
        HttpMethod::Put => "PUT",
        HttpMethod::Post => "POST",
        HttpMethod::Delete => "DELETE",
        HttpMethod::Options => "OPTIONS",
        HttpMethod::Head => "HEAD",
        HttpMethod::Patch => "PATCH",
        HttpMethod::Trace => "TRACE",
    }
}

/// `docs/http-api.json`. A test compares it with the descriptions; to make it of those at run time takes 1.3 MB of code.
const DOCUMENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/http-api.json.gz"));

/// The OpenAPI document as indented JSON, ending in a newline.
pub fn openapi_json() -> io::Result<String> {
    io::read_to_string(GzDecoder::new(DOCUMENT))
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
    let undocumented: [(&str, MethodRouter<ApiState>); 5] = [
        (
            "/api/v1/openapi.json",
            get(|_: Given<()>| async { openapi() }),
        ),
        ("/", get(ui::index)),
        ("/index.html", get(ui::index)),
        ("/favicon.ico", get(ui::favicon)),
        ("/assets/{*path}", get(ui::asset)),
    ];
    let undocumented = undocumented.map(|(path, handler)| Route {
        path: path.to_owned(),
        method: "GET",
        handler,
    });
    let mut router = Router::new();
    for route in described_routes().into_iter().chain(undocumented) {
        let Route {
            path,
            method,
            handler,
        } = route;
        check_listed(method, &path)?;
        router = router.route(&path, handler);
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

fn openapi() -> Result<Response, ApiError> {
    let document = openapi_json().map_err(ApiError::internal)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], document).into_response())
}
