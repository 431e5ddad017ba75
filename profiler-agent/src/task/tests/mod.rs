mod crash;
mod fake;
mod lifecycle;
mod retention;
mod storage;
mod validation;
