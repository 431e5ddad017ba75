//! A server on loopback that answers as a test says.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread::JoinHandle,
    time::Duration,
};

/// Answers one request after the other until it is dropped.
pub(super) struct TestServer {
    pub(super) address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl TestServer {
    /// `answer` writes the raw answer to a request for a path.
    pub(super) fn start(
        answer: impl Fn(&str, &mut TcpStream) -> std::io::Result<()> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                stream
                    .set_read_timeout(Some(Duration::from_secs(5)))
                    .unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let Some(Ok(first)) = lines.next() else {
                    continue;
                };
                if first == "STOP" {
                    return;
                }
                while lines
                    .next()
                    .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
                {}
                log.lock().unwrap().push(first.clone());
                let path = first.split(' ').nth(1).unwrap_or_default();
                // A client that stops reading is not a failure of the test.
                let _gone = answer(path, &mut stream);
            }
        });
        Self {
            address,
            asked,
            thread: Some(thread),
        }
    }

    /// One that answers with status 200 and the body that `body` has for a path; without one with 404.
    pub(super) fn with(body: impl Fn(&str) -> Option<Vec<u8>> + Send + 'static) -> Self {
        Self::start(move |path, stream| match body(path) {
            Some(body) => respond(stream, "200 OK", &body),
            None => respond(stream, "404 Not Found", b"no such place"),
        })
    }

    /// First lines of the requests so far.
    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Ok(mut stream) = TcpStream::connect(self.address) {
            let _gone = stream.write_all(b"STOP\n");
        }
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

/// Writes a whole answer, after which the connection is closed.
pub(super) fn respond(stream: &mut TcpStream, status: &str, body: &[u8]) -> std::io::Result<()> {
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    )?;
    stream.write_all(body)
}
