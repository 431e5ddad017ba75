//! One GET at a time, bounded in bytes and time.

use std::{io::Read as _, net::SocketAddr, time::Duration};

/// Longest header of an answer; Envoy's has some hundred bytes.
const HEADER_LIMIT: usize = 16 * 1024;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("{0}")]
    Http(#[from] Box<ureq::Error>),
    #[error("the answer has status {0}")]
    Status(u16),
    #[error("read the answer: {0}")]
    Read(std::io::Error),
    #[error("the answer exceeds {0} bytes and is not read further")]
    TooLarge(usize),
}

/// Asks one address over plain HTTP.
#[derive(Debug)]
pub(super) struct Client {
    agent: ureq::Agent,
    address: SocketAddr,
}

impl Client {
    /// `limit` is the longest time for one whole answer.
    pub(super) fn new(address: SocketAddr, limit: Duration) -> Self {
        let agent = ureq::Agent::config_builder()
            .timeout_global(Some(limit))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            // The environment of the agent may name one.
            .proxy(None)
            .max_response_header_size(HEADER_LIMIT)
            .max_idle_connections(1)
            .max_idle_connections_per_host(1)
            .user_agent(concat!("profiler-agent/", env!("CARGO_PKG_VERSION")))
            .build()
            .into();
        Self { agent, address }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The body of the answer; more than `limit` bytes are an error.
    pub(super) fn get(&self, path: &str, limit: usize) -> Result<Vec<u8>, ClientError> {
        let url = format!("http://{}{path}", self.address);
        let mut response = self.agent.get(url).call().map_err(Box::new)?;
        let status = response.status().as_u16();
        if status != 200 {
            return Err(ClientError::Status(status));
        }
        let mut body = Vec::new();
        let reader = response.body_mut().as_reader();
        // One byte more than allowed is enough to see that there is more.
        let mut reader = reader.take(limit as u64 + 1);
        reader.read_to_end(&mut body).map_err(ClientError::Read)?;
        if body.len() > limit {
            return Err(ClientError::TooLarge(limit));
        }
        Ok(body)
    }
}
