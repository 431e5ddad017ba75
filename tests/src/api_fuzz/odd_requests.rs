//! Requests that no document describes: for each path odd methods, heads, queries, bodies and tokens, as bytes.

use std::net::SocketAddr;

use super::places::Place;

/// Lengths that promise more than comes; a server may wait for it.
const UNFINISHED: [&str; 3] = [
    "longer than sent",
    "an announced terabyte",
    "a chunk too large to be",
];

/// What may come of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum May {
    /// A declared success, or a refusal with a document.
    Succeed,
    /// A refusal with a document.
    Refuse,
    /// Also one without: the head is not understood, so that nothing of the API sees it.
    RefuseBarely,
    /// Also nothing: the client hangs up, or what follows the head is not a body.
    Close,
}

/// One odd request.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) what: String,
    pub(super) method: String,
    pub(super) bytes: Vec<u8>,
    pub(super) may: May,
    /// The client says at once that it sends nothing more.
    pub(super) hangs_up: bool,
}

/// The client and the server of requests.
pub(super) struct Asker<'a> {
    pub(super) address: SocketAddr,
    pub(super) token: &'a str,
}

/// A request before it becomes bytes.
struct Draft<'a> {
    method: &'a str,
    target: String,
    version: &'a str,
    /// Lines of the head, each with its end.
    head: Vec<u8>,
    body: Vec<u8>,
}

