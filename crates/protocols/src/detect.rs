//! What a connection may turn out to speak, and which of it fits best.

use super::{
    Candidate, Opening, Protocol, Verdict,
    dns::{DNS_TCP, DNS_UDP},
    http1::HTTP1,
    http2::HTTP2,
    kafka::KAFKA,
    mongodb::MONGODB,
    mysql::MYSQL,
    postgresql::POSTGRESQL,
    redis::REDIS,
    tls::TLS,
};

/// What connections are taken for; a protocol is here when tests hold it against real peers. Where two are sure, the one of the server's usual port is taken,
/// else the first.
pub const CANDIDATES: &[Candidate] = &[
    TLS, HTTP2, HTTP1, REDIS, POSTGRESQL, MYSQL, DNS_UDP, DNS_TCP, KAFKA, MONGODB,
];

/// What the candidates made of an opening.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Choice {
    Taken(&'static Candidate),
    Undecided,
    /// All of them have declined.
    Nobody,
}

/// Asks all candidates but those that were wrong before.
pub(crate) fn choose(
    candidates: &'static [Candidate],
    opening: &Opening<'_>,
    excluded: &[Protocol],
) -> Choice {
    let mut taken: Option<&'static Candidate> = None;
    let mut undecided = false;
    for candidate in candidates {
        if excluded.contains(&candidate.protocol) {
            continue;
        }
        match (candidate.recognise)(opening) {
            Verdict::Yes => {
                let usual = is_usual(opening.server_port, candidate.protocol);
                if taken.is_none() || usual {
                    taken = Some(candidate);
                }
            }
            Verdict::Undecided => undecided = true,
            Verdict::No => {}
        }
    }
    match taken {
        Some(candidate) => Choice::Taken(candidate),
        None if undecided => Choice::Undecided,
        None => Choice::Nobody,
    }
}

/// Default ports of servers.
fn is_usual(port: u16, protocol: Protocol) -> bool {
    let ports: &[u16] = match protocol {
        Protocol::Http1 | Protocol::WebSocket | Protocol::Http => &[80, 8080],
        Protocol::Http2 | Protocol::Grpc => &[],
        Protocol::Tls => &[443, 8443, 853],
        Protocol::Dns => &[53],
        Protocol::Redis => &[6379],
        Protocol::PostgreSql => &[5432],
        Protocol::MySql => &[3306],
        Protocol::Kafka => &[9092],
        Protocol::MongoDb => &[27017],
    };
    ports.contains(&port)
}
