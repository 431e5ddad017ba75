mod fixtures;
mod flamegraph;
mod pprof;
mod quality;
mod sketch;
mod summary;
mod text;
