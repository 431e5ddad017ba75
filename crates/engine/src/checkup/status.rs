//! What a check-up is and how far it got, read from the tasks of its group.

use std::{collections::BTreeMap, sync::Arc};

use profiler_model::{Target, Task, TaskId, TaskKind, TaskState, float};

use super::plan::{KINDS, PREFIX};

/// A check-up.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkup {
    /// Name of the group of its tasks.
    pub id: String,
    pub target: Target,
    pub duration_s: u64,
    pub state: CheckupState,
    /// Nanoseconds since the Unix epoch.
    pub created_ns: u64,
    /// Seconds until its tasks are over; `None` when they are, or when one waits for its turn.
    pub ends_in_s: Option<f64>,
    /// In the order of [`KINDS`]; one that was deleted is missing.
    pub tasks: Vec<CheckupTask>,
    /// Counters were read beside the tasks.
    pub observed: bool,
}

/// How far a check-up got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckupState {
    Running,
    /// The on-CPU task has its result; others may have failed.
    Finished,
    Failed,
    Cancelled,
}

/// One of its tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckupTask {
    pub id: TaskId,
    pub kind: TaskKind,
    pub state: TaskState,
}

impl Checkup {
    /// Its task of a kind.
    pub fn task(&self, kind: TaskKind) -> Option<&CheckupTask> {
        self.tasks.iter().find(|task| task.kind == kind)
    }

    /// The task that keeps what was observed.
    pub(super) fn keeper(&self) -> Option<TaskId> {
        Some(self.task(TaskKind::OnCpu)?.id)
    }

    /// `tasks` are those of one group, of which there is one at least.
    fn of(id: &str, tasks: &[&Arc<Task>], now_of: impl Fn(&Task) -> u64) -> Option<Self> {
        let mut chosen: Vec<&Arc<Task>> = Vec::new();
        for kind in KINDS {
            // The first of each kind, should a user have put more into the group.
            let of_kind = tasks.iter().filter(|task| task.kind() == Some(kind));
            chosen.extend(of_kind.min_by_key(|task| task.id));
        }
        let spec = chosen.first()?.spec()?;
        Some(Self {
            id: id.to_owned(),
            target: spec.target.clone(),
            duration_s: spec.duration_s?,
            state: state(&chosen),
            created_ns: chosen.iter().map(|task| task.created_ns).min()?,
            ends_in_s: ends_in_s(&chosen, now_of),
            tasks: chosen
                .iter()
                .filter_map(|task| {
                    Some(CheckupTask {
                        id: task.id,
                        kind: task.kind()?,
                        state: task.state.clone(),
                    })
                })
                .collect(),
            observed: false,
        })
    }
}

/// All check-ups, newest first. `now_of` is the time on the clock of a task's own times. [`Checkup::observed`] is not known from the tasks.
pub fn checkups(tasks: &[Arc<Task>], now_of: impl Fn(&Task) -> u64) -> Vec<Checkup> {
    let mut groups: BTreeMap<&str, Vec<&Arc<Task>>> = BTreeMap::new();
    for task in tasks {
        if let Some(group) = task
            .group
            .as_deref()
            .filter(|name| name.starts_with(PREFIX))
        {
            groups.entry(group).or_default().push(task);
        }
    }
    let mut found: Vec<Checkup> = groups
        .into_iter()
        .filter_map(|(id, tasks)| Checkup::of(id, &tasks, &now_of))
        .collect();
    found.sort_by_key(|checkup| std::cmp::Reverse(checkup.tasks.first().map(|task| task.id)));
    found
}

/// One check-up by its name.
pub fn find(tasks: &[Arc<Task>], id: &str, now_of: impl Fn(&Task) -> u64) -> Option<Checkup> {
    let of_group: Vec<&Arc<Task>> = tasks
        .iter()
        .filter(|task| task.group.as_deref() == Some(id) && id.starts_with(PREFIX))
        .collect();
    Checkup::of(id, &of_group, now_of)
}

fn state(tasks: &[&Arc<Task>]) -> CheckupState {
    if tasks.iter().any(|task| !task.state.is_final()) {
        return CheckupState::Running;
    }
    // What a diagnosis rests on is the on-CPU task; without it, whatever there is.
    let decisive = tasks
        .iter()
        .find(|task| task.kind() == Some(TaskKind::OnCpu));
    match decisive.or(tasks.first()).map(|task| &task.state) {
        Some(TaskState::Finished) => CheckupState::Finished,
        Some(TaskState::Cancelled) => CheckupState::Cancelled,
        Some(TaskState::Failed { .. } | TaskState::Queued | TaskState::Running) | None => {
            CheckupState::Failed
        }
    }
}

/// The longest rest of its tasks.
fn ends_in_s(tasks: &[&Arc<Task>], now_of: impl Fn(&Task) -> u64) -> Option<f64> {
    let mut longest = None;
    for task in tasks.iter().filter(|task| !task.state.is_final()) {
        let whole = task.duration_s()?.saturating_mul(1_000_000_000);
        let end = task.started_ns?.saturating_add(whole);
        let rest = float(end.saturating_sub(now_of(task))) / 1e9;
        longest = Some(longest.map_or(rest, |longest: f64| longest.max(rest)));
    }
    longest
}

#[cfg(test)]
#[path = "status_tests.rs"]
pub(super) mod tests;
