//! Stacks of the kernel beside those of an independent unwinder (`--verify-unwinding`).

use profiler_common::{counter, unwind::frame};

use super::{
    assembler::SampleAssembler,
    unwinder::{Purpose, Walked},
};

/// Differences that are described.
const DESCRIBED: usize = 5;

/// Comparisons whose other side has not arrived yet.
const WAITING: usize = 4096;

/// Takes what was walked: repaired stacks to the rows, the others are compared.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    waiting: Vec<Walked>,
    described: usize,
}

impl Comparison {
    pub(super) fn take(&mut self, walked: Walked, rows: &mut SampleAssembler) {
        match walked.purpose {
            Purpose::Repair => rows.stack_seen(walked.hash, walked.addresses),
            Purpose::CompareWhole | Purpose::CompareBeginning => {
                if self.waiting.len() < WAITING {
                    self.waiting.push(walked);
                }
            }
        }
    }

    /// Compares what there is of both sides.
    pub(super) fn compare(&mut self, rows: &mut SampleAssembler) {
        for walked in std::mem::take(&mut self.waiting) {
            let Some(kernel) = rows.addresses(walked.hash) else {
                self.waiting.push(walked);
                continue;
            };
            let kernel: Vec<u64> = kernel
                .iter()
                .map(|frame| frame & !frame::INTERRUPTED)
                .collect();
            let same = is_same(&kernel, &walked);
            if !same && self.described < DESCRIBED {
                self.described += 1;
                rows.notes.push(format!(
                    "unwinding differs: {} and independently {}",
                    text(&kernel),
                    text(&walked.addresses)
                ));
            }
            let tables = &mut rows.stack_quality().tables;
            tables.compared += 1;
            tables.identical += u64::from(same);
        }
    }
}

/// What became of kernel stacks that a program walked, each a second time by the kernel's walker.
pub(super) fn of_kernel_stacks(counters: &[u64]) -> Option<String> {
    let of = |index: u32| counters.get(index as usize).copied().unwrap_or(0);
    let compared = of(counter::KERNEL_STACKS_COMPARED);
    (compared != 0).then(|| {
        format!(
            "kernel stacks verified: {compared} of {} compared, {} different",
            of(counter::SAMPLES),
            of(counter::KERNEL_STACKS_DIFFERENT)
        )
    })
}

fn is_same(kernel: &[u64], walked: &Walked) -> bool {
    match walked.purpose {
        Purpose::CompareBeginning => kernel.starts_with(&walked.addresses),
        Purpose::CompareWhole | Purpose::Repair => *kernel == *walked.addresses,
    }
}

fn text(frames: &[u64]) -> String {
    let frames: Vec<String> = frames.iter().map(|frame| format!("{frame:x}")).collect();
    frames.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_that_ended_early_is_compared_as_far_as_it_went() {
        let walked = |purpose| Walked {
            hash: 1,
            addresses: Box::new([1, 2]),
            purpose,
        };
        assert!(is_same(&[1, 2, 3], &walked(Purpose::CompareBeginning)));
        assert!(!is_same(&[1, 2, 3], &walked(Purpose::CompareWhole)));
        assert!(is_same(&[1, 2], &walked(Purpose::CompareWhole)));
        assert!(!is_same(&[1], &walked(Purpose::CompareBeginning)));
    }
}
