//! The OpenAPI document, from the descriptions of handlers and types. The program carries the result, `docs/http-api.json`.

use profiler_model::diagnosis::DiagnosisScope;
use utoipa::{
    Modify, OpenApi,
    openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::refusals;
use crate::api::{
    dto,
    http::{
        access_logs, checkups, containers, diagnosis, diff, edge_connections, edge_series, edges,
        event_loop, events, health, imports, meta, node, overview, pods, processes, profiles,
        quality, requests, support_bundle, symbols, tasks, timeline, waits,
    },
    router::handlers,
    state::ApiState,
};

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

macro_rules! described {
    ($($module:ident::$handler:ident,)+) => {
        fn described() -> utoipa::openapi::OpenApi {
            OpenApiRouter::<ApiState>::with_openapi(Document::openapi())
                $(.routes(routes!($module::$handler)))+
                .into_openapi()
        }
    };
}
handlers!(described);

/// Indented JSON, ending in a newline.
pub(super) fn document() -> String {
    let mut document = described();
    refusals::declare(&mut document);
    document.to_pretty_json().unwrap() + "\n"
}
