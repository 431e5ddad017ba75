use crate::render::summary::{threads, timeline, timeline_start_ms};

use super::sketch::{Sketch, empty, simple};

#[test]
fn the_timeline_counts_every_sample_once() {
    let profile = simple();
    assert_eq!(timeline(&profile, 100), [100, 0, 0, 17]);
    assert_eq!(timeline(&profile, 300), [100, 17]);
    assert_eq!(timeline(&profile, 1000), [117]);
    assert_eq!(timeline(&profile, 0).iter().sum::<u64>(), 117);
    assert_eq!(timeline(&empty(), 100), Vec::<u64>::new());
}

#[test]
fn the_timeline_begins_where_the_profile_does() {
    let mut sketch = Sketch::new();
    let main = sketch.user("main");
    sketch.bucket = 6_000_000;
    sketch.sample(3, vec![main]);
    let profile = sketch.finish();
    assert_eq!(timeline_start_ms(&profile, 1000), 600_000_000);
    assert_eq!(timeline(&profile, 1000), [3]);
}

#[test]
fn threads_are_listed_by_their_samples_under_their_last_name() {
    let mut sketch = Sketch::new();
    let main = sketch.user("main");
    sketch.sample(1, vec![main]);
    sketch.tid = 101;
    sketch.sample(2, vec![main]);
    sketch.thread = "renamed";
    sketch.sample(3, vec![main]);
    let threads: Vec<(u32, u32, String, String, u64)> = threads(&sketch.finish())
        .into_iter()
        .map(|thread| {
            (
                thread.pid,
                thread.tid,
                thread.process,
                thread.name,
                thread.samples,
            )
        })
        .collect();
    let row = |tid, name: &str, samples| (100, tid, "work".to_owned(), name.to_owned(), samples);
    assert_eq!(threads, [row(101, "renamed", 5), row(100, "work", 1)]);
}
