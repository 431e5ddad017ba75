//! Every sample is counted once.

use super::{PERIOD_NS, Sample, embedded, profile};
use crate::diagnosis::{matrix::CellSums, rules::DiagnosisRules};

/// Numbers that look random and are the same in every run (`SplitMix64`).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }

    fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        let place = self.next(list.len() as u64);
        &list[usize::try_from(place).unwrap()]
    }
}

const FRAMES: [&str; 18] = [
    "k:tcp_sendmsg",
    "k:nf_hook_slow",
    "k:net_rx_action",
    "k:asm_common_interrupt",
    "k:asm_exc_page_fault",
    "i:[tcmalloc]",
    "libc.so.6!__memcpy_avx512_unaligned_erms",
    "i:Envoy::Router::Filter [vslot 6]",
    "i:Envoy::Extensions::Tracers::Zipkin::Span [vslot 3]",
    "i:Envoy::Extensions::HttpFilters::Cors::CorsFilter [vslot 3]",
    "i:Envoy::Extensions::HttpFilters::ExtAuthz::Filter [vslot 3]",
    "i:Envoy::Http::ActiveStreamDecoderFilter [vslot 3]",
    "i:Envoy::Formatter::FormatterImpl [vslot 3]",
    "i:Envoy::Extensions::AccessLoggers::File::FileAccessLog [vslot 3]",
    "i:source/server/worker_impl.cc",
    "m:[stack lost]",
    "strange",
    "envoy+0x10",
];
const PROCESSES: [&str; 3] = ["envoy", "nginx", "server"];
const THREADS: [&str; 4] = ["wrk:worker_0", "AccessLogFlush", "GC Thread#1", "other"];

fn random(numbers: &mut Numbers) -> Vec<Sample<'static>> {
    let samples = 1 + numbers.next(60);
    (0..samples)
        .map(|_sample| {
            let length = numbers.next(9);
            let pid = 1 + numbers.next(3);
            Sample {
                process: PROCESSES[usize::try_from(pid - 1).unwrap()],
                pid: u32::try_from(pid).unwrap(),
                thread: numbers.of::<&str>(&THREADS),
                tid: 10 + u32::try_from(numbers.next(4)).unwrap(),
                frames: (0..length)
                    .map(|_frame| *numbers.of::<&str>(&FRAMES))
                    .collect(),
                bucket: u32::try_from(numbers.next(500)).unwrap(),
                count: 1 + numbers.next(5),
                ..Sample::of(&[])
            }
        })
        .collect()
}

fn check(rules: &DiagnosisRules, samples: &[Sample<'_>]) {
    let profile = profile(samples, 10);
    let sums = CellSums::of(rules, &profile);
    let matrix = sums.matrix(&|_id| false);
    let all: u64 = samples.iter().map(|sample| sample.count).sum();
    assert_eq!(
        matrix.cells.iter().map(|cell| cell.samples).sum::<u64>(),
        all
    );
    assert_eq!(
        matrix.cells.iter().map(|cell| cell.ns).sum::<u64>(),
        all * PERIOD_NS
    );
    let row = |feature: &str| -> f64 {
        let cells = matrix.cells.iter().filter(|cell| cell.feature == feature);
        cells.map(|cell| cell.share_percent).sum()
    };
    let column = |mechanism: &str| -> f64 {
        let cells = matrix
            .cells
            .iter()
            .filter(|cell| cell.mechanism == mechanism);
        cells.map(|cell| cell.share_percent).sum()
    };
    let rows: f64 = matrix.features.iter().map(|feature| row(&feature.id)).sum();
    let columns: f64 = matrix.mechanisms.iter().map(|one| column(&one.id)).sum();
    assert!((rows - 100.0).abs() < 1e-6, "{rows}");
    assert!((columns - 100.0).abs() < 1e-6, "{columns}");
    let mut names: Vec<_> = matrix
        .cells
        .iter()
        .map(|cell| (&cell.feature, &cell.mechanism))
        .collect();
    let cells = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), cells, "a cell is there twice");
    for cell in &matrix.cells {
        assert!(
            cell.low <= cell.share_percent && cell.share_percent <= cell.high,
            "{cell:?}"
        );
        assert!(0.0 <= cell.low && cell.high <= 100.0, "{cell:?}");
        assert!(
            cell.rules.iter().all(|rule| rule.samples <= cell.samples),
            "{cell:?}"
        );
    }
    // Choosing a cell keeps exactly its samples.
    for cell in &matrix.cells {
        let choice = rules
            .cell(&format!("{}:{}", cell.feature, cell.mechanism))
            .unwrap();
        let mut cut = profile.clone();
        rules.keep_cell(&mut cut, &choice);
        assert_eq!(cut.total_count(), cell.samples, "{cell:?}");
    }
}

#[test]
fn every_sample_is_in_one_cell_and_rows_and_columns_add_to_all() {
    let rules = embedded();
    for seed in 0..300 {
        check(&rules, &random(&mut Numbers(seed)));
    }
}
