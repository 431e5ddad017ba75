//! Check-ups of the mesh in a loop: what the agent holds stays what it was. What grows with time and not with each
//! check-up is for the long form, `cargo xtask bench soak`.

use std::time::Duration;

use profiler_tests::{
    assert_measured,
    soak::{self, Options, Reading, Soaked},
    stats::{Slope, median},
};

/// For some forty check-ups on an idle machine.
const DURATION: Duration = Duration::from_secs(100);
const RATE: u32 = 300;
const CHECKUP_S: u64 = 1;
/// Fewest check-ups in that time.
const LEAST: usize = 20;
/// Names, edges and what the allocator keeps take most of this time to fill up.
const WARM_UP: f64 = 2.0 / 3.0;
/// By this share of its median a figure may have grown after the warm-up, by the lower end of its interval.
const GROWTH: f64 = 0.025;
/// The interval may be this share of the median wide, to either side; what is wider would tell nothing.
const UNCERTAINTY: f64 = 0.3;
/// Threads that wait for work to block on come and go.
const SPARE_THREADS: f64 = 4.0;

fn assert_flat(soaked: &Soaked, name: &str, figure: fn(&Reading) -> f64) {
    let all: Vec<f64> = soaked.settled().iter().map(figure).collect();
    let median = median(&all);
    let Slope { slope, half_width } = soaked.per_hour(figure).unwrap();
    let hours = soaked.settled_hours();
    let (growth, width) = (slope * hours, half_width * hours);
    println!("{name}: {median:.1}, grew by {growth:.2} +- {width:.2} in {hours:.3} h");
    let is_flat = growth - width <= GROWTH * median;
    let half = soaked.readings.len() / 2;
    assert!(
        is_flat || !is_steady(&soaked.readings[half..], GROWTH * median, figure),
        "{name} grows steadily: {:#?}",
        soaked.readings
    );
    // The always-on profile reads the file of a program when it first meets it, also of one that is not of this test,
    // and the allocator keeps more when threads overlap as they had not before.
    assert_measured!(is_flat, "{name} grew: {:#?}", soaked.readings);
    assert_measured!(
        width <= UNCERTAINTY * median,
        "{name} varies too much to tell: {:#?}",
        soaked.readings
    );
}

/// Whether it has grown from each reading to the next, as what each check-up leaves behind does: by the middle one of all
/// steps, by its share of more than `bound`. What is kept for longer grows in a few steps, and a few are large.
fn is_steady(readings: &[Reading], bound: f64, figure: fn(&Reading) -> f64) -> bool {
    let steps: Vec<f64> = readings
        .windows(2)
        .map(|pair| figure(&pair[1]) - figure(&pair[0]))
        .collect();
    median(&steps) * f64::from(u32::try_from(steps.len()).unwrap()) > bound
}

#[test]
fn growth_at_most_readings_is_steady() {
    let of = |figures: &[f64]| -> Vec<Reading> {
        let readings = figures.iter().map(|rss_mb| Reading {
            rss_mb: *rss_mb,
            ..Reading::default()
        });
        readings.collect()
    };
    let figure = |reading: &Reading| reading.rss_mb;
    let steady: [f64; 12] =
        std::array::from_fn(|number| 170.0 + f64::from(u8::try_from(number).unwrap()));
    assert!(is_steady(&of(&steady), 8.5, figure));
    let step: [f64; 12] = std::array::from_fn(|number| if number < 8 { 174.0 } else { 193.0 });
    assert!(!is_steady(&of(&step), 8.5, figure));
    // Measured: the allocator keeps more, twice.
    let steps = [
        184.2, 184.5, 184.1, 184.1, 184.1, 184.4, 184.5, 185.4, 185.9, 192.4, 188.4, 188.2, 188.9,
        195.8, 195.3, 195.7, 195.5, 195.5,
    ];
    assert!(!is_steady(&of(&steps), 4.7, figure));
}

#[test]
fn check_ups_leave_nothing_behind() {
    let options = Options {
        duration: DURATION,
        requests_per_second: RATE,
        checkup_s: CHECKUP_S,
        warm_up: WARM_UP,
    };
    let soaked = soak::run(&options, |_| ()).unwrap();
    assert_measured!(soaked.readings.len() >= LEAST, "{:#?}", soaked.readings);
    assert_flat(&soaked, "RSS", |reading| reading.rss_mb);
    assert_flat(&soaked, "RSS without files", |reading| reading.anonymous_mb);
    assert_flat(&soaked, "open files", |reading| {
        f64::from(reading.descriptors)
    });
    let first = &soaked.readings[0];
    for reading in soaked.settled() {
        assert_eq!(reading.kernel_objects, first.kernel_objects, "{reading:?}");
    }
    // Not each reading: a moment with much to block on has more threads, for ten seconds.
    let settled = soaked.settled();
    let half = settled.len() / 2;
    let threads = |readings: &[Reading]| {
        let all: Vec<f64> = readings
            .iter()
            .map(|reading| f64::from(reading.threads))
            .collect();
        median(&all)
    };
    let early = threads(&settled[..half]);
    let late = threads(&settled[settled.len() - half..]);
    assert!(
        late <= early + SPARE_THREADS,
        "threads: {early}, later {late}: {:#?}",
        soaked.readings
    );
    // A busy machine may keep Envoy from answering in time.
    assert_measured!(
        soaked.without_requests.len() * 20 <= soaked.readings.len(),
        "{:#?}",
        soaked.without_requests
    );
    assert!(
        soaked.left.is_empty(),
        "left in the kernel: {:?}",
        soaked.left
    );
    assert!(soaked.complaints.is_empty(), "{:#?}", soaked.complaints);
    assert_eq!(soaked.load.errors, 0, "{:?}", soaked.load);
}
