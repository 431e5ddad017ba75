//! The end of the process when something in it does not end.

use std::{
    thread::{Builder, sleep},
    time::Duration,
};

/// For a line of the log.
const LAST_WORDS: Duration = Duration::from_millis(20);

/// Ends the process after `limit` if it has not ended until then: a thread may be where nothing wakes it. Nothing is
/// dropped, flushed or waited for then. A thread that waits for a server of FUSE which has read its request ends with that
/// server only, and the process with it.
pub(crate) fn by_force_after(limit: Duration) {
    let begun = Builder::new().name("deadline".to_owned()).spawn(move || {
        sleep(limit);
        // By another thread: the reader of the log may have stopped, and this one must not wait for it.
        let said = Builder::new().spawn(move || {
            tracing::error!(
                ?limit,
                "ended by force: something in the agent does not end by itself"
            );
        });
        if said.is_ok() {
            sleep(LAST_WORDS);
        }
        // SAFETY: ends the process whatever its threads do, and runs no code of it.
        unsafe { libc::_exit(1) }
    });
    if let Err(error) = begun {
        tracing::warn!(%error, "start the thread that watches the end");
    }
}
