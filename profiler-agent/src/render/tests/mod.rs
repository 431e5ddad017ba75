mod fixtures;
mod flamegraph;
mod imports;
mod pprof;
mod quality;
mod sketch;
mod summary;
mod text;
