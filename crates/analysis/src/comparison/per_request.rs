//! How sure the CPU time for each request is: from how it differs between blocks of time.
//!
//! Both numbers are exact for the whole window, but the next window of the same work would have others.
//! CPU time for each request is a ratio of sums over blocks, whose variance comes from how far each
//! block is from the ratio of all (Cochran, Sampling Techniques, 3rd edition, 6.3).

use profiler_model::{
    CheckupRecord, ProcessKey, RequestPoint, RequestSeries,
    diagnosis::{DiagnosedProcess, Estimate},
    float,
};

use crate::diagnosis::student_quantile;

/// Blocks that an interval is made from, at most; more are joined. They are long enough then that clock
/// ticks and what one block leaves for the next hardly matter.
const MOST_BLOCKS: usize = 30;
/// With fewer blocks their differences say too little.
const FEWEST_BLOCKS: usize = 5;

/// Widens an interval to what the blocks of the diagnosed processes say, when all of them have some.
pub fn widen(found: &mut Estimate, record: &CheckupRecord, processes: &[DiagnosedProcess]) {
    let keys = processes.iter().map(|process| ProcessKey {
        pid: process.pid,
        start_ticks: process.start_ticks,
    });
    let mut error = 0.0_f64;
    let mut freedom = f64::INFINITY;
    let mut requests = 0.0;
    for key in keys {
        let Some(series) = record.series.iter().find(|series| series.key == key) else {
            continue;
        };
        let blocks = blocks(series);
        if blocks.len() < FEWEST_BLOCKS {
            return;
        }
        let cpu: f64 = blocks.iter().map(|block| block.cpu_us).sum();
        let count: f64 = blocks.iter().map(|block| block.requests).sum();
        if count <= 0.0 {
            continue;
        }
        let ratio = cpu / count;
        let number = float(blocks.len() as u64);
        let squares: f64 = blocks
            .iter()
            .map(|block| (block.cpu_us - ratio * block.requests).powi(2))
            .sum();
        error += number / (number - 1.0) * squares;
        freedom = freedom.min(number - 1.0);
        requests += count;
    }
    if requests <= 0.0 {
        return;
    }
    let half = student_quantile(0.975, freedom) * error.sqrt() / requests;
    found.low = found.low.min(found.value - half).max(0.0);
    found.high = found.high.max(found.value + half);
}

struct Block {
    cpu_us: f64,
    requests: f64,
}

/// Differences between readings, joined to at most [`MOST_BLOCKS`]. What is left over at the end belongs
/// to the last one.
fn blocks(series: &RequestSeries) -> Vec<Block> {
    let points = &series.points;
    let steps = points.len().saturating_sub(1);
    let each = steps.div_ceil(MOST_BLOCKS).max(1);
    let count = steps / each;
    (0..count)
        .filter_map(|block| {
            let last = if block + 1 == count {
                steps
            } else {
                (block + 1) * each
            };
            Some(between(points.get(block * each)?, points.get(last)?))
        })
        .collect()
}

fn between(first: &RequestPoint, last: &RequestPoint) -> Block {
    Block {
        cpu_us: float(last.cpu_ns.saturating_sub(first.cpu_ns)) / 1000.0,
        requests: float(last.requests.saturating_sub(first.requests)),
    }
}

#[cfg(test)]
mod tests {
    use profiler_model::Observed;

    use super::*;

    const KEY: ProcessKey = ProcessKey {
        pid: 7,
        start_ticks: 1,
    };

    /// A record with blocks of (CPU time in us, requests).
    fn record(blocks: &[(u64, u64)]) -> CheckupRecord {
        let mut point = RequestPoint {
            at_ns: 0,
            cpu_ns: 0,
            requests: 1_000_000,
        };
        let mut points = vec![point];
        for (cpu_us, requests) in blocks {
            point.at_ns += 1_000_000_000;
            point.cpu_ns += cpu_us * 1000;
            point.requests += requests;
            points.push(point);
        }
        CheckupRecord {
            observed: Observed::default(),
            series: vec![RequestSeries { key: KEY, points }],
        }
    }

    fn processes(pid: u32) -> Vec<DiagnosedProcess> {
        vec![DiagnosedProcess {
            pid,
            start_ticks: 1,
            comm: "envoy".into(),
            exe: String::new(),
            container: None,
            rule_set: "envoy".into(),
            samples: 1,
            share_percent: 100.0,
        }]
    }

    fn widened(blocks: &[(u64, u64)]) -> Estimate {
        let mut estimate = Estimate {
            value: 50.0,
            low: 49.9,
            high: 50.1,
        };
        widen(&mut estimate, &record(blocks), &processes(KEY.pid));
        estimate
    }

    #[test]
    fn even_blocks_leave_the_interval_as_it_is() {
        let found = widened(&[(50_000, 1000); 10]);
        assert!((found.low - 49.9).abs() < 1e-9 && (found.high - 50.1).abs() < 1e-9);
    }

    /// Ten blocks of 1000 requests, half of them with 51, half with 49 us for each: the standard
    /// deviation of a block is 1.054 us, of the mean 0.333, and t with 9 degrees of freedom 2.262.
    #[test]
    fn uneven_blocks_widen_it() {
        let blocks: Vec<(u64, u64)> = (0..10)
            .map(|block| (if block % 2 == 0 { 51_000 } else { 49_000 }, 1000))
            .collect();
        let found = widened(&blocks);
        assert!((found.high - 50.754).abs() < 0.01, "{found:?}");
        assert!((found.low - 49.246).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn many_readings_are_joined_and_few_say_nothing() {
        let series = &record(&[(50, 1); 100]).series[0];
        let joined = blocks(series);
        assert_eq!(joined.len(), 25);
        let sum: f64 = joined.iter().map(|block| block.requests).sum();
        assert!((sum - 100.0).abs() < 1e-9);
        let few = widened(&[(90_000, 1000), (10_000, 1000)]);
        assert!((few.high - 50.1).abs() < 1e-9);
        assert!(
            blocks(&RequestSeries {
                key: KEY,
                points: Vec::new()
            })
            .is_empty()
        );
    }

    #[test]
    fn blocks_of_other_processes_do_not_count() {
        let mut estimate = Estimate {
            value: 50.0,
            low: 49.9,
            high: 50.1,
        };
        let uneven = record(&[
            (1, 1000),
            (99_000, 1000),
            (1, 1000),
            (99_000, 1000),
            (1, 1),
            (9, 1),
        ]);
        widen(&mut estimate, &uneven, &processes(8));
        assert!((estimate.high - 50.1).abs() < 1e-9);
    }
}
