//! An HTTPS server with rustls: `CERTIFICATE KEY`, prints its port and answers everything alike.

use std::{convert::Infallible, sync::Arc};

use anyhow::{Context as _, Result, bail};
use http_body_util::Full;
use hyper::{Response, body::Bytes, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    },
};

const BODY: &[u8] = b"as asked";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [certificate, key] = arguments.as_slice() else {
        bail!("the arguments are CERTIFICATE KEY");
    };
    let certificate = CertificateDer::from_pem_file(certificate).context("read the certificate")?;
    let key = PrivateKeyDer::from_pem_file(key).context("read the key")?;
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .context("use the certificate")?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.context("listen")?;
    println!("{}", listener.local_addr().context("own address")?.port());
    loop {
        let (stream, _) = listener.accept().await.context("accept")?;
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            // A connection that ends badly is the peer's affair.
            let Ok(stream) = acceptor.accept(stream).await else {
                return;
            };
            let answer = service_fn(|_| async {
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(BODY))))
            });
            drop(
                http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), answer)
                    .await,
            );
        });
    }
}
