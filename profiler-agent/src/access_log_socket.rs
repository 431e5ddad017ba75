//! Where `serve` receives access logs: the socket is bound before anything else starts, and is read once the rest is there.

use std::{
    io,
    net::{SocketAddr, TcpListener},
};

use profiler_engine::access_logs::{AccessLogs, LogsWatch};
use profiler_host::process::ProcessTable;
use profiler_server_tls::{TlsError, load_mutual};
use tokio_rustls::TlsAcceptor;

use crate::config::AccessLogsConfig;

#[derive(Debug, thiserror::Error)]
pub enum AccessLogSocketError {
    #[error("receive access logs: {0}")]
    Tls(#[from] TlsError),
    #[error(
        "receive access logs on {address}: {source}; where another agent receives them already, ask that one for a task of requests, or stop it; else choose another address \
         with --access-logs"
    )]
    Listen {
        address: SocketAddr,
        source: io::Error,
    },
    #[error("start the threads that receive access logs: {0}")]
    Start(#[from] io::Error),
}

/// A bound socket that nothing reads yet.
#[expect(missing_debug_implementations, reason = "TlsAcceptor has none")]
pub struct AccessLogSocket {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
}

impl AccessLogSocket {
    /// Reads certificates and binds the address; port 0 takes a free one.
    pub fn bind(config: &AccessLogsConfig) -> Result<Self, AccessLogSocketError> {
        let AccessLogsConfig { listen, tls } = config;
        let tls = tls.as_ref().map(load_mutual).transpose()?;
        let failed = |source| AccessLogSocketError::Listen {
            address: *listen,
            source,
        };
        let listener = TcpListener::bind(listen).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self {
            listener,
            address,
            tls: tls.map(TlsAcceptor::from),
        })
    }

    /// Receives for the agent's life. Without `asks_envoys` what is missing is not known.
    pub fn start(
        self,
        table: ProcessTable,
        asks_envoys: bool,
    ) -> Result<ReceivedAccessLogs, AccessLogSocketError> {
        let Self {
            listener,
            address,
            tls,
        } = self;
        let how = if tls.is_some() { "TLS" } else { "plain text" };
        let logs = AccessLogs::start(listener, tls, table, asks_envoys)?;
        tracing::info!(%address, how, "access logs are received");
        Ok(ReceivedAccessLogs {
            logs,
            listen: Some(address),
            watch: LogsWatch::off(),
        })
    }
}

/// What is received, and where. By default nothing.
#[derive(Clone, Debug, Default)]
pub struct ReceivedAccessLogs {
    pub logs: AccessLogs,
    pub listen: Option<SocketAddr>,
    /// What is made of it all the time.
    pub watch: LogsWatch,
}
