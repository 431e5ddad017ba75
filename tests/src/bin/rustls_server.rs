//! An HTTPS server and client with rustls, as `tests/workloads/tls_peer.go`:
//!
//!     rustls-server serve CERTIFICATE KEY
//!     rustls-server call BASE CERTIFICATE h1 TIMES held|at-once

use std::{convert::Infallible, sync::Arc};

use anyhow::{Context as _, Result, bail};
use http::{
    Method, Request, StatusCode,
    header::{CONTENT_LENGTH, HOST},
};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Response,
    body::{Bytes, Incoming},
    client::conn::http1::SendRequest,
    service::service_fn,
};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use rustix::process::{Signal, getpid, kill_process};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{
    TlsAcceptor, TlsConnector,
    rustls::{
        ClientConfig, RootCertStore, ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
    },
};

const BODY: &[u8] = b"as asked";
/// Largest body that is answered.
const LARGEST: usize = 1 << 20;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["serve", certificate, key] => serve(certificate, key).await,
        ["call", base, certificate, "h1", times, begins] => {
            if *begins == "held" {
                kill_process(getpid(), Signal::STOP).context("stop this process")?;
            }
            call(base, certificate, times.parse().context("TIMES")?).await
        }
        _ => bail!(
            "the arguments are serve CERTIFICATE KEY or call BASE CERTIFICATE h1 TIMES held|at-once"
        ),
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let is_head = request.method() == Method::HEAD;
    // A client that goes away while it sends is answered in vain.
    drop(request.into_body().collect().await);
    let (kind, last) = path[1..].split_once('/').unwrap_or((&path[1..], ""));
    let number = last.parse().unwrap_or(200).min(LARGEST);
    let mut answer = Response::new(Full::from(BODY));
    match kind {
        "files" => *answer.body_mut() = Full::from(vec![b'n'; number]),
        "status" => {
            let status = u16::try_from(number).unwrap_or(200);
            *answer.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
            if status == 204 {
                *answer.body_mut() = Full::default();
            }
        }
        _ => {}
    }
    if is_head {
        // Over HTTP/2 hyper would send the body.
        *answer.body_mut() = Full::default();
        answer.headers_mut().insert(CONTENT_LENGTH, number.into());
    }
    Ok(answer)
}

async fn serve(certificate: &str, key: &str) -> Result<()> {
    let certificate = CertificateDer::from_pem_file(certificate).context("read the certificate")?;
    let key = PrivateKeyDer::from_pem_file(key).context("read the key")?;
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .context("use the certificate")?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.context("listen")?;
    println!("{}", listener.local_addr().context("own address")?.port());
    loop {
        let (stream, _) = listener.accept().await.context("accept")?;
        // As many do: greeted in one place of memory, one after the other, and served in another.
        let Ok(stream) = acceptor.accept(stream).await else {
            // A connection that ends badly is the peer's affair.
            continue;
        };
        tokio::spawn(async move {
            let server = auto::Builder::new(TokioExecutor::new());
            let stream = TokioIo::new(stream);
            drop(server.serve_connection(stream, service_fn(answer)).await);
        });
    }
}

async fn call(base: &str, authority: &str, times: u32) -> Result<()> {
    let authority = CertificateDer::from_pem_file(authority).context("read the certificate")?;
    let mut roots = RootCertStore::empty();
    roots.add(authority).context("use the certificate")?;
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let host = base.strip_prefix("https://").context("BASE is not https")?;
    let stream = TcpStream::connect(host).await.context("connect")?;
    let name = ServerName::try_from("127.0.0.1").context("the server's name")?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream);
    let stream = TokioIo::new(stream.await.context("greet the server")?);
    let (mut client, connection) = hyper::client::conn::http1::handshake(stream).await?;
    let connection = tokio::spawn(connection);
    for _ in 0..times {
        for path in [
            "/files/0",
            "/files/700",
            "/files/50000",
            "/status/204",
            "/status/404",
        ] {
            one(&mut client, host, "GET", path, 0).await?;
        }
        one(&mut client, host, "POST", "/upload", 3000).await?;
    }
    drop(client);
    connection.await?.context("the connection's end")
}

async fn one(
    client: &mut SendRequest<Full<Bytes>>,
    host: &str,
    method: &str,
    path: &str,
    size: usize,
) -> Result<()> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, host);
    let request = request.body(Full::from(vec![b'b'; size]))?;
    let answer = client.send_request(request).await.context("ask")?;
    let status = answer.status().as_u16();
    let received = answer.into_body().collect().await?.to_bytes().len();
    println!("{method} {path} {status} {size} {received}");
    Ok(())
}
