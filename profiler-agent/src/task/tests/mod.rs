mod crash;
mod edge_steps;
mod fake;
mod lifecycle;
mod retention;
mod storage;
mod validation;
