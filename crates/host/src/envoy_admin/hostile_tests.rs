//! Answers from servers that are not Envoy, or are malicious.

use std::{
    io::Write as _,
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use super::{
    EnvoyAdmin, EnvoyAdminError,
    client::{Client, ClientError},
    server_info::ServerInfo,
    test_server::{TestServer, respond},
};

const INFO: &[u8] = br#"{"version":"c/1.40.0/Clean/RELEASE/BoringSSL","state":"LIVE",
    "hot_restart_version":"11.104","command_line_options":{"concurrency":1}}"#;

fn client(server: &TestServer) -> Client {
    Client::new(server.address, Duration::from_secs(20))
}

/// One that soon gives up.
fn hasty(server: &TestServer) -> Client {
    Client::new(server.address, Duration::from_millis(500))
}

fn answers(raw: &'static [u8]) -> TestServer {
    TestServer::start(move |_, stream| stream.write_all(raw))
}

#[test]
fn an_envoy_is_found_behind_addresses_that_are_none() {
    let other = TestServer::with(|_| Some(b"<html>hello</html>".to_vec()));
    let envoy = TestServer::with(|path| (path == "/server_info").then(|| INFO.to_vec()));
    let closed: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let admin = EnvoyAdmin::among(&[closed, other.address, envoy.address]).unwrap();
    assert_eq!(admin.client.address(), envoy.address);
    let none = EnvoyAdmin::among(&[closed, other.address]).unwrap_err();
    let text = none.to_string();
    assert!(
        text.contains("127.0.0.1:1") && text.contains("as Envoy does"),
        "{text}"
    );
    assert!(matches!(
        EnvoyAdmin::among(&[]),
        Err(EnvoyAdminError::NoAddress)
    ));
    let methods = envoy.asked();
    assert!(
        methods.iter().all(|line| line.starts_with("GET ")),
        "{methods:?}"
    );
}

#[test]
fn redirects_are_not_followed() {
    let target = TestServer::with(|_| Some(INFO.to_vec()));
    let to = target.address;
    let server = TestServer::start(move |_, stream| {
        write!(
            stream,
            "HTTP/1.1 302 Found\r\nlocation: http://{to}/server_info\r\ncontent-length: 0\r\n\r\n"
        )
    });
    let refused = client(&server).get("/server_info", 1000);
    assert!(
        matches!(refused, Err(ClientError::Status(302))),
        "{refused:?}"
    );
    assert!(target.asked().is_empty(), "no request was sent there");
}

#[test]
fn answers_without_end_are_cut_in_bytes_and_in_time() {
    let endless = TestServer::start(|_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n")?;
        loop {
            stream.write_all(&[b' '; 4096])?;
        }
    });
    let cut = client(&endless).get("/stats", 10_000);
    assert!(matches!(cut, Err(ClientError::TooLarge(10_000))), "{cut:?}");

    let slow = TestServer::start(|_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n")?;
        for _ in 0..40 {
            stream.write_all(b" ")?;
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    });
    let began = Instant::now();
    assert!(hasty(&slow).get("/stats", 10_000).is_err());
    assert!(
        began.elapsed() < Duration::from_secs(2),
        "{:?}",
        began.elapsed()
    );

    let silent = TestServer::start(|_, _| {
        std::thread::sleep(Duration::from_secs(1));
        Ok(())
    });
    let began = Instant::now();
    assert!(hasty(&silent).get("/stats", 10_000).is_err());
    assert!(
        began.elapsed() < Duration::from_millis(900),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn what_is_no_http_is_an_error() {
    let long_header = TestServer::start(|_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nx: ")?;
        for _ in 0..100 {
            stream.write_all(&[b'a'; 1024])?;
        }
        stream.write_all(b"\r\n\r\n{}")
    });
    assert!(client(&long_header).get("/", 1000).is_err());
    for raw in [
        &b""[..],
        b"\x00\x01\x02",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551616\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ] {
        let server = answers(raw);
        assert!(client(&server).get("/", 1000).is_err(), "{raw:?}");
    }
}