impl Asker<'_> {
    /// Everything odd about one place.
    pub(super) fn of(&self, place: &Place) -> Vec<Request> {
        let mut all = self.methods(place);
        all.extend(self.queries(place));
        all.extend(self.heads(place));
        all.extend(self.bodies(place));
        all.extend(self.tokens(place));
        all
    }

    fn host(&self) -> String {
        format!("Host: {}\r\n", self.address)
    }

    fn authorization(&self) -> String {
        format!("Authorization: Bearer {}\r\n", self.token)
    }

    fn draft<'a>(&self, method: &'a str, target: &str) -> Draft<'a> {
        let head = format!(
            "{}{}Connection: close\r\n",
            self.host(),
            self.authorization()
        );
        Draft {
            method,
            target: target.to_owned(),
            version: "HTTP/1.1",
            head: head.into_bytes(),
            body: Vec::new(),
        }
    }

    fn methods(&self, place: &Place) -> Vec<Request> {
        let odd = [
            "HEAD", "OPTIONS", "TRACE", "PATCH", "PUT", "DELETE", "POST", "PROPFIND", "M-SEARCH",
            "get", "GETT", "X",
        ];
        odd.into_iter()
            .filter(|method| !place.methods.contains_key(*method))
            .map(|method| {
                let reads = method == "HEAD" && place.methods.contains_key("GET");
                let may = if reads { May::Succeed } else { May::Refuse };
                self.draft(method, &place.path).sent("odd method", may)
            })
            .collect()
    }

    fn queries(&self, place: &Place) -> Vec<Request> {
        let Some(method) = safe_method(place) else {
            return Vec::new();
        };
        let huge = "x".repeat(20_000);
        let many = "a=1&".repeat(5000);
        [
            "unknown=1",
            "=",
            "&&&",
            "%",
            "%zz=%",
            "%00=%00",
            "%ff%fe=%80",
            "limit=-1",
            "limit=99999999999999999999999",
            "limit=1e400",
            "limit=1&limit=2",
            "from=18446744073709551615&to=18446744073709551615",
            "from=5&to=1",
            "bucket_ms=0",
            "bucket_ms=18446744073709551615",
            "steps=0",
            "steps=18446744073709551615",
            "threads=18446744073709551615",
            "format=../../../../etc/passwd",
            "format=%3Cscript%3E",
            "cell=%3A%3A%3A%3A",
            "state=%00&reason=%0a",
            "pid=4294967295&tid=4294967295",
            "pid=-1",
            "q=%25%5f%27%22%3b--",
            "q=%e2%80%ae%f0%9f%92%a9",
            "group=%0d%0aX-Injected%3a%201",
            huge.as_str(),
            many.as_str(),
        ]
        .iter()
        .map(|query| {
            let join = if place.path.contains('?') { '&' } else { '?' };
            let target = format!("{}{join}{query}", place.path);
            self.draft(method, &target)
                .sent(&format!("query {}", shortened(query)), May::Succeed)
        })
        .collect()
    }

    /// Targets and heads of every kind, by a method that changes nothing.
    fn heads(&self, place: &Place) -> Vec<Request> {
        let method = safe_method(place).unwrap_or("GET");
        let draft = || self.draft(method, &place.path);
        let mut all: Vec<Request> = lines()
            .into_iter()
            .map(|(line, may)| {
                let mut draft = draft();
                draft.head.extend_from_slice(&line);
                let line = String::from_utf8_lossy(&line).into_owned();
                draft.sent(&format!("head {}", shortened(&line)), may)
            })
            .collect();
        for (host, may) in [
            (String::new(), May::Refuse),
            ("Host: evil.example\r\n".to_owned(), May::Refuse),
            (self.host() + "Host: evil.example\r\n", May::Refuse),
            (self.host() + &self.host(), May::Refuse),
            ("Host: \u{e9}\r\n".to_owned(), May::RefuseBarely),
        ] {
            let mut draft = draft();
            draft.head = format!("{host}{}Connection: close\r\n", self.authorization()).into();
            all.push(draft.sent(&format!("head {host:?}"), may));
        }
        for version in [
            "HTTP/1.0", "HTTP/0.9", "HTTP/2.0", "HTTP/9.9", "http/1.1", "X", "",
        ] {
            let mut draft = draft();
            draft.version = version;
            let may = if version == "HTTP/1.0" {
                May::Succeed
            } else {
                May::Close
            };
            all.push(draft.sent(&format!("version {version:?}"), may));
        }
        let absolute = format!("http://{}{}", self.address, place.path);
        let dots = format!("/../..{}", place.path);
        for (target, may) in [
            (absolute, May::Succeed),
            (dots, May::Succeed),
            (format!("{}/", place.path), May::Succeed),
            (format!("/{}", place.path), May::Succeed),
            (format!("{}%00", place.path), May::Succeed),
            (format!("{}%2f..%2f", place.path), May::Succeed),
            (place.path.to_uppercase(), May::Succeed),
            (format!("{}\u{e9}", place.path), May::RefuseBarely),
            (format!("{}\0", place.path), May::RefuseBarely),
            ("http://evil.example/".to_owned(), May::Refuse),
            ("*".to_owned(), May::RefuseBarely),
            ("no-slash".to_owned(), May::RefuseBarely),
        ] {
            let mut draft = draft();
            draft.target = target;
            let what = format!("target {}", shortened(&draft.target));
            all.push(draft.sent(&what, may));
        }
        all
    }

    fn bodies(&self, place: &Place) -> Vec<Request> {
        let mut all = Vec::new();
        for method in ["POST", "PUT"] {
            if !place.methods.contains_key(method) {
                continue;
            }
            for media_type in [
                "application/json",
                "application/octet-stream",
                "text/plain",
                "",
            ] {
                for body in odd_bodies() {
                    let what = format!(
                        "{media_type} {}",
                        shortened(&String::from_utf8_lossy(&body))
                    );
                    let mut draft = self.draft(method, &place.path);
                    draft.media_type(media_type);
                    draft.length(body.len());
                    draft.body = body;
                    all.push(draft.sent(&what, May::Succeed));
                }
            }
            all.extend(self.lengths(method, place));
        }
        // A body where none is expected.
        if let Some(method) = safe_method(place) {
            let mut draft = self.draft(method, &place.path);
            draft.length(1 << 20);
            draft.body = vec![b'x'; 1 << 20];
            all.push(draft.sent("a body of 1 MiB", May::Succeed));
        }
        all
    }

    /// Lengths that are not those of the body.
    fn lengths(&self, method: &str, place: &Place) -> Vec<Request> {
        let chunked = "Transfer-Encoding: chunked\r\n";
        let cases: [(&str, &str, &[u8], May); 11] = [
            (
                "longer than sent",
                "Content-Length: 100\r\n",
                b"{}",
                May::Close,
            ),
            (
                "shorter than sent",
                "Content-Length: 1\r\n",
                b"{}{}{}",
                May::Succeed,
            ),
            (
                "negative",
                "Content-Length: -1\r\n",
                b"{}",
                May::RefuseBarely,
            ),
            (
                "no number",
                "Content-Length: two\r\n",
                b"{}",
                May::RefuseBarely,
            ),
            (
                "too large a number",
                "Content-Length: 99999999999999999999999\r\n",
                b"{}",
                May::RefuseBarely,
            ),
            (
                "an announced terabyte",
                "Content-Length: 1099511627776\r\n",
                b"{}",
                May::Close,
            ),
            (
                "two of them",
                "Content-Length: 2\r\nContent-Length: 3\r\n",
                b"{}x",
                May::RefuseBarely,
            ),
            (
                "also chunked",
                "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
                b"2\r\n{}\r\n0\r\n\r\n",
                May::Close,
            ),
            ("chunks", chunked, b"2\r\n{}\r\n0\r\n\r\n", May::Succeed),
            (
                "a chunk of no size",
                chunked,
                b"zz\r\n{}\r\n0\r\n\r\n",
                May::Close,
            ),
            (
                "a chunk too large to be",
                chunked,
                b"ffffffffffffffffff\r\n{}",
                May::Close,
            ),
        ];
        cases
            .into_iter()
            .map(|(what, head, body, may)| {
                let mut draft = self.draft(method, &place.path);
                draft.media_type("application/json");
                draft.head.extend_from_slice(head.as_bytes());
                draft.body = body.to_vec();
                let mut request = draft.sent(&format!("length {what}"), may);
                request.hangs_up = UNFINISHED.contains(&what);
                request
            })
            .collect()
    }

    fn tokens(&self, place: &Place) -> Vec<Request> {
        if !place.is_protected {
            return Vec::new();
        }
        let token = self.token;
        let half = &token[..token.len() / 2];
        let right = self.authorization();
        let heads = [
            String::new(),
            "Authorization: \r\n".to_owned(),
            "Authorization: Bearer\r\n".to_owned(),
            "Authorization: Bearer wrong\r\n".to_owned(),
            format!("Authorization: Bearer {half}\r\n"),
            format!("Authorization: Bearer {token}x\r\n"),
            format!("Authorization: Basic {token}\r\n"),
            format!("Authorization: {token}\r\n"),
            format!("{right}{right}"),
            format!("Cookie: token={token}\r\n"),
            format!("X-Authorization: Bearer {token}\r\n"),
        ];
        let methods: Vec<&str> = place.methods.keys().map(String::as_str).collect();
        let method = methods.first().copied().unwrap_or("GET");
        let mut all: Vec<Request> = heads
            .into_iter()
            .map(|line| {
                let mut draft = self.draft(method, &place.path);
                draft.head = format!("{}{line}Connection: close\r\n", self.host()).into();
                let what = format!("token {}", line.replace(token, "TOKEN").trim_end());
                draft.sent(&what, May::Refuse)
            })
            .collect();
        for name in ["token", "access_token"] {
            let join = if place.path.contains('?') { '&' } else { '?' };
            let target = format!("{}{join}{name}={token}", place.path);
            let mut draft = self.draft(method, &target);
            draft.head = format!("{}Connection: close\r\n", self.host()).into();
            all.push(draft.sent(&format!("token in the query as {name}"), May::Refuse));
        }
        all
    }
}

