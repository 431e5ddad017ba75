//! The thread that owns the store. Everybody else sends it closures.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use tokio::sync::{mpsc, oneshot};

use super::{Store, StoreError};

/// Requests that may wait; a sender beyond that waits as well.
const QUEUE: usize = 64;

type Job = Box<dyn FnOnce(&mut Store) + Send>;

/// Sends work to the owner thread. Cheap to clone.
#[derive(Clone, Debug)]
pub struct StoreHandle {
    jobs: mpsc::Sender<Job>,
    closing: Arc<AtomicBool>,
    /// What [`Store::refuses`] said after the last request.
    refuses: Arc<AtomicBool>,
}

/// Dropping it ends the thread after the request in hand, writes what waits and frees the data
/// directory. Requests that still wait are refused, so the drop does not depend on other tasks.
#[derive(Debug)]
pub struct OwnerThread {
    thread: Option<JoinHandle<()>>,
    handle: StoreHandle,
}

impl StoreHandle {
    /// Moves `store` to a thread of its own.
    pub fn spawn(store: Store) -> std::io::Result<(Self, OwnerThread)> {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let handle = Self {
            jobs,
            closing: Arc::default(),
            refuses: Arc::default(),
        };
        let closing = Arc::clone(&handle.closing);
        let refuses = Arc::clone(&handle.refuses);
        let thread = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || own(store, queue, &closing, &refuses))?;
        Ok((
            handle.clone(),
            OwnerThread {
                thread: Some(thread),
                handle,
            },
        ))
    }

    /// Runs `work` on the owner thread and waits for its answer.
    pub async fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Store) -> R + Send + 'static,
    ) -> Result<R, StoreError> {
        let (job, answer) = with_answer(work);
        self.jobs.send(job).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| self.unanswered())
    }

    /// The same for threads that may block.
    pub fn run_blocking<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Store) -> R + Send + 'static,
    ) -> Result<R, StoreError> {
        let (job, answer) = with_answer(work);
        self.jobs
            .blocking_send(job)
            .map_err(|_| StoreError::Closed)?;
        answer.blocking_recv().map_err(|_| self.unanswered())
    }

    /// Whether the disk refused the last write.
    pub fn refuses(&self) -> bool {
        self.refuses.load(Ordering::Relaxed)
    }

    fn unanswered(&self) -> StoreError {
        if self.closing.load(Ordering::Relaxed) {
            StoreError::Closed
        } else {
            StoreError::Panicked
        }
    }
}

fn with_answer<R: Send + 'static>(
    work: impl FnOnce(&mut Store) -> R + Send + 'static,
) -> (Job, oneshot::Receiver<R>) {
    let (sender, receiver) = oneshot::channel();
    let job = Box::new(move |store: &mut Store| {
        // The receiver is gone when the caller was cancelled; the work is done all the same.
        drop(sender.send(work(store)));
    });
    (job, receiver)
}

fn own(
    mut store: Store,
    mut queue: mpsc::Receiver<Job>,
    closing: &AtomicBool,
    refuses: &AtomicBool,
) {
    while !closing.load(Ordering::Relaxed)
        && let Some(job) = queue.blocking_recv()
    {
        // redb may panic on a file that was damaged from outside; that must not take the agent down.
        if catch_unwind(AssertUnwindSafe(|| job(&mut store))).is_err() {
            tracing::error!("a store operation panicked; the file is opened again");
            store.reset();
        }
        refuses.store(store.refuses(), Ordering::Relaxed);
    }
    if let Err(error) = store.close() {
        tracing::error!(%error, "results that were not yet written are lost");
    }
}

impl Drop for OwnerThread {
    fn drop(&mut self) {
        self.handle.closing.store(true, Ordering::Relaxed);
        // Wakes the thread when it waits; when the queue is full it is awake anyway.
        drop(self.handle.jobs.try_send(Box::new(|_| ())));
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the store's thread panicked");
        }
    }
}
