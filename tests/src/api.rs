//! A client of the agent's HTTP API.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::{folded::Folded, wait::wait_for};

const REQUEST_LIMIT: Duration = Duration::from_mins(1);

/// Talks to one agent.
#[derive(Clone, Debug)]
pub struct Api {
    pub address: SocketAddr,
    pub token: Option<String>,
    scheme: &'static str,
    http: ureq::Agent,
}

/// Any answer, also an error.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body)
            .with_context(|| format!("not JSON (status {}): {}", self.status, self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

impl Api {
    pub fn new(address: SocketAddr, token: Option<String>) -> Self {
        Self::with("http", address, token, TlsConfig::default())
    }

    /// The agent whose address `profiler-agent url` has printed, with the token.
    pub fn of_url(url: &str) -> Result<Self> {
        let parts = url
            .trim()
            .strip_prefix("http://")
            .and_then(|rest| rest.split_once("/#token="))
            .with_context(|| format!("no address with a token: {url}"))?;
        let address = parts.0.parse().context("the address of an agent")?;
        Ok(Self::new(address, Some(parts.1.to_owned())))
    }

    /// A server that shows a certificate of `authority` (PEM).
    pub fn with_tls(address: SocketAddr, token: Option<String>, authority: &str) -> Result<Self> {
        let authority =
            Certificate::from_pem(authority.as_bytes()).context("read a certificate")?;
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(&[authority]))
            .build();
        Ok(Self::with("https", address, token, tls))
    }

    fn with(
        scheme: &'static str,
        address: SocketAddr,
        token: Option<String>,
        tls: TlsConfig,
    ) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(REQUEST_LIMIT))
            .tls_config(tls)
            .build();
        Self {
            address,
            token,
            scheme,
            http: config.into(),
        }
    }

    /// The same agent, asked with another token or none.
    #[must_use]
    pub fn with_token(&self, token: Option<&str>) -> Self {
        Self {
            token: token.map(str::to_owned),
            ..self.clone()
        }
    }

    fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    /// Any request; `body` is sent as JSON.
    pub fn send(&self, method: &str, path: &str, body: Option<&str>) -> Result<Answer> {
        let body = body.map(|text| ("application/json", text.as_bytes().to_vec()));
        self.send_as(method, path, body)
    }

    /// Sends a file.
    pub fn upload(&self, method: &str, path: &str, content: Vec<u8>) -> Result<Answer> {
        self.send_as(method, path, Some(("application/octet-stream", content)))
    }

    /// Any request with a body of any media type.
    pub fn send_as(
        &self,
        method: &str,
        path: &str,
        body: Option<(&str, Vec<u8>)>,
    ) -> Result<Answer> {
        let mut request = ureq::http::Request::builder()
            .method(method)
            .uri(self.url(path));
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let sent = match body {
            Some((media_type, body)) => {
                let request = request.header("content-type", media_type);
                self.http.run(request.body(body).context("build request")?)
            }
            None => self.http.run(request.body(()).context("build request")?),
        };
        let mut response = sent.with_context(|| format!("{method} {path}"))?;
        let headers = response.headers().iter();
        let headers = headers
            .map(|(name, value)| {
                (
                    name.to_string(),
                    String::from_utf8_lossy(value.as_bytes()).into_owned(),
                )
            })
            .collect();
        let status = response.status().as_u16();
        let limit = response.body_mut().with_config().limit(256 << 20);
        let body = limit
            .read_to_vec()
            .with_context(|| format!("{method} {path}: read body"))?;
        Ok(Answer {
            status,
            headers,
            body,
        })
    }

    pub fn get(&self, path: &str) -> Result<Answer> {
        self.send("GET", path, None)
    }

    /// GET that must succeed with JSON.
    pub fn get_json(&self, path: &str) -> Result<Value> {
        expect_status(self.get(path)?, 200, path)?.json()
    }

    /// Creates a task and returns its id.
    pub fn create_task(&self, specification: &Value) -> Result<String> {
        let answer = self.send("POST", "/api/v1/tasks", Some(&specification.to_string()))?;
        let task = expect_status(answer, 201, "POST /api/v1/tasks")?.json()?;
        let id = task["id"]
            .as_str()
            .with_context(|| format!("no id in {task}"))?;
        Ok(id.to_owned())
    }

    pub fn task(&self, id: &str) -> Result<Value> {
        self.get_json(&format!("/api/v1/tasks/{id}"))
    }

    pub fn stop_task(&self, id: &str) -> Result<Value> {
        let path = format!("/api/v1/tasks/{id}/stop");
        expect_status(self.send("POST", &path, None)?, 200, &path)?.json()
    }

    /// Waits until the task is in one of `states`; an error if it ends in another.
    pub fn wait_task(&self, id: &str, states: &[&str], limit: Duration) -> Result<Value> {
        let what = format!("task {id} is {}", states.join(" or "));
        let mut last = Value::Null;
        let found = wait_for(&what, limit, || match self.task(id) {
            Ok(task) => {
                last = task.clone();
                let state = task["state"].as_str().unwrap_or("");
                let over = matches!(state, "finished" | "failed" | "cancelled");
                (over || states.contains(&state)).then_some(task)
            }
            Err(_) => None,
        });
        let task = found.with_context(|| format!("last seen: {last}"))?;
        if !states.iter().any(|state| task["state"] == **state) {
            bail!("task {id} should be {}: {task}", states.join(" or "));
        }
        Ok(task)
    }

    /// Waits until the task records: it has a start once the kernel side is attached.
    pub fn wait_sampling(&self, id: &str, limit: Duration) -> Result<()> {
        let what = format!("task {id} records");
        let state = wait_for(&what, limit, || {
            let task = self.task(id).ok()?;
            let records = task["started_at_ns"].is_u64();
            (records || task["state"] == "failed").then_some((records, task))
        });
        let (records, task) = state?;
        ensure!(records, "task {id} failed: {task}");
        Ok(())
    }

    /// The task's profile in a format, with more query parameters such as `&tid=7`.
    pub fn profile(&self, id: &str, format: &str, more: &str) -> Result<Answer> {
        let path = format!("/api/v1/tasks/{id}/profile?format={format}{more}");
        expect_status(self.get(&path)?, 200, &path)
    }

    pub fn folded(&self, id: &str, more: &str) -> Result<Folded> {
        Folded::parse(&self.profile(id, "folded", more)?.text())
    }

    /// Sends `request` as it is and reads the answer until the agent closes or has nothing more
    /// to say: for requests that no proper client would send.
    pub fn send_raw(&self, request: &[u8]) -> Result<Answer> {
        let mut stream = TcpStream::connect(self.address).context("connect")?;
        stream
            .set_read_timeout(Some(REQUEST_LIMIT))
            .context("set timeout")?;
        stream
            .set_write_timeout(Some(REQUEST_LIMIT))
            .context("set timeout")?;
        // A server may answer and close before it has read everything.
        let sent = stream.write_all(request);
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        ensure!(
            !answer.is_empty(),
            "no answer (sending: {sent:?}, reading: {read:?})"
        );
        parse_answer(&answer)
    }
}

/// Status, head and body of an answer of HTTP/1.
pub(crate) fn parse_answer(bytes: &[u8]) -> Result<Answer> {
    let end = bytes
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .with_context(|| format!("no end of head in {:?}", String::from_utf8_lossy(bytes)))?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.lines();
    let status = lines
        .next()
        .and_then(|line| line.split(' ').nth(1))
        .and_then(|status| status.parse().ok())
        .with_context(|| format!("no status in {head:?}"))?;
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .collect();
    Ok(Answer {
        status,
        headers,
        body: bytes[end + 4..].to_vec(),
    })
}

fn expect_status(answer: Answer, status: u16, what: &str) -> Result<Answer> {
    ensure!(
        answer.status == status,
        "{what}: status {}: {}",
        answer.status,
        answer.text()
    );
    Ok(answer)
}
