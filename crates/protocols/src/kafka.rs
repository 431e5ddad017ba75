//! Kafka's protocol (kafka.apache.org, "Kafka protocol guide").
//!
//! Answers are known by the correlation id of their request. Of a request the API and, where there is
//! one, the topic are kept; records, groups, members and authentication never are.

mod apis;
mod body;
mod session;

use super::{Candidate, Opening, Protocol, Verdict, framed::Framed, reader::Reader};
use apis::Api;
use session::KafkaSession;

pub(crate) const KAFKA: Candidate = Candidate {
    protocol: Protocol::Kafka,
    recognise,
    start: |options, joined| Box::new(Framed::new(KafkaSession::new(options), joined)),
};

/// The length before each message.
const LENGTH_BYTES: usize = 4;
/// `socket.request.max.bytes` is 100 MB by default; answers are bounded by clients.
const MOST_MESSAGE: u32 = 1 << 30;

/// The head of a request (versions 1 and 2 of the request header; 0 is no longer in use).
#[derive(Clone, Copy, Debug)]
struct RequestHead<'a> {
    api: Api,
    version: i16,
    correlation: i32,
    /// Behind the header; `None`: it was not captured.
    body: Option<Reader<'a>>,
}

impl<'a> RequestHead<'a> {
    /// Reads what is behind the length. `None`: it is not a request.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let api = Api::of(reader.i16_be()?)?;
        let version = reader.i16_be()?;
        let correlation = reader.i32_be()?;
        if !(0..=32).contains(&version) {
            return None;
        }
        let head = |body| Self {
            api,
            version,
            correlation,
            body,
        };
        let Some(length) = reader.i16_be() else {
            return Some(head(None));
        };
        if length >= 0 {
            let Some(client) = reader.take(usize::try_from(length).ok()?) else {
                let cut = reader.rest().iter().all(|byte| is_of_client_id(*byte));
                return (cut && length <= 1024).then_some(head(None));
            };
            if !client.iter().all(|byte| is_of_client_id(*byte)) {
                return None;
            }
        } else if length != -1 {
            return None;
        }
        if api.is_flexible(version) && body::skip_tags(&mut reader).is_none() {
            return Some(head(None));
        }
        Some(head(Some(reader)))
    }
}

fn is_of_client_id(byte: u8) -> bool {
    byte.is_ascii_graphic() || byte == b' '
}

fn recognise(opening: &Opening<'_>) -> Verdict {
    if opening.is_udp {
        return Verdict::No;
    }
    let bytes = opening.to_server;
    let length = Reader::new(bytes).u32_be();
    if bytes.len() < LENGTH_BYTES + 10 {
        // A length below 16 MB begins with a zero.
        let silent = opening.to_client.is_empty() || opening.joined;
        let plausible = silent && bytes.first().is_none_or(|byte| *byte == 0);
        return if plausible {
            Verdict::Undecided
        } else {
            Verdict::No
        };
    }
    let body = bytes.get(LENGTH_BYTES..).unwrap_or_default();
    let sized = length.is_some_and(|length| (10..=100 << 20).contains(&length));
    let Some(head) = RequestHead::read(body).filter(|_| sized) else {
        return Verdict::No;
    };
    // The number of the API and its version may be those of anything; the same id in the answer is none
    // by chance, and neither is the name of a client behind its length.
    let mut answer = Reader::new(opening.to_client);
    let (answer_length, answered) = (answer.u32_be(), answer.i32_be());
    match answered {
        Some(correlation) => {
            let fits = answer_length.is_some_and(|length| (4..=MOST_MESSAGE).contains(&length));
            if fits && correlation == head.correlation {
                Verdict::Yes
            } else {
                Verdict::No
            }
        }
        None => Verdict::Undecided,
    }
}

#[cfg(test)]
mod tests;
