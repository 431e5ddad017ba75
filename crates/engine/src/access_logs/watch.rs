//! Requests of the last minutes of all Envoys that send their access logs, for as long as the agent runs.

use std::{
    io,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use profiler_model::{
    EdgeSpec, Recording, RequestOptions, RequestSpec, RequestTable, Target, TaskSpec,
};
use profiler_recording::{Collection, Collector, Part};

/// For how long requests are added up before that begins anew.
const SPAN: Duration = Duration::from_mins(5);
/// Until a span has lasted so long, the one before it says more.
const YOUNG: Duration = Duration::from_mins(1);
/// Before it is tried again.
const PAUSE: Duration = Duration::from_secs(10);

/// Where the newest requests are read. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct LogsWatch {
    /// `None`: it is off.
    spans: Option<Arc<Mutex<Spans>>>,
}

#[derive(Debug, Default)]
struct Spans {
    before: Option<Arc<RequestTable>>,
    now: Option<Arc<RequestTable>>,
}

impl LogsWatch {
    /// Nothing is watched.
    pub fn off() -> Self {
        Self::default()
    }

    /// Watches on a thread of its own until nobody reads it any more.
    pub fn start(collector: Arc<dyn Collector>) -> io::Result<Self> {
        let spans: Arc<Mutex<Spans>> = Arc::default();
        let watched = Arc::clone(&spans);
        thread::Builder::new()
            .name("log-watch".to_owned())
            .spawn(move || watch(&*collector, &watched))?;
        Ok(Self { spans: Some(spans) })
    }

    /// Requests of the last one to six minutes, or since the agent began. `None`: it is off, or nothing is known yet.
    pub fn newest(&self) -> Option<Arc<RequestTable>> {
        let spans = self.spans.as_ref()?.lock();
        let is_young = |table: &Arc<RequestTable>| {
            let window = table.window;
            u128::from(window.to_ns.saturating_sub(window.from_ns)) < YOUNG.as_nanos()
        };
        match (&spans.now, &spans.before) {
            (Some(now), before) if !is_young(now) || before.is_none() => Some(Arc::clone(now)),
            (_, before) => before.clone(),
        }
    }
}

fn watch(collector: &dyn Collector, spans: &Arc<Mutex<Spans>>) {
    let spec = TaskSpec {
        target: Target::All,
        duration_s: None,
        recording: Recording::Requests(RequestSpec {
            edges: EdgeSpec::default(),
            options: RequestOptions {
                access_log: true,
                sockets: false,
                ..RequestOptions::default()
            },
        }),
    };
    while Arc::strong_count(spans) > 1 {
        match collector.start(&spec) {
            Ok(collection) => follow(collection, spans),
            Err(error) => {
                tracing::warn!(%error, "requests of access logs are not added up");
                thread::sleep(PAUSE);
            }
        }
        let mut spans = spans.lock();
        if let Some(over) = spans.now.take() {
            spans.before = Some(over);
        }
    }
}

/// Takes the results of one span.
fn follow(mut collection: Collection, spans: &Arc<Mutex<Spans>>) {
    let began = Instant::now();
    while let Some(chunk) = collection.chunks.blocking_recv() {
        if let Part::Requests(requests) = chunk.part {
            spans.lock().now = Some(Arc::new(requests.table));
        }
        if began.elapsed() >= SPAN || Arc::strong_count(spans) == 1 {
            collection.stop.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use profiler_model::Window;

    use super::*;

    fn table(seconds: u64) -> Arc<RequestTable> {
        Arc::new(RequestTable {
            window: Window {
                from_ns: 7,
                to_ns: 7 + seconds * 1_000_000_000,
            },
            ..RequestTable::default()
        })
    }

    #[test]
    fn a_young_span_gives_way_to_the_one_before() {
        for (before, now, expected) in [
            (None, None, None),
            (None, Some(table(5)), Some(table(5))),
            (Some(table(300)), Some(table(5)), Some(table(300))),
            (Some(table(300)), Some(table(60)), Some(table(60))),
            (Some(table(300)), None, Some(table(300))),
        ] {
            let watch = LogsWatch {
                spans: Some(Arc::new(Mutex::new(Spans { before, now }))),
            };
            assert_eq!(watch.newest(), expected);
        }
        assert_eq!(LogsWatch::off().newest(), None);
    }
}
