use profiler_model::Profile;

use crate::render::{
    Value,
    summary::{process_timelines, thread_timelines, threads, timeline_start_ms},
};

use super::sketch::{PERIOD_NS, Sketch, empty, simple};

fn timeline(profile: &Profile, bucket_ms: u64) -> Vec<u64> {
    crate::render::summary::timeline(profile, bucket_ms, Value::Count)
}

#[test]
fn threads_over_time_add_up_to_the_timeline() {
    let profile = simple();
    let (all, others) = thread_timelines(&profile, 100, Value::Duration, 8);
    assert_eq!(others, 0);
    let sums: Vec<u64> = (0..4)
        .map(|bucket| all.iter().map(|(_, counts)| counts[bucket]).sum())
        .collect();
    assert_eq!(sums, [100 * PERIOD_NS, 0, 0, 17 * PERIOD_NS]);
    let (largest, others) = thread_timelines(&profile, 100, Value::Count, 1);
    assert_eq!((largest.len(), others), (1, 2));
    assert_eq!(largest[0].1, [100, 0, 0, 0]);
}

#[test]
fn processes_over_time_hold_all_of_their_threads() {
    let profile = simple();
    let processes = process_timelines(&profile, 100, Value::Count, 8);
    for (process, counts) in &processes {
        assert_eq!(
            (process.tid, &process.name),
            (process.pid, &process.process)
        );
        let own = threads(&profile);
        let own = own.iter().filter(|thread| thread.pid == process.pid);
        assert_eq!(
            process.samples,
            own.map(|thread| thread.samples).sum::<u64>()
        );
        assert_eq!(process.samples, counts.iter().sum::<u64>());
    }
    let all: u64 = processes.iter().map(|(process, _)| process.samples).sum();
    assert_eq!(all, 117);
    assert_eq!(process_timelines(&profile, 100, Value::Count, 1).len(), 1);
}

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
