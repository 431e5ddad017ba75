//! TLS: certificate and key from PEM files, with errors that say which file is wrong and how.

use std::{
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

use crate::config::TlsConfig;

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
    let TlsConfig { cert, key } = config;
    let chain = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| read_error("certificate", cert, &error))?;
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
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Setup)?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|source| TlsError::Mismatch {
            cert: cert.clone(),
            key: key.clone(),
            source,
        })?;
    server.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(ServerTls {
        config: Arc::new(server),
        certificate,
    })
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
