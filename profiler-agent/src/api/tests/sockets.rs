//! The bound server: real connections, real TLS, the whole application.

use std::{net::SocketAddr, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::oneshot,
    task::JoinHandle,
};

use profiler_server_tls::TlsConfig;

use crate::{
    api::{
        addressing::{Reached, names_us},
        server::{Bounds, Server},
    },
    app::{App, AppError, KernelSide, STOP_DEADLINE},
    config::{
        ServeConfig,
        cli::{AccessArgs, ServeArgs},
        resolve_serve,
    },
};

fn config(data: &Path, change: impl FnOnce(&mut ServeConfig)) -> ServeConfig {
    let args = ServeArgs {
        access: AccessArgs {
            listen: Some("127.0.0.1:0".into()),
            data_dir: Some(data.to_str().unwrap().into()),
            ..AccessArgs::default()
        },
        ..ServeArgs::default()
    };
    let mut config = resolve_serve(&args, None, &|_| None).unwrap();
    change(&mut config);
    config
}

struct Running {
    address: SocketAddr,
    url: String,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Result<(), AppError>>,
}

impl Running {
    fn start(config: ServeConfig) -> Self {
        let app = App::start(config, KernelSide::absent("no kernel side in this test")).unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let (address, url) = (app.origin().address, app.url().to_owned());
        let ended = tokio::spawn(app.run_until(async {
            stopped.await.ok();
        }));
        Self {
            address,
            url,
            stop,
            ended,
        }
    }

    fn token(&self) -> &str {
        self.url.split_once("#token=").unwrap().1
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        tokio::time::timeout(STOP_DEADLINE * 2, self.ended)
            .await
            .unwrap()
            .unwrap()
            .unwrap();
    }

