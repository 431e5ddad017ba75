//! TLS of servers: certificates and keys from PEM files, with errors that say which file is wrong and how.

use std::{
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    ConfigBuilder, RootCertStore, ServerConfig, WantsVerifier,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};

/// Files of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsConfig {
    /// The chain, the server's own certificate first.
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// The same where clients show certificates as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MutualTlsConfig {
    pub server: TlsConfig,
    /// What signs the certificates of the clients.
    pub client_ca: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("read TLS {what} {}: {detail}", path.display())]
    Read {
        what: &'static str,
        path: PathBuf,
        detail: String,
    },
    #[error("TLS private key {} can be read by every user (mode {mode:04o}): chmod 600 it", path.display())]
    Readable { path: PathBuf, mode: u32 },
    #[error("TLS certificate file {} holds no certificate: give a PEM file with the chain, the server's own first", path.display())]
    NoCertificate { path: PathBuf },
    #[error("TLS client CA {} holds no certificate: give a PEM file with the certificates that sign those of the clients", path.display())]
    NoAuthority { path: PathBuf },
    #[error("TLS client CA {} cannot be used: {source}", path.display())]
    Authority {
        path: PathBuf,
        source: rustls::Error,
    },
    #[error("TLS certificate {} and key {} do not work together: {source}", cert.display(), key.display())]
    Mismatch {
        cert: PathBuf,
        key: PathBuf,
        source: rustls::Error,
    },
    #[error("set up TLS: {0}")]
    Setup(rustls::Error),
}

/// What a server with TLS has.
#[derive(Clone, Debug)]
pub struct ServerTls {
    pub config: Arc<ServerConfig>,
    /// The server's own, which says by which addresses it is asked.
    pub certificate: CertificateDer<'static>,
}

/// Reads the files and builds the server's configuration (TLS 1.2 and 1.3, HTTP/1.1).
pub fn load(config: &TlsConfig) -> Result<ServerTls, TlsError> {
    let ChainAndKey {
        certificate,
        chain,
        key,
    } = chain_and_key(config)?;
    let server = builder()?
        .with_no_client_auth()
        .with_single_cert(chain, key);
    let mut server = server.map_err(|source| mismatch(config, source))?;
    server.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(ServerTls {
        config: Arc::new(server),
        certificate,
    })
}

/// The same for a server that clients reach with a certificate only (TLS 1.2 and 1.3, HTTP/2).
pub fn load_mutual(config: &MutualTlsConfig) -> Result<Arc<ServerConfig>, TlsError> {
    let MutualTlsConfig { server, client_ca } = config;
    let ChainAndKey {
        certificate: _,
        chain,
        key,
    } = chain_and_key(server)?;
    let path = || client_ca.clone();
    let mut authorities = RootCertStore::empty();
    for certificate in certificates("client CA", client_ca)? {
        let added = authorities.add(certificate);
        added.map_err(|source| TlsError::Authority {
            path: path(),
            source,
        })?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    // It fails without authorities, and for lists of revoked certificates, which there are none of.
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), provider)
        .build()
        .map_err(|_| TlsError::NoAuthority { path: path() })?;
    let configured = builder()?
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key);
    let mut configured = configured.map_err(|source| mismatch(server, source))?;
    configured.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(configured))
}

fn builder() -> Result<ConfigBuilder<ServerConfig, WantsVerifier>, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Setup)
}

struct ChainAndKey {
    /// The first of the chain.
    certificate: CertificateDer<'static>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

fn chain_and_key(config: &TlsConfig) -> Result<ChainAndKey, TlsError> {
    let TlsConfig { cert, key } = config;
    let chain = certificates("certificate", cert)?;
    let Some(certificate) = chain.first().cloned() else {
        return Err(TlsError::NoCertificate { path: cert.clone() });
    };
    let private = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| read_error("private key", key, &error))?;
    // What cannot be looked at is said when it is read.
    let mode = std::fs::metadata(key).map_or(0, |data| data.permissions().mode() & 0o7777);
    if mode & 0o004 != 0 {
        let path = key.clone();
        return Err(TlsError::Readable { path, mode });
    }
    Ok(ChainAndKey {
        certificate,
        chain,
        key: private,
    })
}

fn certificates(what: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| read_error(what, path, &error))
}

fn mismatch(config: &TlsConfig, source: rustls::Error) -> TlsError {
    TlsError::Mismatch {
        cert: config.cert.clone(),
        key: config.key.clone(),
        source,
    }
}

fn read_error(what: &'static str, path: &Path, error: &rustls::pki_types::pem::Error) -> TlsError {
    let detail = match error {
        rustls::pki_types::pem::Error::Io(error) => error.to_string(),
        rustls::pki_types::pem::Error::NoItemsFound => {
            format!("the file holds no {what} in PEM form")
        }
        other => other.to_string(),
    };
    TlsError::Read {
        what,
        path: path.to_owned(),
        detail,
    }
}

#[cfg(test)]
mod tests;
