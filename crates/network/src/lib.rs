//! What sockets did, from records of the kernel side to who talks to whom: pure functions over plain data.
//!
//! [`edges`] adds connections up.

pub mod edges;
