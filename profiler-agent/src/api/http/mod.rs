//! Handlers, one file for each resource.

pub(super) mod access_logs;
pub(super) mod checkups;
pub(super) mod containers;
pub(super) mod diagnosis;
pub(super) mod diff;
pub(super) mod edges;
pub(super) mod edge_connections;
pub(super) mod edge_series;
pub(super) mod event_loop;
pub(super) mod events;
pub(super) mod health;
pub(super) mod imports;
pub(super) mod meta;
pub(super) mod node;
pub(super) mod overview;
pub(super) mod pods;
pub(super) mod processes;
pub(super) mod profiles;
pub(super) mod quality;
pub(super) mod requests;
pub(super) mod support_bundle;
pub(super) mod symbols;
pub(super) mod tasks;
pub(super) mod timeline;
pub(super) mod waits;
