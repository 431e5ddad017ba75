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
mod route;
mod headers;
mod trace;
mod http_message;
mod http1;
mod hpack;
mod http2;
pub mod http_fuzzing;

pub use decoder::{Candidate, Decoder, Limits, Opening, Options, Verdict, WrongProtocol};
pub use exchange::{Exchange, Messages, Outcome, Protocol, Status, TraceIds};
pub use headers::REDACTED;
pub use http1::HTTP1;
pub use http2::HTTP2;
pub use piece::{Direction, Piece};
pub use privacy::Privacy;
pub use route::{fold_path, mask_query};

#[cfg(test)]
mod replay;
#[cfg(test)]
mod transcripts;
