//! Sends odd requests by sockets of its own, and judges the answers.

use std::{
    collections::BTreeMap,
    io::{ErrorKind, Read as _, Write as _},
    net::{Shutdown, SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};

use super::{
    odd_requests::{Asker, May, Request},
    places::Place,
};
use crate::api::{Answer, Api, parse_answer};

/// Answers come within this time on an idle machine.
const PATIENCE: Duration = Duration::from_secs(2);
/// On a busy machine; what comes later does not come.
const LIMIT: Duration = Duration::from_secs(20);
/// For one look at the socket.
const LOOK: Duration = Duration::from_millis(100);
/// Most bytes of an answer that are read; results are as large as what was recorded.
const MOST_BYTES: usize = 64 << 20;
/// Kept of each kind of request and path.
const MOST_FAULTS: usize = 5;
/// Late answers that are kept.
const MOST_SLOW: usize = 40;
/// What the HTTP library answers by itself, without a document.
const BARE: [u16; 5] = [400, 414, 431, 501, 505];
const PROBLEM: &str = "application/problem+json";

/// Every Nth request, from this one on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    pub(super) of: usize,
    pub(super) number: usize,
}

pub(super) struct Answered {
    pub(super) requests: u64,
    pub(super) faults: Vec<String>,
    pub(super) slow: Vec<String>,
}

/// What came back.
enum Came {
    Answer(Answer),
    /// The connection was closed without a byte.
    Nothing,
    /// It stayed open without a whole answer.
    Silence,
}

/// Sends a share of the odd requests for every place, one after the other.
pub(super) fn ask_all(api: &Api, places: &[Place], share: Share) -> Result<Answered> {
    let token = api.token.as_deref().context("the agent has no token")?;
    let asker = Asker {
        address: api.address,
        token,
    };
    let mut answered = Answered {
        requests: 0,
        faults: Vec::new(),
        slow: Vec::new(),
    };
    let mut kept: BTreeMap<String, usize> = BTreeMap::new();
    let of = share.of.max(1);
    for (row, place) in places.iter().enumerate() {
        // Each place begins with another, or the same ones would go together.
        let first = (share.number + row) % of;
        for request in asker.of(place).into_iter().skip(first).step_by(of) {
            let began = Instant::now();
            let came = ask(api.address, &request, place)?;
            let took = began.elapsed();
            answered.requests += 1;
            let named = || format!("{} {}: {}", request.method, place.template, request.what);
            if let Err(fault) = judge(&came, &request, place) {
                let kind = request.what.split(' ').next().unwrap_or_default();
                let kept = kept
                    .entry(format!("{} {kind}", place.template))
                    .or_default();
                *kept += 1;
                if *kept <= MOST_FAULTS {
                    answered.faults.push(format!("{}: {fault}", named()));
                }
            }
            if took > PATIENCE && answered.slow.len() < MOST_SLOW {
                answered.slow.push(format!("{}: {took:?}", named()));
            }
        }
    }
    Ok(answered)
}

fn ask(address: SocketAddr, request: &Request, place: &Place) -> Result<Came> {
    let deadline = Instant::now() + LIMIT;
    let mut stream = TcpStream::connect(address).context("connect")?;
    stream
        .set_read_timeout(Some(LOOK))
        .context("set a timeout")?;
    stream
        .set_write_timeout(Some(LIMIT))
        .context("set a timeout")?;
    // A server may answer and close before it has read everything.
    let _sent = stream.write_all(&request.bytes);
    if request.hangs_up {
        let _gone = stream.shutdown(Shutdown::Write);
    }
    let (mut bytes, mut block) = (Vec::new(), [0; 16 << 10]);
    while Instant::now() < deadline && bytes.len() < MOST_BYTES {
        match stream.read(&mut block) {
            Ok(0) => break,
            Ok(length) => bytes.extend_from_slice(&block[..length]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Closed while there was something left to read for the other side.
            Err(_) => break,
        }
        if let Some(answer) = whole(&bytes, place.is_stream) {
            return Ok(Came::Answer(answer));
        }
    }
    if let Ok(answer) = parse_answer(final_answer(&bytes)) {
        return Ok(Came::Answer(answer));
    }
    Ok(if Instant::now() < deadline {
        Came::Nothing
    } else {
        Came::Silence
    })
}

/// An answer whose end is known before the connection is closed.
fn whole(bytes: &[u8], is_stream: bool) -> Option<Answer> {
    let answer = parse_answer(final_answer(bytes)).ok()?;
    let length = answer
        .header("content-length")
        .and_then(|length| length.parse::<usize>().ok());
    let events = answer.header("content-type") == Some("text/event-stream");
    let complete = length.is_some_and(|length| answer.body.len() >= length);
    (complete || (is_stream && events)).then_some(answer)
}

/// Without `100 Continue` in front of it.
fn final_answer(bytes: &[u8]) -> &[u8] {
    let is_interim = bytes.starts_with(b"HTTP/1.1 1");
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    match end {
        Some(end) if is_interim => &bytes[end + 4..],
        _ => bytes,
    }
}

fn judge(came: &Came, request: &Request, place: &Place) -> Result<(), String> {
    let answer = match came {
        Came::Answer(answer) => answer,
        Came::Nothing if request.may == May::Close => return Ok(()),
        Came::Nothing => return Err("closed without an answer".to_owned()),
        Came::Silence => return Err("no answer".to_owned()),
    };
    let status = answer.status;
    match status {
        200..=399 if matches!(request.may, May::Refuse | May::RefuseBarely) => {
            Err(format!("status {status} where a refusal is due"))
        }
        200..=399 => declared(status, request, place),
        _ if BARE.contains(&status) && answer.body.is_empty() => match request.may {
            May::RefuseBarely | May::Close => Ok(()),
            May::Succeed | May::Refuse => Err(format!("status {status} without a document")),
        },
        400..=499 => document(answer, request),
        503 if is_meant(answer) => document(answer, request),
        _ => Err(format!("status {status}: {}", cut(&answer.text()))),
    }
}

/// Whether the document knows the success. A target that was changed may be that of another path.
fn declared(status: u16, request: &Request, place: &Place) -> Result<(), String> {
    let method = if request.method == "HEAD" {
        "GET"
    } else {
        request.method.as_str()
    };
    let known = place
        .methods
        .get(method)
        .is_some_and(|statuses| statuses.contains(&status));
    if known || request.what.starts_with("target ") {
        return Ok(());
    }
    Err(format!("status {status} is not declared"))
}

/// Whether a refusal says what and why.
fn document(answer: &Answer, request: &Request) -> Result<(), String> {
    let (status, text) = (answer.status, answer.text());
    if request.method == "HEAD" {
        return Ok(());
    }
    let media_type = answer.header("content-type").unwrap_or("nothing");
    if media_type != PROBLEM {
        return Err(format!("status {status} with {media_type}: {}", cut(&text)));
    }
    let problem = answer.json().map_err(|error| format!("{error:#}"))?;
    let says = |name: &str| problem[name].as_str().is_some_and(|text| !text.is_empty());
    if says("code") && says("detail") && problem["status"] == status {
        return Ok(());
    }
    Err(format!("status {status} does not say why: {}", cut(&text)))
}

/// Refusals for lack of room.
fn is_meant(answer: &Answer) -> bool {
    let code = answer.json().ok().and_then(|problem| {
        let code = problem["code"].as_str()?;
        Some(matches!(code, "memory_short" | "overloaded"))
    });
    code.unwrap_or(false)
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(200)]
}
