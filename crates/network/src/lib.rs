//! What sockets did, from records of the kernel side to who talks to whom and what was asked: pure functions over plain
//! data.
//!
//! [`edges`] adds connections up, [`requests`] finds requests in their payload.

pub mod edges;
pub mod requests;
