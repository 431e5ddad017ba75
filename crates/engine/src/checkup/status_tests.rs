use super::*;
use crate::checkup::plan::{CheckupRequest, specs};

const SECOND: u64 = 1_000_000_000;

pub(in crate::checkup) fn group(name: &str, first: u64, states: [TaskState; 3]) -> Vec<Arc<Task>> {
    let request = CheckupRequest {
        target: Target::Comm("envoy".into()),
        duration_s: 30,
        frequency_hz: 99,
        tls: false,
        access_log: false,
    };
    let all = specs(&request).into_iter().zip(states).zip(first..);
    all.map(|((spec, state), id)| {
        Arc::new(Task {
            group: Some(name.to_owned()),
            started_ns: (state != TaskState::Queued).then_some(10 * SECOND),
            state,
            ..Task::queued(TaskId(id), spec, 9 * SECOND)
        })
    })
    .collect()
}

fn failed() -> TaskState {
    TaskState::Failed {
        reason: "no".into(),
    }
}

fn state_of(states: [TaskState; 3]) -> CheckupState {
    find(&group("checkup-a", 1, states), "checkup-a", |_| 0)
        .unwrap()
        .state
}

#[test]
fn the_on_cpu_task_decides_what_became_of_it() {
    use TaskState::{Cancelled, Finished, Queued, Running};
    assert_eq!(
        state_of([Finished, Finished, Finished]),
        CheckupState::Finished
    );
    assert_eq!(
        state_of([Finished, failed(), failed()]),
        CheckupState::Finished
    );
    assert_eq!(
        state_of([failed(), Finished, Finished]),
        CheckupState::Failed
    );
    assert_eq!(
        state_of([Cancelled, Cancelled, Finished]),
        CheckupState::Cancelled
    );
    assert_eq!(
        state_of([Finished, Running, Finished]),
        CheckupState::Running
    );
    assert_eq!(state_of([Queued, Running, Running]), CheckupState::Running);
}

#[test]
fn its_rest_is_known_when_all_of_it_runs() {
    use TaskState::{Finished, Queued, Running};
    let rest = |states, now| {
        find(&group("checkup-a", 1, states), "checkup-a", |_| now)
            .unwrap()
            .ends_in_s
    };
    assert_eq!(rest([Running, Running, Running], 20 * SECOND), Some(20.0));
    assert_eq!(rest([Finished, Running, Finished], 70 * SECOND), Some(0.0));
    assert_eq!(rest([Running, Queued, Running], 20 * SECOND), None);
    assert_eq!(rest([Finished, Finished, Finished], 20 * SECOND), None);
}

#[test]
fn check_ups_are_the_groups_with_their_name_newest_first() {
    use TaskState::Finished;
    let mut tasks = group("checkup-old", 1, [Finished, Finished, Finished]);
    tasks.extend(group("checkup-new", 7, [Finished, Finished, Finished]));
    tasks.extend(group("mine", 20, [Finished, Finished, Finished]));
    let found = checkups(&tasks, |_| 0);
    let ids: Vec<&str> = found.iter().map(|checkup| checkup.id.as_str()).collect();
    assert_eq!(ids, ["checkup-new", "checkup-old"]);
    assert_eq!(
        found[0]
            .tasks
            .iter()
            .map(|task| task.kind)
            .collect::<Vec<_>>(),
        KINDS
    );
    assert_eq!(found[0].created_ns, 9 * SECOND);
    assert!(find(&tasks, "mine", |_| 0).is_none());
    assert!(find(&tasks, "checkup-none", |_| 0).is_none());
}

#[test]
fn a_deleted_task_is_missing_and_a_second_of_a_kind_is_not_counted() {
    use TaskState::Finished;
    let mut tasks = group("checkup-a", 1, [Finished, Finished, Finished]);
    tasks.extend(group("checkup-a", 9, [failed(), failed(), failed()]));
    tasks.remove(1);
    let found = find(&tasks, "checkup-a", |_| 0).unwrap();
    let ids: Vec<u64> = found.tasks.iter().map(|task| task.id.0).collect();
    assert_eq!(ids, [1, 10, 3]);
    assert_eq!(found.state, CheckupState::Finished);
    assert_eq!(found.keeper(), Some(TaskId(1)));
}
