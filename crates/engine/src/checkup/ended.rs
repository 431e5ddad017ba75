//! Whether two check-ups have come to an end that allows to compare them.

use profiler_analysis::comparison::{NotComparable, Which};
use profiler_model::{TaskKind, TaskState};

use super::{
    plan::KINDS,
    status::{Checkup, CheckupState},
};

/// Refuses check-ups that have not ended, and those of which the same task failed on one side only. A
/// diagnosis rests on the on-CPU samples, so that neither of these tasks may have failed.
pub fn check_ended(checkups: [&Checkup; 2]) -> Result<(), NotComparable> {
    let [earlier, later] = checkups;
    let sides = [(Which::Earlier, earlier), (Which::Later, later)];
    for (which, checkup) in sides {
        if checkup.state == CheckupState::Running {
            return Err(NotComparable::Running { which });
        }
    }
    for kind in KINDS {
        let failures = sides.map(|(which, checkup)| {
            let task = checkup.task(kind)?;
            let TaskState::Failed { reason } = &task.state else {
                return None;
            };
            Some(NotComparable::Failed {
                which,
                what: kind.name(),
                reason: reason.clone(),
            })
        });
        match failures {
            [Some(failed), None] | [None, Some(failed)] => return Err(failed),
            [Some(failed), Some(_)] if kind == TaskKind::OnCpu => return Err(failed),
            [Some(_), Some(_)] | [None, None] => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkup::status::{find, tests::group};

    fn checkup(on_cpu: TaskState, waits: TaskState) -> Checkup {
        let tasks = group("checkup-a", 1, [on_cpu, waits, TaskState::Finished]);
        find(&tasks, "checkup-a", |_| 0).unwrap()
    }

    fn failed() -> TaskState {
        TaskState::Failed {
            reason: "no such process: 17190".into(),
        }
    }

    #[test]
    fn a_check_up_that_failed_proves_nothing() {
        let good = || checkup(TaskState::Finished, TaskState::Finished);
        assert_eq!(check_ended([&good(), &good()]), Ok(()));
        let bad = checkup(failed(), failed());
        let error = check_ended([&good(), &bad]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the later check-up failed: on_cpu: no such process: 17190"
        );
        assert!(error.remedy().contains("new processes"));
        for (a, b) in [(&bad, &good()), (&bad, &bad)] {
            let error = check_ended([a, b]).unwrap_err().to_string();
            assert!(error.starts_with("the earlier check-up failed"), "{error}");
        }
    }

    #[test]
    fn a_task_may_fail_on_both_sides_and_not_on_one() {
        let partial = || checkup(TaskState::Finished, failed());
        let good = checkup(TaskState::Finished, TaskState::Finished);
        assert_eq!(check_ended([&partial(), &partial()]), Ok(()));
        let error = check_ended([&good, &partial()]).unwrap_err().to_string();
        assert!(
            error.starts_with("the later check-up failed: off_cpu"),
            "{error}"
        );
    }

    #[test]
    fn one_that_runs_is_not_compared_and_one_that_was_stopped_is() {
        let good = checkup(TaskState::Finished, TaskState::Finished);
        let running = checkup(TaskState::Finished, TaskState::Running);
        assert_eq!(
            check_ended([&good, &running]),
            Err(NotComparable::Running {
                which: Which::Later
            })
        );
        let stopped = checkup(TaskState::Cancelled, TaskState::Cancelled);
        assert_eq!(check_ended([&good, &stopped]), Ok(()));
    }
}
