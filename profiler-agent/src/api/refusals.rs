//! What may refuse a request before its handler sees it, in the OpenAPI document.

use utoipa::openapi::{
    Content, OpenApi, PathItem, Ref, RefOr, Response, Responses, path::Operation,
};

use super::needs::{Need, listed};

/// Adds to each operation the refusals of the layers around the handlers, with their codes.
pub(super) fn declare(document: &mut OpenApi) {
    for (route, item) in &mut document.paths.paths {
        for (method, operation) in operations(item) {
            let need = listed(method, route).unwrap_or(Need::Full);
            for (status, codes) in refusals(need) {
                add(&mut operation.responses, status, codes);
            }
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

/// Statuses with the codes that come with them.
fn refusals(need: Need) -> Vec<(&'static str, &'static [&'static str])> {
    let mut refusals: Vec<(_, &[_])> = vec![
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

fn add(responses: &mut Responses, status: &str, codes: &[&str]) {
    let response = responses
        .responses
        .entry(status.to_owned())
        .or_insert_with(|| {
            let problem = Content::new(Some(Ref::from_schema_name("Problem")));
            let mut response = Response::new("");
            response
                .content
                .insert("application/problem+json".to_owned(), RefOr::T(problem));
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