    /// Sends raw bytes and reads until the server closes.
    async fn raw(&self, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request).await.unwrap();
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        tokio::time::timeout(Duration::from_secs(20), read)
            .await
            .unwrap()
            .unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    async fn get(&self, path: &str, host: &str, more: &str) -> String {
        let token = self.token();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n{more}\r\n"
        );
        self.raw(request.as_bytes()).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_served_agent_checks_host_and_origin() {
    let data = tempfile::tempdir().unwrap();
    let agent = Running::start(config(data.path(), |_| {}));
    let port = agent.address.port();
    assert_eq!(
        agent.url,
        format!("http://127.0.0.1:{port}/#token={}", agent.token())
    );
    let token_file = data.path().join("token");
    assert_eq!(
        std::fs::read_to_string(&token_file).unwrap().trim(),
        agent.token()
    );
    assert_eq!(
        std::fs::metadata(&token_file).unwrap().permissions().mode() & 0o777,
        0o600
    );

    let own = format!("127.0.0.1:{port}");
    let good = agent.get("/api/v1/meta", &own, "").await;
    assert!(good.starts_with("HTTP/1.1 200 OK\r\n"), "{good}");
    let by_name = agent
        .get("/healthz", &format!("localhost:{port}"), "")
        .await;
    assert!(by_name.ends_with("{\"status\":\"ok\"}"), "{by_name}");
    let rebound = agent
        .get("/api/v1/meta", &format!("rebind.example:{port}"), "")
        .await;
    assert!(
        rebound.starts_with("HTTP/1.1 403 ") && rebound.contains("\"foreign_host\""),
        "{rebound}"
    );
    let twice = agent
        .get("/api/v1/meta", &own, &format!("Host: {own}\r\n"))
        .await;
    assert!(twice.contains("\"repeated_header\""), "{twice}");
    let absolute = agent
        .get(&format!("http://evil.example:{port}/healthz"), &own, "")
        .await;
    assert!(absolute.contains("\"foreign_host\""), "{absolute}");
    let cross = agent
        .get("/api/v1/meta", &own, "Origin: http://evil.example\r\n")
        .await;
    assert!(cross.contains("\"foreign_origin\""), "{cross}");
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sender_of_ten_megabytes_sees_the_answer() {
    let data = tempfile::tempdir().unwrap();
    let agent = Running::start(config(data.path(), |_| {}));
    let size = 10 << 20;
    let mut request = format!(
        "POST /api/v1/tasks HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n",
        agent.address,
        agent.token()
    )
    .into_bytes();
    request.resize(request.len() + size, b' ');
    let answer = agent.raw(&request).await;
    assert!(
        answer.starts_with("HTTP/1.1 413 ") && answer.contains("\"body_too_large\""),
        "{answer}"
    );
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_streams_do_not_delay_the_end() {
    let data = tempfile::tempdir().unwrap();
    let agent = Running::start(config(data.path(), |_| {}));
    let mut stream = TcpStream::connect(agent.address).await.unwrap();
    let request = format!(
        "GET /api/v1/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        agent.address,
        agent.token()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = [0; 15];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    let begin = std::time::Instant::now();
    agent.stop().await;
    assert!(begin.elapsed() < STOP_DEADLINE, "{:?}", begin.elapsed());
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_agent_leaves_the_first_ones_token_alone() {
    let data = tempfile::tempdir().unwrap();
    let agent = Running::start(config(data.path(), |_| {}));
    let second = App::start(config(data.path(), |_| {}), KernelSide::absent("test"));
    let Err(error) = second else {
        panic!("two agents on one directory")
    };
    assert!(
        error.to_string().starts_with("open the results: "),
        "{error}"
    );
    let kept = std::fs::read_to_string(data.path().join("token")).unwrap();
    assert_eq!(kept.trim(), agent.token());
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_taken_port_is_named() {
    let data = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let config = config(data.path(), |config| config.listen = address);
    let Err(error) = App::start(config, KernelSide::absent("test")) else {
        panic!("bound twice")
    };
    assert_eq!(
        error.to_string(),
        format!(
            "listen on {address}: Address already in use (os error 98); choose another address with --listen"
        )
    );
}

/// A server without an application behind it, on its own task.
fn bare_server(bounds: Bounds) -> (SocketAddr, axum_server::Handle<SocketAddr>) {
    let server = Server::bind(([127, 0, 0, 1], 0).into(), None)
        .unwrap()
        .bounded(bounds);
    let (address, handle) = (server.origin().address, server.handle());
    let router = axum::Router::new().route("/", axum::routing::get(async || "answer"));
    tokio::spawn(server.run(router));
    (address, handle)
}

#[tokio::test]
async fn slow_clients_are_cut_off() {
    let header_time = Duration::from_millis(200);
    let (address, handle) = bare_server(Bounds {
        header_time,
        ..Bounds::default()
    });
    let mut slow = TcpStream::connect(address).await.unwrap();
    slow.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        .await
        .unwrap();
    let mut answer = Vec::new();
    let closed = tokio::time::timeout(Duration::from_mins(1), slow.read_to_end(&mut answer));
    closed.await.expect("closed by the server").ok();
    assert!(!answer.starts_with(b"HTTP/1.1 200"));
    handle.shutdown();
}

#[tokio::test]
async fn silent_connections_are_closed() {
    let (address, handle) = bare_server(Bounds {
        first_byte_time: Duration::from_millis(200),
        ..Bounds::default()
    });
    let mut silent = TcpStream::connect(address).await.unwrap();
    let mut answer = Vec::new();
    let closed = tokio::time::timeout(Duration::from_mins(1), silent.read_to_end(&mut answer));
    closed.await.expect("closed by the server").ok();
    assert!(!answer.starts_with(b"HTTP/1.1 200"));
    handle.shutdown();
}

#[tokio::test]
async fn of_too_many_connections_the_oldest_goes() {
    let (address, handle) = bare_server(Bounds {
        connections: 2,
        ..Bounds::default()
    });
    let mut one = TcpStream::connect(address).await.unwrap();
    let mut two = TcpStream::connect(address).await.unwrap();
    assert_eq!(ask(&mut one, "/", "").await.unwrap(), "HTTP/1.1 200 OK");
    assert_eq!(ask(&mut two, "/", "").await.unwrap(), "HTTP/1.1 200 OK");
    let mut three = TcpStream::connect(address).await.unwrap();
    assert_eq!(ask(&mut three, "/", "").await.unwrap(), "HTTP/1.1 200 OK");
    let mut rest = Vec::new();
    let closed = tokio::time::timeout(Duration::from_mins(1), one.read_to_end(&mut rest));
    closed.await.expect("closed by the server").ok();
    assert_eq!(ask(&mut two, "/", "").await.unwrap(), "HTTP/1.1 200 OK");
    assert_eq!(ask(&mut three, "/", "").await.unwrap(), "HTTP/1.1 200 OK");
    handle.shutdown();
}

/// Sends a request on a connection that stays open, and reads the whole answer; its first line without the end.
async fn ask(stream: &mut TcpStream, path: &str, more: &str) -> std::io::Result<String> {
    let host = stream.peer_addr()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    loop {
        if stream.read_buf(&mut answer).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let text = String::from_utf8_lossy(&answer);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|line| {
            line.to_ascii_lowercase()
                .strip_prefix("content-length: ")?
                .parse()
                .ok()
        });
        if length.is_none_or(|length: usize| body.len() >= length) {
            return Ok(head.lines().next().unwrap_or_default().to_owned());
        }
    }
}

/// Any client could make the orchestrator restart the agent otherwise.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_never_had_the_token_keep_nobody_out() {
    let data = tempfile::tempdir().unwrap();
    let agent = Running::start(config(data.path(), |_| {}));
    let token = format!("Authorization: Bearer {}\r\n", agent.token());
    let mut known = TcpStream::connect(agent.address).await.unwrap();
    let answer = ask(&mut known, "/api/v1/meta", &token).await.unwrap();
    assert_eq!(answer, "HTTP/1.1 200 OK");
    let most = Bounds::default().connections;
    let mut strangers = Vec::new();
    for number in 0..most + 20 {
        let mut stranger = TcpStream::connect(agent.address).await.unwrap();
        // Some say nothing, some begin, some ask without the token and wait.
        match number % 3 {
            0 => {}
            1 => stranger.write_all(b"GET /healthz HT").await.unwrap(),
            _ => {
                let refused = ask(&mut stranger, "/api/v1/meta", "").await.unwrap();
                assert_eq!(refused, "HTTP/1.1 401 Unauthorized");
            }
        }
        strangers.push(stranger);
        if number >= most - 2 {
            let mut health = TcpStream::connect(agent.address).await.unwrap();
            let answer = ask(&mut health, "/healthz", "").await.unwrap();
            assert_eq!(answer, "HTTP/1.1 200 OK", "after {number} strangers");
            strangers.push(health);
        }
    }
    let answer = ask(&mut known, "/api/v1/meta", &token).await.unwrap();
    assert_eq!(answer, "HTTP/1.1 200 OK", "who had the token stays");
    agent.stop().await;
}

/// A self-signed certificate for 127.0.0.1, made by the OpenSSL command line.
fn certificate(dir: &Path) -> TlsConfig {
    let (cert, key) = (dir.join("cert.pem"), dir.join("key.pem"));
    let made = std::process::Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
        ])
        .args([
            "-days",
            "2",
            "-subj",
            "/CN=agent",
            "-addext",
            "subjectAltName=IP:127.0.0.1,IP:10.96.7.117",
        ])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&cert)
        .output()
        .expect("openssl is needed: apt-get install openssl");
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    TlsConfig { cert, key }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_is_served_and_plain_text_is_not() {
    let data = tempfile::tempdir().unwrap();
    let keys = tempfile::tempdir().unwrap();
    let tls = certificate(keys.path());
    let agent = Running::start(config(data.path(), |config| config.tls = Some(tls.clone())));
    assert!(agent.url.starts_with("https://127.0.0.1:"), "{}", agent.url);
    let request = format!(
        "GET /healthz HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
        agent.address,
        agent.token()
    );
    let answer = over_tls(agent.address, &tls.cert, request.into_bytes()).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with("{\"status\":\"ok\"}"), "{answer}");

    let mut plain = TcpStream::connect(agent.address).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut got = Vec::new();
    plain.read_to_end(&mut got).await.ok();
    assert!(!got.starts_with(b"HTTP"), "{got:?}");
    agent.stop().await;
}

#[test]
fn an_agent_on_every_address_is_called_by_those_of_its_certificate() {
    let keys = tempfile::tempdir().unwrap();
    let loaded = profiler_server_tls::load(&certificate(keys.path())).unwrap();
    let origin = crate::api::Origin {
        address: "0.0.0.0:7117".parse().unwrap(),
        tls: true,
    };
    let reached = Reached::new(origin.address, Some(loaded.certificate));
    let names_us = |host| names_us(origin, &reached, host);
    assert!(names_us("10.96.7.117:7117"));
    assert!(names_us("127.0.0.1:7117"));
    assert!(!names_us("10.96.7.118:7117"));
    assert!(!names_us("10.96.7.117:7118"));
    assert!(!names_us("agent:7117"));
}

/// Sends bytes over TLS and reads until the server closes.
async fn over_tls(address: SocketAddr, ca: &Path, request: Vec<u8>) -> Vec<u8> {
    let address = address.to_string();
    let ca = ca.to_owned();
    tokio::task::spawn_blocking(move || {
        use std::io::Write;
        let mut client = std::process::Command::new("openssl")
            .args([
                "s_client",
                "-quiet",
                "-verify_return_error",
                "-ign_eof",
                "-connect",
                &address,
                "-CAfile",
            ])
            .arg(ca)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let mut input = client.stdin.take().unwrap();
        input.write_all(&request).unwrap();
        let output = client.wait_with_output().unwrap();
        drop(input);
        output.stdout
    })
    .await
    .unwrap()
}

/// The preface of HTTP/2 with an empty SETTINGS frame and, on stream 1, `GET /healthz`.
fn http2_request() -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend([0, 0, 0, 4, 0, 0, 0, 0, 0]);
    // Indexed `:method: GET` and `:scheme: http`, then `:path` as a literal.
    let head = [b"\x82\x86\x04\x08".as_slice(), b"/healthz"].concat();
    bytes.extend([0, 0, u8::try_from(head.len()).unwrap(), 1, 5, 0, 0, 0, 1]);
    bytes.extend(head);
    bytes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_is_not_served() {
    let data = tempfile::tempdir().unwrap();
    let keys = tempfile::tempdir().unwrap();
    let tls = certificate(keys.path());
    let plain = Running::start(config(data.path(), |_| {}));
    let refused = plain.raw(&http2_request()).await;
    assert!(
        refused.is_empty() || refused.starts_with("HTTP/1.1 4"),
        "{refused:?}"
    );
    plain.stop().await;
    let agent = Running::start(config(data.path(), |config| config.tls = Some(tls.clone())));
    let refused = over_tls(agent.address, &tls.cert, http2_request()).await;
    let refused = String::from_utf8_lossy(&refused);
    assert!(
        refused.is_empty() || refused.starts_with("HTTP/1.1 4"),
        "{refused:?}"
    );
    agent.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_repeats_a_part_of_what_was_sent() {
    let data = tempfile::tempdir().unwrap();
    let agent = Running::start(config(data.path(), |_| {}));
    let host = agent.address.to_string();
    let long = "%01".repeat(5000);
    for (path, host) in [
        (format!("/healthz?{long}=1"), host.clone()),
        (format!("/{long}"), host.clone()),
        (format!("/api/v1/tasks/{long}"), host.clone()),
        (format!("/api/v1/tasks?limit={long}"), host.clone()),
        ("/healthz".to_owned(), "\u{1f600}".repeat(2000)),
    ] {
        let answer = agent.get(&path, &host, "").await;
        assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(body.len() < 4000, "{}: {body}", body.len());
    }
    agent.stop().await;
}

/// A client with the token can request much and read nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_connection_holds_one_answer() {
    const LARGE: usize = 8 << 20;
    let made = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = made.clone();
    let server = Server::bind(([127, 0, 0, 1], 0).into(), None).unwrap();
    let (address, handle) = (server.origin().address, server.handle());
    let router = axum::Router::new().route(
        "/",
        axum::routing::get(async move || {
            counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            vec![b'x'; LARGE]
        }),
    );
    tokio::spawn(server.run(router));
    let mut greedy = TcpStream::connect(address).await.unwrap();
    let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n").repeat(100);
    greedy.write_all(request.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    // What the sockets hold is less than one answer.
    assert!(made.load(std::sync::atomic::Ordering::Relaxed) <= 2);
    handle.shutdown();
}

#[test]
fn tls_errors_name_the_file_and_the_fault() {
    let dir = tempfile::tempdir().unwrap();
    let good = certificate(dir.path());
    let missing = dir.path().join("none.pem");
    let check = |cert: &Path, key: &Path, expected: String| {
        let config = TlsConfig {
            cert: cert.to_owned(),
            key: key.to_owned(),
        };
        assert_eq!(
            profiler_server_tls::load(&config).unwrap_err().to_string(),
            expected
        );
    };
    check(
        &missing,
        &good.key,
        format!(
            "read TLS certificate {}: No such file or directory (os error 2)",
            missing.display()
        ),
    );
    check(
        &good.cert,
        &good.cert,
        format!(
            "read TLS private key {}: the file holds no private key in PEM form",
            good.cert.display()
        ),
    );
    check(
        &good.key,
        &good.key,
        format!(
            "TLS certificate file {} holds no certificate: give a PEM file with the chain, the server's own first",
            good.key.display()
        ),
    );
    let other = tempfile::tempdir().unwrap();
    let stranger = certificate(other.path());
    check(
        &good.cert,
        &stranger.key,
        format!(
            "TLS certificate {} and key {} do not work together: keys may not be consistent: KeyMismatch",
            good.cert.display(),
            stranger.key.display()
        ),
    );
}

#[test]
fn a_key_that_every_user_may_read_is_refused() {
    let keys = tempfile::tempdir().unwrap();
    let tls = certificate(keys.path());
    profiler_server_tls::load(&tls).unwrap();
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(&tls.key, open).unwrap();
    let refused = profiler_server_tls::load(&tls).unwrap_err().to_string();
    assert!(
        refused.ends_with("can be read by every user (mode 0644): chmod 600 it"),
        "{refused}"
    );
}
