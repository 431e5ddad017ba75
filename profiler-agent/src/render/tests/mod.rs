mod fixtures;
mod flamegraph;
mod pprof;
mod sketch;
mod summary;
mod text;
