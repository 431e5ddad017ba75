//! Turns the kernel side's records of sockets into edges and requests: pure functions over plain data.
//!
//! [`edges`] adds connections up, [`requests`] finds requests in their payload.

pub mod edges;
pub mod requests;