/// Wrong JSON of every kind is an error that names the path; none of it brings the agent down.
#[test]
fn json_that_lies_is_an_error() {
    let deep = "[".repeat(100_000);
    let damaged: Vec<Vec<u8>> = vec![
        b"{\"version\":7}".to_vec(),
        deep.clone().into_bytes(),
        format!("{{\"configs\":{deep}").into_bytes(),
        b"{\"configs\":{}}".to_vec(),
        b"{\"configs\":[{\"static_listeners\":7}]}".to_vec(),
        b"{\"configs\":[{\"static_clusters\":[{\"cluster\":[]}],\"bootstrap\":3}]}".to_vec(),
        b"\xff\xfe\x00".to_vec(),
        b"null".to_vec(),
    ];
    for body in damaged {
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        let server = TestServer::with(move |_| Some(body.clone()));
        assert!(ServerInfo::ask(&client(&server)).is_err(), "{shown}");
        let admin = admin_of(&server);
        assert!(admin.completed_requests().is_err(), "{shown}");
        let (configuration, gaps) = admin.configuration();
        assert!(!gaps.is_empty(), "{shown}");
        assert_eq!(configuration.version.as_deref(), Some("1.40.0"));
    }
}

/// A real answer, cut and changed at many places: never a panic, and never text that is not printable.
#[test]
fn damaged_answers_are_read_without_harm() {
    let real = include_bytes!("../../../../tests/fixtures/envoy_admin/listeners.json");
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed >> 33).unwrap()
    };
    let mut understood = 0;
    let info = info();
    for round in 0..120 {
        let mut body = real.to_vec();
        if round % 3 == 0 {
            body.truncate(random() % body.len());
        }
        for _ in 0..round % 7 {
            let at = random() % body.len().max(1);
            if let Some(byte) = body.get_mut(at) {
                *byte = b"\"{}[]:,0\x00\x1b\xffx"[random() % 12];
            }
        }
        let server = TestServer::with(move |_| Some(body.clone()));
        let admin = EnvoyAdmin {
            client: client(&server),
            info: info.clone(),
        };
        let (configuration, gaps) = admin.configuration();
        understood += usize::from(gaps.is_empty());
        for item in configuration.items {
            assert!(!item.value.chars().any(char::is_control), "{item:?}");
            assert!(item.value.chars().count() < 1000, "{item:?}");
        }
    }
    assert!(understood > 10, "{understood} of 120 were whole");
}

fn info() -> ServerInfo {
    let server = TestServer::with(|_| Some(INFO.to_vec()));
    ServerInfo::ask(&client(&server)).unwrap()
}

fn admin_of(server: &TestServer) -> EnvoyAdmin {
    EnvoyAdmin {
        client: client(server),
        info: info(),
    }
}

#[test]
fn a_server_that_closes_is_asked_again_on_a_new_connection() {
    let server = TestServer::start(|_, stream: &mut TcpStream| {
        respond(
            stream,
            "200 OK",
            br#"{"stats":[{"name":"http.a.downstream_rq_completed","value":3}]}"#,
        )
    });
    let admin = admin_of(&server);
    for _ in 0..3 {
        assert_eq!(admin.completed_requests().unwrap(), Some(3));
    }
}

/// Bytes are bounded, and so is what they become: an access log of two bytes would be one of hundreds.
#[test]
fn lists_of_empty_elements_are_refused_before_they_are_made() {
    let wrap = |list: &str| {
        format!(
            r#"{{"configs":[{{"static_listeners":[{{"listener":{{"access_log":[{list}]}}}}]}}]}}"#
        )
    };
    let many = wrap(&format!("{}{{}}", "{},".repeat(5 << 20)));
    let refused = super::config_dump::listeners_in(many.as_bytes()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "it has more than 250000 elements in its lists"
    );
    let few = wrap(&format!("{}{{}}", "{},".repeat(50)));
    let listeners = super::config_dump::listeners_in(few.as_bytes()).unwrap();
    assert_eq!(listeners[0].access_log.len(), 51);
    let fields: Vec<String> = (0..1_100_000)
        .map(|at| format!("\"{at:x}\":{{}},"))
        .collect();
    let fields = fields.concat();
    let many = format!(
        r#"{{"configs":[{{"static_clusters":[{{"cluster":{{"typed_extension_protocol_options":{{{fields}"z":{{}}}}}}}}]}}]}}"#
    );
    let refused = super::config_dump::clusters_in(many.as_bytes()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "it has more than 1000000 fields in its objects"
    );
}
