//! A client of the API server: objects as JSON, paths as the API server names them.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use crate::api::{Answer, Api};

/// The field manager of [`Client::apply`].
const FIELD_MANAGER: &str = "profiler-tests";

/// A client with a certain token.
#[derive(Clone, Debug)]
pub struct Client {
    api: Api,
}

/// What a watch reports about an object.
#[derive(Clone, Debug)]
pub struct Event {
    /// `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK`, or `ERROR` with a status in place of the object.
    pub kind: String,
    pub object: Value,
}

impl Client {
    pub fn new(address: SocketAddr, token: &str, authority: &str) -> Result<Self> {
        let api = Api::with_tls(address, Some(token.to_owned()), authority)?;
        Ok(Self { api })
    }

    /// Whether the API server has started all that it consists of.
    pub fn is_ready(&self) -> bool {
        self.api
            .get("/readyz")
            .is_ok_and(|answer| answer.status == 200)
    }

    /// The status of a GET: what this client may see.
    pub fn status_of(&self, path: &str) -> Result<u16> {
        Ok(self.api.get(path)?.status)
    }

    pub fn get(&self, path: &str) -> Result<Value> {
        accepted(self.api.get(path)?, path)
    }

    pub fn post(&self, path: &str, body: &Value) -> Result<Value> {
        accepted(self.api.send("POST", path, Some(&body.to_string()))?, path)
    }

    /// Creates an object in the namespace that it names; what became of it.
    pub fn create(&self, object: &Value) -> Result<Value> {
        self.post(&self.collection(object)?, object)
    }

    /// Creates an object or makes it like this, as `kubectl apply --server-side` does.
    pub fn apply(&self, object: &Value) -> Result<Value> {
        let path = format!(
            "{}?fieldManager={FIELD_MANAGER}&force=true",
            self.path(object)?
        );
        self.patch(&path, "application/apply-patch+yaml", object)
    }

    /// Changes some fields.
    pub fn merge(&self, object: &Value, change: &Value) -> Result<Value> {
        let path = self.path(object)?;
        self.patch(&path, "application/merge-patch+json", change)
    }

    /// Reports a status as the kubelet does: by the subresource.
    pub fn set_status(&self, object: &Value, status: &Value) -> Result<Value> {
        let path = format!("{}/status", self.path(object)?);
        let change = json!({ "status": status });
        self.patch(&path, "application/merge-patch+json", &change)
    }

    /// Asks for an object to be removed. With a grace period a pod stays, marked, until its kubelet asks again without.
    pub fn delete(&self, object: &Value, grace: Duration) -> Result<()> {
        let path = self.path(object)?;
        let body = json!({ "gracePeriodSeconds": grace.as_secs() }).to_string();
        accepted(self.api.send("DELETE", &path, Some(&body))?, &path).map(drop)
    }

    /// What is reported about a collection for `seconds`, from after `version` on.
    pub fn watch(&self, collection: &str, version: &str, seconds: u32) -> Result<Vec<Event>> {
        let path =
            format!("{collection}?watch=true&resourceVersion={version}&timeoutSeconds={seconds}");
        let answer = self.api.get(&path)?;
        ensure!(answer.status == 200, "{path}: {}", answer.text());
        let text = answer.text();
        let events = text.lines().map(|line| {
            let event: Value = serde_json::from_str(line).context("parse an event")?;
            let kind = event["type"].as_str().context("an event has a type")?;
            Ok(Event {
                kind: kind.to_owned(),
                object: event["object"].clone(),
            })
        });
        events.collect()
    }

    fn patch(&self, path: &str, media_type: &str, body: &Value) -> Result<Value> {
        let body = Some((media_type, body.to_string().into_bytes()));
        accepted(self.api.send_as("PATCH", path, body)?, path)
    }

    /// Where an object is.
    fn path(&self, object: &Value) -> Result<String> {
        let name = text(&object["metadata"]["name"])?;
        Ok(format!("{}/{name}", self.collection(object)?))
    }

    /// Where objects of its kind are; the API server says how it calls them.
    fn collection(&self, object: &Value) -> Result<String> {
        let (version, kind) = (text(&object["apiVersion"])?, text(&object["kind"])?);
        let root = if version.contains('/') { "apis" } else { "api" };
        let group = format!("/{root}/{version}");
        let resources = self.get(&group)?;
        let all = resources["resources"].as_array();
        let resource = all.context("a list of resources")?.iter().find(|resource| {
            // Others are parts of objects.
            resource["kind"] == kind
                && text(&resource["name"]).is_ok_and(|name| !name.contains('/'))
        });
        let resource = resource.with_context(|| format!("{group} has no {kind}"))?;
        let name = text(&resource["name"])?;
        if resource["namespaced"] == true {
            let namespace = text(&object["metadata"]["namespace"]).unwrap_or("default");
            Ok(format!("{group}/namespaces/{namespace}/{name}"))
        } else {
            Ok(format!("{group}/{name}"))
        }
    }
}

fn text(value: &Value) -> Result<&str> {
    value
        .as_str()
        .with_context(|| format!("{value} is not text"))
}

/// The object in an answer, or the API server's own words.
fn accepted(answer: Answer, what: &str) -> Result<Value> {
    if !(200..300).contains(&answer.status) {
        bail!("{what}: status {}: {}", answer.status, answer.text());
    }
    answer.json()
}
