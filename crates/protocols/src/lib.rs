//! Payload of connections to requests, without input or output.
//!
//! A [`Piece`] is what one call moved over a connection, of which the beginning was captured. A
//! [`Decoder`] of one protocol turns pieces into [`Exchange`]s: requests with their answers. What was
//! not captured is counted and never guessed, and what could be a secret is masked before it leaves a
//! decoder ([`Privacy`]).

mod piece;
mod privacy;
mod exchange;
mod decoder;
mod text;
mod reader;
mod frames;
mod framed;
mod order;
mod named;
mod tls;
mod dns;
mod redis;
mod sql;
mod postgresql;
mod mysql;
mod kafka;
mod mongodb;
mod route;
mod headers;
mod trace;
mod http_message;
mod http1;
mod hpack;
mod http2;
mod detect;
mod connection;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod replay;
#[cfg(test)]
mod store_properties;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod transcripts;

pub use connection::{Connection, ConnectionFacts, Trouble};
pub use decoder::{
    Candidate, Decoder, Limits, Opening, Options, PerDirection, Verdict, WrongProtocol,
};
pub use detect::CANDIDATES;
pub use exchange::{Body, Exchange, Messages, Outcome, Protocol, Status, TraceIds};
pub use headers::REDACTED;
pub use http_message::outcome_of_status;
pub use http1::HTTP1;
pub use http2::{HTTP2, grpc::outcome_of_grpc};
pub use piece::{Direction, Piece};
pub use privacy::Privacy;
pub use route::{fold_grpc_path, fold_path, mask_query};
pub use sql::{Dialect, fold_statement};
pub use tls::{TlsFacts, TlsVersion};
