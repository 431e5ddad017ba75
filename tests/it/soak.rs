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
/// By this share of its median a figure may have grown over the later two thirds, by the lower end of its interval.
const GROWTH: f64 = 0.05;
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
    assert!(
        is_flat || is_step(soaked.settled(), GROWTH * median, figure),
        "{name} grows: {:#?}",
        soaked.readings
    );
    // The always-on profile reads the file of a program when it first meets it, also of one that is not of this test.
    assert_measured!(
        is_flat,
        "{name} grew once, in one step: {:#?}",
        soaked.readings
    );
    assert_measured!(
        width <= UNCERTAINTY * median,
        "{name} varies too much to tell: {:#?}",
        soaked.readings
    );
}

/// Whether growth of more than `bound` is in one place: what grows with check-ups grows in each quarter.
fn is_step(settled: &[Reading], bound: f64, figure: fn(&Reading) -> f64) -> bool {
    let quarters: Vec<f64> = settled
        .chunks(settled.len().div_ceil(4).max(1))
        .map(|quarter| median(&quarter.iter().map(figure).collect::<Vec<_>>()))
        .collect();
    let grown = quarters
        .windows(2)
        .filter(|pair| pair[1] - pair[0] > bound / 4.0);
    grown.count() <= 1
}

#[test]
fn growth_in_each_quarter_is_no_step() {
    let of = |figures: [f64; 12]| {
        figures.map(|rss_mb| Reading {
            rss_mb,
            ..Reading::default()
        })
    };
    let figure = |reading: &Reading| reading.rss_mb;
    let steady: [f64; 12] =
        std::array::from_fn(|number| 170.0 + f64::from(u8::try_from(number).unwrap()));
    assert!(!is_step(&of(steady), 8.5, figure));
    let step: [f64; 12] = std::array::from_fn(|number| if number < 8 { 174.0 } else { 193.0 });
    assert!(is_step(&of(step), 8.5, figure));
}

#[test]
fn check_ups_leave_nothing_behind() {
    let options = Options {
        duration: DURATION,
        requests_per_second: RATE,
        checkup_s: CHECKUP_S,
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
    let third = settled.len() / 3;
    let threads = |readings: &[Reading]| {
        let all: Vec<f64> = readings
            .iter()
            .map(|reading| f64::from(reading.threads))
            .collect();
        median(&all)
    };
    let early = threads(&settled[..third]);
    let late = threads(&settled[settled.len() - third..]);
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
