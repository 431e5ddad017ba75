//! One file for each probe: the entry function and its `try_` function.

mod on_cpu;
mod off_cpu;
mod contention;
mod wall;
mod asleep;
mod wakers;
mod event_loop;
mod network;
mod process;
mod kernel_names;
