//! MongoDB's wire protocol (mongodb.com, "MongoDB Wire Protocol").
//!
//! A reply names the request that it answers. Of a command its name and its collection are kept;
//! filters, documents, users and authentication never are.

mod bson;
mod message;
mod session;

use super::{Candidate, Opening, Protocol, Verdict, framed::Framed};
use message::{Header, Message};
use session::MongodbSession;

pub(crate) const MONGODB: Candidate = Candidate {
    protocol: Protocol::MongoDb,
    recognise,
    start: |options, joined| Box::new(Framed::new(MongodbSession::new(options), joined)),
};

fn recognise(opening: &Opening<'_>) -> Verdict {
    if opening.is_udp {
        return Verdict::No;
    }
    let bytes = opening.to_server;
    if bytes.len() < message::HEADER {
        let silent = opening.to_client.is_empty() || opening.joined;
        // A length below 48 MB ends with a byte of at most 2.
        let plausible = silent && bytes.get(3).is_none_or(|byte| *byte <= 2);
        return if plausible {
            Verdict::Undecided
        } else {
            Verdict::No
        };
    }
    let Some(header) = Header::read(bytes).filter(|header| header.response_to == 0) else {
        return Verdict::No;
    };
    let body = bytes.get(message::HEADER..).unwrap_or_default();
    if body.len() < 5 {
        return Verdict::Undecided;
    }
    match message::read(&header, body) {
        Some(Message::Command { name: Some(_), .. }) => Verdict::Yes,
        // Not all of the name is there yet, or it cannot be read: the reply decides.
        Some(_) => match Header::read(opening.to_client) {
            Some(reply) if reply.response_to == header.request_id => Verdict::Yes,
            Some(_) => Verdict::No,
            None => Verdict::Undecided,
        },
        None => Verdict::No,
    }
}

#[cfg(test)]
mod tests;
