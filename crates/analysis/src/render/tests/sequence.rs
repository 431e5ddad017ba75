use crate::render::{Value, sequence::columns};

use super::sketch::{Sketch, deep, empty, simple};

#[test]
fn stacks_stand_in_the_order_of_their_buckets() {
    let mut sketch = Sketch::new();
    let (main, early, late) = (
        sketch.user("main"),
        sketch.user("early"),
        sketch.user("late"),
    );
    sketch.bucket = 7;
    sketch.sample(2, vec![main, late]);
    sketch.bucket = 3;
    sketch.sample(1, vec![main, early]);
    sketch.sample(3, vec![main]);
    let columns = columns(&sketch.finish(), 100, Value::Count, 8);
    assert_eq!(columns.threads.len(), 1);
    let thread = &columns.threads[0];
    assert_eq!(thread.buckets, [0, 0, 4]);
    assert_eq!(thread.amounts.iter().sum::<u64>(), 6);
    let names: Vec<Vec<&str>> = thread
        .stacks
        .iter()
        .map(|stack| {
            let labels = &columns.stacks[*stack as usize];
            labels
                .iter()
                .map(|label| columns.labels[*label as usize].name.as_str())
                .collect()
        })
        .collect();
    assert_eq!(names[2], ["main", "late"]);
    assert!(names[..2].contains(&vec!["main", "early"]));
}

#[test]
fn every_sample_is_listed_or_said_to_be_left_out() {
    for profile in [simple(), deep(), empty()] {
        for limit in [1, 8] {
            let columns = columns(&profile, 100, Value::Count, limit);
            let listed: u64 = columns
                .threads
                .iter()
                .map(|thread| {
                    assert_eq!(thread.summary.samples, thread.amounts.iter().sum::<u64>());
                    thread.summary.samples
                })
                .sum();
            assert_eq!(listed + columns.other_amount, profile.total_count());
            assert!(columns.threads.len() <= limit);
        }
    }
}

#[test]
fn many_stacks_in_many_buckets_stay_bounded() {
    let mut sketch = Sketch::new();
    let frames: Vec<_> = (0..80)
        .map(|number| sketch.user(&format!("f{number}")))
        .collect();
    for bucket in 0..2_000 {
        sketch.bucket = bucket;
        for frame in &frames {
            sketch.sample(1, vec![*frame]);
        }
    }
    let profile = sketch.finish();
    let columns = columns(&profile, 100, Value::Count, 8);
    let rows = columns.threads[0].buckets.len();
    assert!(rows <= 60_000, "{rows} rows");
    assert_eq!(columns.stacks_per_bucket, 29);
    assert_eq!(columns.threads[0].amounts.iter().sum::<u64>(), 160_000);
    assert!(columns.labels.iter().any(|label| label.name == "(other)"));
}
