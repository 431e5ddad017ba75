//! What the OpenAPI document says of every operation alike: what may refuse a request before its handler sees it, and
//! bytes.

use utoipa::openapi::{
    Content, KnownFormat, ObjectBuilder, OpenApi, PathItem, Ref, RefOr, Response, Responses,
    Schema, SchemaFormat, path::Operation, schema::Type,
};

use crate::api::needs::{Need, listed};

const PROBLEM: &str = "application/problem+json";
const JSON: &str = "application/json";
/// Takes any query, as the only one.
const METRICS: &str = "/metrics";

/// Adds to each operation the refusals of the layers around the handlers and of what they are handed, with their codes.
pub(super) fn declare(document: &mut OpenApi) {
    for (route, item) in &mut document.paths.paths {
        for (method, operation) in operations(item) {
            let need = listed(method, route).unwrap_or(Need::Full);
            let of_handed = of_handed(route, operation);
            for (status, codes) in refusals(need).into_iter().chain(of_handed) {
                add(&mut operation.responses, status, codes);
            }
            bytes(operation);
        }
    }
}

/// The operations of a path, with their methods.
pub(super) fn operations(
    item: &mut PathItem,
) -> impl Iterator<Item = (&'static str, &mut Operation)> {
    [
        ("GET", &mut item.get),
        ("PUT", &mut item.put),
        ("POST", &mut item.post),
        ("DELETE", &mut item.delete),
        ("OPTIONS", &mut item.options),
        ("HEAD", &mut item.head),
        ("PATCH", &mut item.patch),
        ("TRACE", &mut item.trace),
    ]
    .into_iter()
    .filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

/// A status with the codes that come with it.
type Refusal = (&'static str, &'static [&'static str]);

/// Those of the layers.
fn refusals(need: Need) -> Vec<Refusal> {
    let mut refusals: Vec<Refusal> = vec![
        ("400", &["repeated_header"]),
        ("403", &["foreign_host", "foreign_origin"]),
        ("429", &["too_many_strangers"]),
        ("503", &["overloaded"]),
    ];
    if !need.is_open() {
        refusals.push(("401", &["missing_token", "wrong_token"]));
        refusals.push(("429", &["too_many_wrong_tokens"]));
        refusals.push(("503", &["timed_out"]));
    }
    if need == Need::Full {
        refusals.push(("403", &["read_only_token"]));
    }
    refusals
}

/// Those of what reads the path, the query and the body for a handler.
fn of_handed(path: &str, operation: &Operation) -> Vec<Refusal> {
    let mut all: Vec<Refusal> = vec![("413", &["body_too_large"])];
    if path != METRICS {
        all.push(("422", &["invalid_field"]));
    }
    if path.contains('{') {
        all.push(("404", &["not_found"]));
    }
    match &operation.request_body {
        Some(RefOr::T(body)) if body.content.contains_key(JSON) => {
            all.push(("400", &["malformed_json", "body_interrupted"]));
            all.push(("415", &["unsupported_media_type"]));
        }
        Some(_) => all.push(("400", &["body_interrupted"])),
        None => {}
    }
    all
}

fn add(responses: &mut Responses, status: &str, codes: &[&str]) {
    let response = responses
        .responses
        .entry(status.to_owned())
        .or_insert_with(|| {
            let problem = Content::new(Some(Ref::from_schema_name("Problem")));
            let mut response = Response::new("");
            response
                .content
                .insert(PROBLEM.to_owned(), RefOr::T(problem));
            RefOr::T(response)
        });
    let RefOr::T(response) = response else { return };
    for code in codes {
        let code = format!("`{code}`");
        if response.description.contains(&code) {
            continue;
        }
        if !response.description.is_empty() {
            response.description.push_str(", ");
        }
        response.description.push_str(&code);
    }
}

/// Bytes that are not JSON: utoipa takes them for lists of numbers.
fn bytes(operation: &mut Operation) {
    let mut contents: Vec<(&String, &mut RefOr<Content>)> = Vec::new();
    if let Some(RefOr::T(body)) = &mut operation.request_body {
        contents.extend(&mut body.content);
    }
    for response in operation.responses.responses.values_mut() {
        if let RefOr::T(response) = response {
            contents.extend(&mut response.content);
        }
    }
    for (media_type, content) in contents {
        if let RefOr::T(content) = content
            && media_type != JSON
            && matches!(content.schema, Some(RefOr::T(Schema::Array(_))))
        {
            let schema = ObjectBuilder::new()
                .schema_type(Type::String)
                .format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary)));
            content.schema = Some(schema.into());
        }
    }
}
