//! Keeps the collection running.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use profiler_model::{EdgeSpec, Recording, Target, TaskSpec};
use profiler_recording::{Collection, Collector, Part};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{WatchState, WatchedEdges, history::History, ledger::Ledger};
use profiler_memory::Ceiling;

/// Time before a collection that failed is started again; twice as long after each failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// A collection that ran for this long was all right: the next pause is a short one again.
const STEADY: Duration = Duration::from_mins(1);
/// What is said while it rests.
const RESTS: &str = "stopped because the agent's memory came near its ceiling (--max-memory); what was counted is kept, \
                     and it starts again when there is room";
/// How long the collection may take to end when the agent stops.
const DRAIN: Duration = Duration::from_secs(2);

/// Why a collection is over.
enum End {
    Shutdown,
    /// The agent's memory is near its ceiling.
    Resting,
    Failed(String),
}

/// Runs until `shutdown`.
pub(super) async fn keep(
    collector: Arc<dyn Collector>,
    watched: watch::Sender<WatchedEdges>,
    history: Arc<History>,
    shutdown: CancellationToken,
) {
    let mut ledger = Ledger::default();
    let mut pause = FIRST_PAUSE;
    let mut resting = Ceiling::own().network_paused();
    loop {
        let began = Instant::now();
        let reason = match collect(&collector, &watched, (&mut ledger, &history), &shutdown).await {
            End::Shutdown => return,
            End::Resting => {
                ledger.seal();
                watched
                    .send_modify(|watched| watched.state = WatchState::Waiting(RESTS.to_owned()));
                tokio::select! {
                    () = shutdown.cancelled() => return,
                    () = changed_to(&mut resting, false) => {}
                }
                watched.send_modify(|watched| watched.restarts += 1);
                continue;
            }
            End::Failed(reason) => reason,
        };
        ledger.seal();
        if began.elapsed() >= STEADY {
            pause = FIRST_PAUSE;
        }
        tracing::warn!(
            reason,
            ?pause,
            "the network collection ended; it is started again"
        );
        watched.send_modify(|watched| {
            watched.state = WatchState::Waiting(reason);
            watched.restarts += 1;
        });
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

async fn collect(
    collector: &Arc<dyn Collector>,
    watched: &watch::Sender<WatchedEdges>,
    (ledger, history): (&mut Ledger, &History),
    shutdown: &CancellationToken,
) -> End {
    let spec = TaskSpec {
        target: Target::All,
        duration_s: None,
        recording: Recording::Edges(EdgeSpec::default()),
    };
    let starting = Arc::clone(collector);
    let started = tokio::task::spawn_blocking(move || starting.start(&spec)).await;
    let mut collection = match started {
        Ok(Ok(collection)) => collection,
        Ok(Err(error)) => return End::Failed(error.to_string()),
        Err(_panicked) => return End::Failed("internal error while starting".to_owned()),
    };
    let origin_ns = collection.origin_ns;
    history.begin(origin_ns);
    watched.send_modify(|watched| {
        watched.state = WatchState::Running;
        watched.since_ns.get_or_insert(origin_ns);
    });
    let mut resting = Ceiling::own().network_paused();
    let mut rests = false;
    loop {
        let chunk = tokio::select! {
            chunk = collection.chunks.recv() => chunk,
            () = shutdown.cancelled() => {
                drain(collection).await;
                return End::Shutdown;
            }
            () = changed_to(&mut resting, true), if !rests => {
                // What it has counted comes with its last chunks.
                collection.stop.stop();
                rests = true;
                continue;
            }
        };
        let Some(chunk) = chunk else {
            if rests {
                return End::Resting;
            }
            return End::Failed("the collection ended by itself".to_owned());
        };
        let Part::Edges(table) = chunk.part else {
            continue;
        };
        let all = Arc::new(ledger.take(table));
        history.take(&all);
        watched.send_modify(|watched| {
            watched.table = Some(all);
            watched.updated = Some(Instant::now());
        });
    }
}

/// Waits until the collection is paused (`wanted`) or resumed.
async fn changed_to(resting: &mut watch::Receiver<bool>, wanted: bool) {
    if resting.wait_for(|rests| *rests == wanted).await.is_err() {
        // The sender is gone.
        std::future::pending::<()>().await;
    }
}

/// Lets the collection detach its programs before the agent ends.
async fn drain(mut collection: Collection) {
    collection.stop.stop();
    let ended = async { while collection.chunks.recv().await.is_some() {} };
    if tokio::time::timeout(DRAIN, ended).await.is_err() {
        tracing::error!("the network collection did not end in time");
    }
}
