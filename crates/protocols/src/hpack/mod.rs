//! HPACK (RFC 7541) for connections seen from their beginning and for such that were joined late or were
//! not seen whole: what is given is right, and what cannot be known is `None`.

mod decoder;
mod table;
mod static_table;
mod huffman;

pub(crate) use decoder::{HpackDecoder, HpackError};

#[cfg(test)]
pub(crate) mod encoder;
#[cfg(test)]
mod tests;
