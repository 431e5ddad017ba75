//! Where TLS functions are found, and where probes would be put, in libraries and programs as
//! distributions and projects ship them.

mod envoy;
mod found;
mod hostile;
mod libraries;
