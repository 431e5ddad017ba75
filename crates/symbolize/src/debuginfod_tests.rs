use std::{
    io::{BufRead as _, BufReader},
    net::TcpListener,
    sync::{Arc, Mutex},
};

use profiler_model::NameSource;
use profiler_test_programs::{compile, compile_stripped};

use super::*;

const ID: [u8; 2] = [0xab, 0xcd];
const ROOM: u64 = 16 << 20;

/// Paths that a server was asked for.
type Asked = Arc<Mutex<Vec<String>>>;

/// A server that gives `content` under the path of [`ID`] and knows nothing else.
fn server(content: Vec<u8>) -> (String, Asked) {
    serving(move |path| {
        if path == "/buildid/abcd/debuginfo" {
            ("200 OK".to_owned(), content.clone())
        } else {
            ("404 Not Found".to_owned(), b"no".to_vec())
        }
    })
}

/// A server that redirects the path of [`ID`] to what `location` makes of its own address, and gives `content` elsewhere.
fn redirecting(
    location: impl Fn(&str) -> String + Send + 'static,
    content: Vec<u8>,
) -> (String, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let location = location(&listener.local_addr().unwrap().to_string());
    serving_at(listener, move |path| {
        if path == "/buildid/abcd/debuginfo" {
            let status = format!("302 Found\r\nlocation: {location}");
            (status, Vec::new())
        } else {
            ("200 OK".to_owned(), content.clone())
        }
    })
}

fn serving(answer: impl Fn(&str) -> (String, Vec<u8>) + Send + 'static) -> (String, Asked) {
    serving_at(TcpListener::bind("127.0.0.1:0").unwrap(), answer)
}

/// A server that answers a path with a status line and a body.
fn serving_at(
    listener: TcpListener,
    answer: impl Fn(&str) -> (String, Vec<u8>) + Send + 'static,
) -> (String, Asked) {
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
            let (status, body) = answer(&path);
            seen.lock().unwrap().push(path);
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            // The client ends the connection early when it refuses the answer.
            drop(stream.write_all(head.as_bytes()));
            drop(stream.write_all(&body));
        }
    });
    (url, asked)
}

fn packs(dir: &std::path::Path, max_bytes: u64) -> SymbolPacks {
    SymbolPacks::open(Some(dir.join("symbols")), None, max_bytes)
}

fn fetch_from(url: &str, id: &[u8], packs: &SymbolPacks) -> Result<u64, FetchError> {
    fetch(&agent(), &url.parse().unwrap(), id, packs)
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
    start(&url.parse().unwrap(), &packs).unwrap();
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

#[test]
fn redirects_are_followed_to_the_server_itself_and_to_listed_hosts_alone() {
    let dir = tempfile::tempdir().unwrap();
    compile_stripped(dir.path(), &["-Wl,--build-id=0xabcd"]);
    let content = std::fs::read(dir.path().join("program.debug")).unwrap();
    let bytes = content.len() as u64;
    let fetched = |setting: &str| {
        let target = tempfile::tempdir().unwrap();
        fetch_from(setting, &ID, &packs(target.path(), ROOM))
    };

    let (own, asked) = redirecting(|_| "/elsewhere".to_owned(), content.clone());
    assert_eq!(fetched(&own).unwrap(), bytes);
    assert_eq!(
        *asked.lock().unwrap(),
        ["/buildid/abcd/debuginfo", "/elsewhere"]
    );

    // Another service of this host, as a server may name it.
    let (other, other_asked) = serving(move |_| ("200 OK".to_owned(), content.clone()));
    let address = other
        .trim_start_matches("http://")
        .trim_end_matches('/')
        .to_owned();
    let to = address.clone();
    let (url, _) = redirecting(move |_| format!("http://{to}/latest/meta-data"), Vec::new());
    let error = fetched(&url).unwrap_err().to_string();
    assert!(
        error.contains(&address) && error.contains("--debuginfod URL,"),
        "{error}"
    );
    assert_eq!(*other_asked.lock().unwrap(), [""; 0], "it was not asked");
    assert_eq!(fetched(&format!("{url},{address}")).unwrap(), bytes);
    assert_eq!(*other_asked.lock().unwrap(), ["/latest/meta-data"]);
}

#[test]
fn redirects_that_never_end_or_lead_nowhere_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let packs = packs(dir.path(), ROOM);
    let (url, asked) = redirecting(
        |own| format!("http://{own}/buildid/abcd/debuginfo"),
        Vec::new(),
    );
    let error = fetch_from(&url, &ID, &packs).unwrap_err();
    assert!(
        matches!(
            error,
            FetchError::Redirect(RedirectError::TooMany(MAX_REDIRECTS))
        ),
        "{error}"
    );
    assert_eq!(asked.lock().unwrap().len(), MAX_REDIRECTS + 1);
    let (url, _) = serving(|_| ("307 Temporary Redirect".to_owned(), Vec::new()));
    let error = fetch_from(&url, &ID, &packs).unwrap_err();
    assert!(
        matches!(error, FetchError::Redirect(RedirectError::Unreadable)),
        "{error}"
    );
}
