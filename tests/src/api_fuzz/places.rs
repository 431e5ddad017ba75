//! What the document reports about each path and method, with names that exist.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::results::Results;

/// A path of the document.
#[derive(Debug)]
pub(super) struct Place {
    /// As in the document.
    pub(super) template: String,
    /// With names in place of parameters, and the parameters that it must have behind `?`.
    pub(super) path: String,
    /// Methods in capitals, each with the statuses that the document declares.
    pub(super) methods: BTreeMap<String, BTreeSet<u16>>,
    /// Without a token there is no answer.
    pub(super) is_protected: bool,
    /// Answers with events that do not end.
    pub(super) is_stream: bool,
}

/// Every path of a document.
pub(super) fn of(document: &Value, results: &Results) -> Result<Vec<Place>> {
    let paths = document["paths"].as_object();
    let paths = paths.context("the document has no paths")?;
    Ok(paths
        .iter()
        .map(|(template, item)| place(template, item, results))
        .collect())
}

fn place(template: &str, item: &Value, results: &Results) -> Place {
    let operations = item.as_object().into_iter().flatten();
    let operations: Vec<(&String, &Value)> = operations
        .filter(|(_, operation)| operation["responses"].is_object())
        .collect();
    let methods = operations
        .iter()
        .map(|(method, operation)| (method.to_uppercase(), statuses(operation)))
        .collect();
    Place {
        template: template.to_owned(),
        path: path(template, results),
        methods,
        is_protected: operations
            .iter()
            .all(|(_, operation)| operation.get("security").is_none()),
        is_stream: template.ends_with("/events"),
    }
}

fn statuses(operation: &Value) -> BTreeSet<u16> {
    let responses = operation["responses"].as_object().into_iter().flatten();
    responses
        .filter_map(|(status, _)| status.parse().ok())
        .collect()
}

/// The template with names that exist.
fn path(template: &str, results: &Results) -> String {
    let first = |names: &[String]| names.first().cloned().unwrap_or_else(|| "0".to_owned());
    let task = if template.contains("/edges") || template.ends_with("/requests") {
        // Kinds in the order in which they are made: the fifth watches connections and requests.
        results.tasks.get(4).cloned()
    } else {
        results.tasks.first().cloned()
    };
    let task = task.unwrap_or_else(|| "0".to_owned());
    let id = if template.starts_with("/api/v1/checkups/") {
        first(&results.checkups)
    } else if template.starts_with("/api/v1/processes/") {
        first(&results.processes)
    } else {
        task.clone()
    };
    let path = template
        .replace("{id}", &id)
        .replace("{edge}", &first(&results.edges))
        .replace("{build_id}", "0123456789abcdef");
    match template {
        "/api/v1/diff" => format!("{path}?a={task}&b={task}"),
        "/api/v1/checkups/compare" => {
            let checkup = first(&results.checkups);
            format!("{path}?a={checkup}&b={checkup}")
        }
        "/api/v1/tasks/{id}/profile" => format!("{path}?format=folded"),
        _ => path,
    }
}