impl Draft<'_> {
    fn media_type(&mut self, media_type: &str) {
        if !media_type.is_empty() {
            let line = format!("Content-Type: {media_type}\r\n");
            self.head.extend_from_slice(line.as_bytes());
        }
    }

    fn length(&mut self, bytes: usize) {
        let line = format!("Content-Length: {bytes}\r\n");
        self.head.extend_from_slice(line.as_bytes());
    }

    fn sent(self, what: &str, may: May) -> Request {
        let Self {
            method,
            target,
            version,
            head,
            body,
        } = self;
        let first = format!("{method} {target} {version}\r\n");
        Request {
            what: what.to_owned(),
            method: method.to_owned(),
            bytes: [first.as_bytes(), &head, b"\r\n", &body].concat(),
            may,
            hangs_up: false,
        }
    }
}

/// A method of the place that changes nothing.
fn safe_method(place: &Place) -> Option<&'static str> {
    place.methods.contains_key("GET").then_some("GET")
}

/// Lines of a head.
fn lines() -> Vec<(Vec<u8>, May)> {
    let large = format!("X-Large: {}\r\n", "x".repeat(200_000));
    let many = "X-Many: 1\r\n".repeat(500);
    let texts: [(&str, May); 22] = [
        ("Accept: application/x-nothing\r\n", May::Succeed),
        ("Accept: ;;;,,,q=\r\n", May::Succeed),
        ("Accept-Encoding: gzip;q=nan, *;q=-1\r\n", May::Succeed),
        ("Range: bytes=0-0,1-1,2-2\r\n", May::Succeed),
        ("If-None-Match: *\r\n", May::Succeed),
        ("If-Modified-Since: yesterday\r\n", May::Succeed),
        ("Expect: 100-continue\r\n", May::Succeed),
        ("Expect: a-miracle\r\n", May::Succeed),
        (
            "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n",
            May::Succeed,
        ),
        (
            "Upgrade: websocket\r\nSec-WebSocket-Key: eA==\r\n",
            May::Succeed,
        ),
        (
            "X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Host: evil.example\r\n",
            May::Succeed,
        ),
        ("X-HTTP-Method-Override: DELETE\r\n", May::Succeed),
        ("Last-Event-ID: 18446744073709551616\r\n", May::Succeed),
        ("Origin: http://evil.example\r\n", May::Refuse),
        ("Origin: null\r\n", May::Refuse),
        ("Sec-Fetch-Site: cross-site\r\n", May::Refuse),
        ("Transfer-Encoding: gzip\r\n", May::Close),
        ("No colon\r\n", May::RefuseBarely),
        ("Bad name: 1\r\n", May::RefuseBarely),
        (": no name\r\n", May::RefuseBarely),
        (" folded: 1\r\n", May::RefuseBarely),
        ("X-Nul: a\0b\r\n", May::RefuseBarely),
    ];
    let mut all: Vec<(Vec<u8>, May)> = texts
        .into_iter()
        .map(|(line, may)| (line.as_bytes().to_vec(), may))
        .collect();
    all.push((b"X-Bytes: \xff\xfe\x80\r\n".to_vec(), May::Succeed));
    all.push((large.into_bytes(), May::RefuseBarely));
    all.push((many.into_bytes(), May::RefuseBarely));
    all
}

