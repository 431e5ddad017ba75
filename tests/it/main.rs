//! The agent against a real kernel, real processes and real peers. Run as root:
//! `cargo test -p profiler-tests --test it -- --test-threads=1` with the agent built.

#[cfg(test)]
mod capabilities;
#[cfg(test)]
mod edges;
#[cfg(test)]
mod hops;
#[cfg(test)]
mod targets;

#[cfg(test)]
mod access_log;
#[cfg(test)]
mod access_log_lines;
#[cfg(test)]
mod access_log_mesh;
#[cfg(test)]
mod access_logs;
#[cfg(test)]
mod answers;
#[cfg(test)]
mod api;
#[cfg(test)]
mod api_fuzz;
#[cfg(test)]
mod broken;
#[cfg(test)]
mod chaos;
#[cfg(test)]
mod chaos_clock;
#[cfg(test)]
mod chaos_envoy;
#[cfg(test)]
mod chaos_storage;
#[cfg(test)]
mod checkup;
#[cfg(test)]
mod cli;
#[cfg(test)]
mod compare;
#[cfg(test)]
mod containers;
#[cfg(test)]
mod cpu_contention;
#[cfg(test)]
mod degraded;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod diagnosis;
#[cfg(test)]
mod event_loop;
#[cfg(test)]
mod events;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod idle;
#[cfg(test)]
mod kubernetes;
#[cfg(test)]
mod kubernetes_names;
#[cfg(test)]
mod lifecycle;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod mesh;
#[cfg(test)]
mod mesh_profile;
#[cfg(test)]
mod names;
#[cfg(test)]
mod namespaces;
#[cfg(test)]
mod network;
#[cfg(test)]
mod network_capabilities;
#[cfg(test)]
mod network_cli;
#[cfg(test)]
mod network_load;
#[cfg(test)]
mod network_calls;
#[cfg(test)]
mod network_mesh;
#[cfg(test)]
mod network_tcp;
#[cfg(test)]
mod network_topology;
#[cfg(test)]
mod network_serve;
#[cfg(test)]
mod network_timed;
#[cfg(test)]
mod network_trouble;
#[cfg(test)]
mod network_unix;
#[cfg(test)]
mod off_cpu;
#[cfg(test)]
mod off_cpu_asleep;
#[cfg(test)]
mod off_cpu_mesh;
#[cfg(test)]
mod off_cpu_sampling;
#[cfg(test)]
mod on_cpu;
#[cfg(test)]
mod overview;
#[cfg(test)]
mod pods;
#[cfg(test)]
mod privileges;
#[cfg(test)]
mod requests_brokers;
#[cfg(test)]
mod requests_http;
#[cfg(test)]
mod requests_mesh;
#[cfg(test)]
mod requests_mesh_tls;
#[cfg(test)]
mod requests_pairs;
#[cfg(test)]
mod requests_payload;
#[cfg(test)]
mod requests_sidecar;
#[cfg(test)]
mod requests_stores;
#[cfg(test)]
mod requests_tls;
#[cfg(test)]
mod requests_truth;
#[cfg(test)]
mod shipped;
#[cfg(test)]
mod silent_files;
#[cfg(test)]
mod soak;
#[cfg(test)]
mod strangers;
#[cfg(test)]
mod stripped_mesh;
#[cfg(test)]
mod throttling;
#[cfg(test)]
mod ui;
#[cfg(test)]
mod ui_journeys;
#[cfg(test)]
mod ui_shell;
#[cfg(test)]
mod ui_stand_in;
#[cfg(test)]
mod ui_topology;
#[cfg(test)]
mod unwinding;
#[cfg(test)]
mod unwinding_programs;
#[cfg(test)]
mod wakers;
#[cfg(test)]
mod wall;
#[cfg(test)]
mod workloads;
