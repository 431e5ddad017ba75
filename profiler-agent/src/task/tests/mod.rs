mod crash;
mod edge_steps;
mod event_loops;
mod fake;
mod lifecycle;
mod retention;
mod storage;
mod validation;