fn odd_bodies() -> Vec<Vec<u8>> {
    let deep = [b"[".repeat(20_000), b"]".repeat(20_000)].concat();
    let deep_objects = b"{\"target\":".repeat(5_000);
    let texts: [&[u8]; 20] = [
        b"",
        b"null",
        b"true",
        b"0",
        b"\"text\"",
        b"[]",
        b"{}",
        b"{",
        b"}",
        b"{\"kind\":\"on_cpu\"",
        b"{\"kind\":\"on_cpu\",\"target\":{\"pids\":[4294967296]}}",
        b"{\"kind\":\"on_cpu\",\"target\":{\"pids\":[]},\"duration_s\":1}",
        b"{\"kind\":\"on_cpu\",\"target\":{\"all\":true},\"duration_s\":1e400}",
        b"{\"kind\":\"on_cpu\",\"target\":{\"all\":true},\"duration_s\":-1}",
        b"{\"kind\":\"on_cpu\",\"kind\":\"wall\",\"target\":{\"all\":1}}",
        b"{\"kind\":\"network\",\"target\":{\"network_namespace\":\"/etc/passwd\"},\"duration_s\":1}",
        b"{\"kind\":\"on_cpu\",\"target\":{\"comm\":\"\\u0000\\ud800\"},\"duration_s\":1}",
        b"{\"\\u0000\":\"\\uffff\"}",
        b"\0\0\0\0",
        b"\xff\xfe{\0}\0",
    ];
    let mut all: Vec<Vec<u8>> = texts.iter().map(|text| text.to_vec()).collect();
    all.extend([deep, deep_objects, vec![b'x'; 1 << 20]]);
    all
}

/// For messages.
fn shortened(text: &str) -> String {
    let letters: String = text.chars().take(60).collect();
    format!("{letters:?}")
}
