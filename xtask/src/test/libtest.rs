//! What a test binary of Rust says: its counts, and what its failed tests printed.

use anyhow::{Result, bail, ensure};

use super::tally::{Failure, Tally, is_panic};

/// Prefix of the ignore reason of functions that are not tests but child processes of tests.
pub(crate) const NOT_A_TEST: &str = "not a test:";
/// How the message of a failed assertion begins that judges a measurement (`tests/src/measured.rs`).
const MEASURED: &str = "measured: ";
/// Most lines of a failed test that are kept: its assertion, and its end, where the logs of its processes are.
const HEAD_LINES: usize = 12;
const TAIL_LINES: usize = 14;

/// Reads the output of test binaries line by line, and sums over them.
#[derive(Debug, Default)]
pub(super) struct Reader {
    counts: Counts,
    failures: Vec<Failure>,
    place: Place,
}

/// In which part of a binary's output a line stands.
#[derive(Debug, Default, PartialEq, Eq)]
enum Place {
    /// Tests run.
    #[default]
    Run,
    /// What failed tests printed; the name of the one that is being read.
    Failed(Option<String>, Vec<String>),
    /// The list of failed tests, or what passed tests printed.
    Other,
}

/// What the test harness reports about itself.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    announced: usize,
    passed: usize,
    failed: usize,
    ignored: usize,
    /// Ignored functions that are child processes of tests, and say so in their reason.
    children: usize,
}

impl Reader {
    pub(super) fn read(&mut self, line: &str) {
        self.counts.read(line);
        if line.starts_with("test result: ") || line.starts_with("running ") {
            self.close();
            self.place = Place::Run;
            return;
        }
        match &mut self.place {
            Place::Run if line == "failures:" => self.place = Place::Failed(None, Vec::new()),
            Place::Run if line == "successes:" => self.place = Place::Other,
            Place::Failed(name, lines) => {
                if let Some(next) = header(line) {
                    let next = next.to_owned();
                    self.close();
                    self.place = Place::Failed(Some(next), Vec::new());
                } else if line == "failures:" {
                    self.close();
                    self.place = Place::Other;
                } else if name.is_some() {
                    lines.push(line.to_owned());
                }
            }
            // Behind the output of passed tests.
            Place::Other if line == "failures:" => self.place = Place::Failed(None, Vec::new()),
            Place::Run | Place::Other => {}
        }
    }

    fn close(&mut self) {
        if let Place::Failed(Some(test), lines) = std::mem::replace(&mut self.place, Place::Other) {
            self.failures.push(Failure {
                measured: is_measured(&lines),
                output: cut(&lines),
                test,
            });
        }
    }

    /// The counts, and an error where not every test of the binaries ran and passed. `status` is how they ended.
    pub(super) fn finish(
        mut self,
        tally: &mut Tally,
        ended_well: bool,
        ending: &str,
    ) -> Result<()> {
        self.close();
        let verdict = self.counts.verdict();
        tally.add(Tally {
            passed: self.counts.passed,
            failed: self.counts.failed,
            failures: self.failures,
        });
        verdict?;
        ensure!(ended_well, "the test binary ended with {ending}");
        Ok(())
    }
}

