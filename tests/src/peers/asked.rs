//! What a client asked, and what came back.

use std::{collections::BTreeMap, fmt};

use anyhow::{Result, ensure};
use serde_json::Value;

/// A request as the agent must report it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    pub method: String,
    /// The path with its query masked; for what has no paths the route: a command, a statement.
    pub path: String,
    /// `200`, `NXDOMAIN`, `ok`.
    pub status: String,
    /// Bytes of the body or the message; `None`: the client does not know.
    pub request_bytes: Option<u64>,
    pub response_bytes: Option<u64>,
    /// The agent may say that it does not know the sizes; wrong ones it must not tell.
    pub sizes_may_be_unknown: bool,
}

impl Asked {
    /// One whose sizes the client does not know.
    pub fn new(method: &str, path: &str, status: &str) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            status: status.to_owned(),
            request_bytes: None,
            response_bytes: None,
            sizes_may_be_unknown: false,
        }
    }

    #[must_use]
    pub fn sizes(mut self, request_bytes: u64, response_bytes: u64) -> Self {
        self.request_bytes = Some(request_bytes);
        self.response_bytes = Some(response_bytes);
        self
    }

    /// A sample of the agent's JSON.
    pub fn from_sample(sample: &Value) -> Self {
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Null => "not known".to_owned(),
            other => other.to_string(),
        };
        let names = ["path", "route"].map(|name| &sample[name]);
        let path = names.into_iter().find(|name| !name.is_null());
        let path = path.unwrap_or(&Value::Null);
        Self {
            method: text(&sample["method"]),
            path: text(path),
            status: text(&sample["status"]),
            request_bytes: sample["request_bytes"].as_u64(),
            response_bytes: sample["response_bytes"].as_u64(),
            sizes_may_be_unknown: false,
        }
    }

    fn kind(&self) -> Kind<'_> {
        (&self.method, &self.path, &self.status)
    }

    /// Whether `seen` is a report of this request.
    fn fits(&self, seen: &Self) -> bool {
        let size = |asked: Option<u64>, seen: Option<u64>| {
            let allowed = seen.is_none() && self.sizes_may_be_unknown;
            asked.is_none() || asked == seen || allowed
        };
        self.kind() == seen.kind()
            && size(self.request_bytes, seen.request_bytes)
            && size(self.response_bytes, seen.response_bytes)
    }

    /// Whether the answer is that of HTTP for an error.
    pub fn is_http_error(&self) -> bool {
        self.status.parse().is_ok_and(|status: u16| status >= 400)
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = |bytes: Option<u64>| bytes.map_or("?".to_owned(), |bytes| bytes.to_string());
        let (sent, received) = (size(self.request_bytes), size(self.response_bytes));
        let Self {
            method,
            path,
            status,
            ..
        } = self;
        write!(out, "{method} {path} -> {status} ({sent}/{received} bytes)")
    }
}

/// Method, path and status.
type Kind<'a> = (&'a str, &'a str, &'a str);

/// Most differences that a message lists of each kind.
const LISTED: usize = 12;

/// Checks that every request was seen once, and nothing else.
pub fn compare(asked: &[Asked], seen: &[Asked]) -> Result<()> {
    let mut rest: BTreeMap<Kind<'_>, Vec<&Asked>> = BTreeMap::new();
    for one in seen {
        rest.entry(one.kind()).or_default().push(one);
    }
    // Those of known sizes first, so that one of unknown size does not take their report.
    let mut asked: Vec<&Asked> = asked.iter().collect();
    let is_vague = |one: &Asked| one.response_bytes.is_none() || one.request_bytes.is_none();
    asked.sort_by_key(|one| (one.sizes_may_be_unknown, is_vague(one)));
    let mut missing = Vec::new();
    let all = asked.len();
    for one in asked {
        let alike = rest.entry(one.kind()).or_default();
        match alike.iter().position(|seen| one.fits(seen)) {
            Some(place) => drop(alike.swap_remove(place)),
            None => missing.push(one),
        }
    }
    let rest: Vec<&Asked> = rest.into_values().flatten().collect();
    let list = |requests: &[&Asked]| -> String {
        let listed = requests.iter().take(LISTED);
        let lines: Vec<String> = listed.map(|request| format!("\n  {request}")).collect();
        lines.concat()
    };
    ensure!(
        missing.is_empty() && rest.is_empty(),
        "of {all} requests {} are not reported:{}\nand {} are reported that were not sent:{}",
        missing.len(),
        list(&missing),
        rest.len(),
        list(&rest)
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Asked, compare};

    #[test]
    fn a_request_that_is_missing_doubled_or_of_another_size_is_a_difference() {
        let get = |path| Asked::new("GET", path, "200");
        let asked = [get("/a"), get("/a").sizes(0, 5)];
        assert!(compare(&asked, &[get("/a").sizes(0, 5), get("/a").sizes(0, 9)]).is_ok());
        assert!(compare(&asked, &[get("/a").sizes(0, 5)]).is_err());
        assert!(compare(&asked, &[get("/a").sizes(0, 6), get("/a").sizes(0, 7)]).is_err());
        let mut large = get("/a").sizes(0, 5);
        large.sizes_may_be_unknown = true;
        assert!(compare(std::slice::from_ref(&large), &[get("/a")]).is_ok());
        assert!(compare(&[large], &[get("/a").sizes(0, 4)]).is_err());
        let error = compare(&asked[..1], &[get("/a"), get("/a")]).unwrap_err();
        assert!(error.to_string().contains("1 are reported"), "{error}");
    }
}
