//! Waiting for something to become true, with a deadline.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};

const STEP: Duration = Duration::from_millis(5);

/// Polls until `condition` holds; an error that names `what` when it does not within `limit`.
pub fn wait_until(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) -> Result<()> {
    wait_for(what, limit, || condition().then_some(()))
}

/// Polls until `attempt` gives a value; an error that names `what` when it does not within `limit`.
pub fn wait_for<T>(
    what: &str,
    limit: Duration,
    mut attempt: impl FnMut() -> Option<T>,
) -> Result<T> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(value) = attempt() {
            return Ok(value);
        }
        if Instant::now() >= deadline {
            bail!("waited {limit:?} in vain: {what}");
        }
        thread::sleep(STEP);
    }
}