/// The name in `---- NAME stdout ----`.
fn header(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

/// Whether the last assertion that failed judges a measurement.
fn is_measured(lines: &[String]) -> bool {
    let last = lines.iter().rposition(|line| is_panic(line));
    last.and_then(|index| lines.get(index + 1))
        .is_some_and(|message| message.starts_with(MEASURED))
}

/// The lines from the assertion on, without the middle of a long output.
fn cut(lines: &[String]) -> Vec<String> {
    let whole: Vec<String> = lines
        .iter()
        .filter(|line| !line.trim().is_empty())
        .cloned()
        .collect();
    let panic = whole.iter().position(|line| is_panic(line)).unwrap_or(0);
    let from = &whole[panic..];
    if from.len() <= HEAD_LINES + TAIL_LINES {
        return from.to_vec();
    }
    let mut kept = from[..HEAD_LINES].to_vec();
    kept.push("...".to_owned());
    kept.extend_from_slice(&from[from.len() - TAIL_LINES..]);
    kept
}

impl Counts {
    fn read(&mut self, line: &str) {
        if line.starts_with("test ") && line.contains(&format!(" ... ignored, {NOT_A_TEST}")) {
            self.children += 1;
        } else if let Some(rest) = line.strip_prefix("running ") {
            self.announced += first_number(rest);
        } else if let Some(rest) = line.strip_prefix("test result: ") {
            for part in rest.split(['.', ';']).map(str::trim) {
                if part.ends_with(" passed") {
                    self.passed += first_number(part);
                } else if part.ends_with(" failed") {
                    self.failed += first_number(part);
                } else if part.ends_with(" ignored") {
                    self.ignored += first_number(part);
                }
            }
        }
    }

    /// Nothing ran, something was left out, or a binary died before its summary: all are failures.
    fn verdict(&self) -> Result<()> {
        ensure!(self.announced > self.ignored, "no test ran");
        if self.ignored != self.children {
            bail!(
                "{} tests did not run",
                self.ignored.saturating_sub(self.children)
            );
        }
        ensure!(
            self.passed + self.failed + self.children == self.announced,
            "{} tests were announced, {} passed and {} failed",
            self.announced,
            self.passed,
            self.failed
        );
        ensure!(self.failed == 0, "{} tests failed", self.failed);
        Ok(())
    }
}

fn first_number(text: &str) -> usize {
    text.split_whitespace()
        .next()
        .and_then(|word| word.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(output: &str) -> Reader {
        let mut reader = Reader::default();
        output.lines().for_each(|line| reader.read(line));
        reader
    }

    fn verdict(output: &str) -> Result<()> {
        read(output).counts.verdict()
    }

    fn failures(output: &str) -> Vec<Failure> {
        let mut tally = Tally::default();
        drop(read(output).finish(&mut tally, false, "exit status: 101"));
        tally.failures
    }

    const TWO_FAILURES: &str = "\
running 3 tests
test a ... FAILED
test b ... ok
test c ... FAILED

successes:

---- b stdout ----
71 of 100

successes:
    b

failures:

---- a stdout ----
some figures

thread 'a' (12) panicked at tests/it/a.rs:3:5:
3 is not 4

---- c stdout ----

thread 'c' (13) panicked at tests/it/c.rs:9:5:
measured: 0.4 of the samples, not 0.5

failures:
    a
    c

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    #[test]
    fn failed_tests_have_their_output_and_whether_they_measure() {
        let found = failures(TWO_FAILURES);
        let names: Vec<(&str, bool)> = found
            .iter()
            .map(|failure| (failure.test.as_str(), failure.measured))
            .collect();
        assert_eq!(names, [("a", false), ("c", true)]);
        assert_eq!(
            found[0].output,
            [
                "thread 'a' (12) panicked at tests/it/a.rs:3:5:",
                "3 is not 4"
            ]
        );
    }

    #[test]
    fn a_failure_behind_a_measured_one_is_not_measured() {
        let output = "\
running 1 test
failures:
---- a stdout ----
thread 'a' (1) panicked at a.rs:1:1:
measured: 3
thread 'a' (1) panicked at a.rs:2:1:
nothing is left over
failures:
    a
test result: FAILED. 0 passed; 1 failed; 0 ignored
";
        assert!(!failures(output)[0].measured);
    }

    #[test]
    fn a_long_output_keeps_the_assertion_and_its_end() {
        let middle: String = (0..100).fold(String::new(), |text, n| format!("{text}line {n}\n"));
        let output = format!(
            "running 1 test\nfailures:\n---- a stdout ----\nthread 'a' (1) panicked at a.rs:1:1:\nno\n{middle}the agent's last word\nfailures:\n    a\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\n"
        );
        let kept = &failures(&output)[0].output;
        assert_eq!(kept[1], "no");
        assert_eq!(kept.last().unwrap(), "the agent's last word");
        assert_eq!(kept.len(), HEAD_LINES + 1 + TAIL_LINES);
    }

    #[test]
    fn counts_are_summed_over_binaries() {
        let reader = read(
            "running 2 tests\ntest a ... ok\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 7 filtered out; finished in 0.00s\n\
             running 1 test\ntest result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n",
        );
        assert_eq!(
            reader.counts,
            Counts {
                announced: 3,
                passed: 2,
                failed: 1,
                ignored: 0,
                children: 0
            }
        );
        assert!(reader.counts.verdict().is_err());
    }

    #[test]
    fn a_run_of_zero_tests_does_not_pass() {
        assert!(
            verdict("running 0 tests\ntest result: ok. 0 passed; 0 failed; 0 ignored\n").is_err()
        );
        assert!(verdict("").is_err());
    }

    #[test]
    fn a_skipped_test_does_not_pass() {
        assert!(
            verdict("running 2 tests\ntest result: ok. 1 passed; 0 failed; 1 ignored\n").is_err()
        );
    }

    #[test]
    fn a_child_process_of_a_test_is_no_test() {
        let child = "test writer ... ignored, not a test: started by another\n";
        let other = "test slow ... ignored, takes long\n";
        let result =
            |ignored: u32| format!("test result: ok. 1 passed; 0 failed; {ignored} ignored\n");
        verdict(&format!("running 2 tests\n{child}{}", result(1))).unwrap();
        assert!(verdict(&format!("running 2 tests\n{other}{}", result(1))).is_err());
        assert!(verdict(&format!("running 3 tests\n{child}{other}{}", result(2))).is_err());
        assert!(
            verdict(&format!(
                "running 1 test\n{child}test result: ok. 0 passed; 0 failed; 1 ignored\n"
            ))
            .is_err()
        );
    }

    #[test]
    fn a_binary_that_dies_does_not_pass() {
        assert!(verdict("running 2 tests\ntest a ... ok\n").is_err());
    }

    #[test]
    fn all_passed_is_a_pass() {
        verdict(
            "running 2 tests\ntest result: ok. 2 passed; 0 failed; 0 ignored; finished in 1.50s\n",
        )
        .unwrap();
    }
}
