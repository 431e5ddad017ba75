use std::{
    io::{BufRead as _, BufReader},
    net::TcpListener,
    sync::{Arc, Mutex},
    time::Instant,
};

use super::*;
use crate::{
    model::NameSource,
    symbolize::test_programs::{compile, compile_stripped},
};

const ID: [u8; 2] = [0xab, 0xcd];
const ROOM: u64 = 16 << 20;

/// A server that gives `content` under the path of [`ID`] and knows nothing else.
fn server(content: Vec<u8>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let request = lines.next().unwrap().unwrap();
            while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
            let path = request.split(' ').nth(1).unwrap().to_owned();
            let (status, body) = if path == "/buildid/abcd/debuginfo" {
                ("200 OK", content.as_slice())
            } else {
                ("404 Not Found", &b"no"[..])
            };
            seen.lock().unwrap().push(path);
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            // The client ends the connection early when it refuses the answer.
            drop(stream.write_all(head.as_bytes()));
            drop(stream.write_all(body));
        }
    });
    (url, asked)
}

fn packs(dir: &std::path::Path, max_bytes: u64) -> SymbolPacks {
    SymbolPacks::open(Some(dir.join("symbols")), None, max_bytes)
}

fn fetch_from(url: &str, id: &[u8], packs: &SymbolPacks) -> Result<u64, FetchError> {
    let agent: ureq::Agent = ureq::Agent::config_builder().build().into();
    fetch(&agent, url.trim_end_matches('/'), id, packs)
}

#[test]
fn a_file_that_is_wanted_is_fetched_once_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    compile_stripped(dir.path(), &["-Wl,--build-id=0xabcd"]);
    let content = std::fs::read(dir.path().join("program.debug")).unwrap();
    let (url, asked) = server(content.clone());
    let packs = packs(dir.path(), ROOM);
    packs.want(&ID);
    assert_eq!(packs.has(&ID), None, "without a server nothing is asked");
    start(&url, &packs).unwrap();
    packs.want(&[1, 2, 3]);
    packs.want(&ID);
    packs.want(&ID);
    let began = Instant::now();
    while packs.has(&ID).is_none() {
        assert!(began.elapsed() < Duration::from_secs(30), "never fetched");
        std::thread::sleep(Duration::from_millis(10));
    }
    packs.want(&ID);
    assert_eq!(packs.has(&ID), Some(NameSource::Debuginfod));
    assert_eq!(packs.list()[0].bytes, content.len() as u64);
    assert_eq!(
        *asked.lock().unwrap(),
        ["/buildid/010203/debuginfo", "/buildid/abcd/debuginfo"]
    );
}

#[test]
fn answers_that_are_too_large_or_of_another_build_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let other = std::fs::read(compile(dir.path(), "other", &["-Wl,--build-id=0x9999"])).unwrap();
    let (url, _) = server(other);
    let error = fetch_from(&url, &ID, &packs(dir.path(), ROOM)).unwrap_err();
    assert!(
        matches!(error, FetchError::Pack(PackError::Mismatch { .. })),
        "{error}"
    );
    let small = packs(dir.path(), 1000);
    let error = fetch_from(&url, &ID, &small).unwrap_err();
    assert!(matches!(error, FetchError::TooLarge(1000)), "{error}");
    let error = fetch_from(&url, &[5, 5], &small).unwrap_err();
    assert!(matches!(error, FetchError::Unknown), "{error}");
    assert_eq!(small.list(), []);
    let left = std::fs::read_dir(dir.path().join("symbols"))
        .unwrap()
        .count();
    assert_eq!(left, 0, "what was refused is removed");
}
