//! Settings about where access logs of Envoys are received.

use std::net::SocketAddr;

use profiler_server_tls::{MutualTlsConfig, TlsConfig};

use super::{
    resolved::{address, parse_or, path, switch},
    settings::{ConfigError, Setting, Settings},
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessLogsConfig {
    pub listen: SocketAddr,
    /// `None`: in plain text.
    pub tls: Option<MutualTlsConfig>,
}

const ADDRESS: &str = "access_logs";
const PLAINTEXT: &str = "access_logs_plaintext";
/// All or none of them.
const FILES: [&str; 3] = [
    "access_logs_tls_cert",
    "access_logs_tls_key",
    "access_logs_tls_client_ca",
];

pub(super) fn access_logs(settings: &Settings) -> Result<Option<AccessLogsConfig>, ConfigError> {
    let is_plaintext = parse_or(settings, PLAINTEXT, false, switch)?;
    let plaintext = settings.get(PLAINTEXT).filter(|_| is_plaintext);
    let Some(setting) = settings.get(ADDRESS) else {
        let unused = FILES.iter().find_map(|key| settings.get(key));
        return match unused.or(plaintext) {
            Some(Setting { origin, .. }) => Err(ConfigError::Conflict(format!(
                "{origin} is for access logs, which are not received: add --access-logs ADDR:PORT, or remove it"
            ))),
            None => Ok(None),
        };
    };
    let listen = address(setting)?;
    let tls = tls(settings)?;
    if let (Some(Setting { origin, .. }), Some(_)) = (plaintext, &tls) {
        return Err(ConfigError::Conflict(format!(
            "{origin} and certificates for access logs contradict each other: give one of them"
        )));
    }
    if !listen.ip().is_loopback() && tls.is_none() && plaintext.is_none() {
        return Err(ConfigError::Conflict(format!(
            "receiving access logs on {listen} needs TLS because it is not loopback: give --access-logs-tls-cert, \
             --access-logs-tls-key and --access-logs-tls-client-ca, listen on 127.0.0.1, or add \
             --access-logs-plaintext if only Envoys can reach that address"
        )));
    }
    Ok(Some(AccessLogsConfig { listen, tls }))
}

fn tls(settings: &Settings) -> Result<Option<MutualTlsConfig>, ConfigError> {
    match FILES.map(|key| settings.get(key)) {
        [None, None, None] => Ok(None),
        [Some(cert), Some(key), Some(client_ca)] => Ok(Some(MutualTlsConfig {
            server: TlsConfig {
                cert: path(cert)?,
                key: path(key)?,
            },
            client_ca: path(client_ca)?,
        })),
        _ => {
            let missing = FILES.iter().filter(|key| settings.get(key).is_none());
            let flags: Vec<String> = missing
                .map(|key| format!("--{} FILE", key.replace('_', "-")))
                .collect();
            Err(ConfigError::Conflict(format!(
                "TLS for access logs needs a certificate, its key and the authority of the clients: add {}",
                flags.join(" and ")
            )))
        }
    }
}
