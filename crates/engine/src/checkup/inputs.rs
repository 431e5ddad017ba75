//! From what a check-up has to its diagnosis.

use std::{collections::BTreeSet, sync::Arc};

use profiler_analysis::{
    comparison,
    diagnosis::{
        DiagnosisInput, DiagnosisRules, diagnose, event_loops as loops_of, pids_of, place,
    },
    idle::IdleRules,
};
use profiler_host::container_names::ContainerDirectory;
use profiler_model::{
    CheckupRecord, EdgeTable, EventLoopTable, PodNames, Profile, RequestTable,
    diagnosis::{Diagnosis, DiagnosisScope},
};

/// All that is known of a check-up; what is missing is missing in the diagnosis, and its limits say so.
#[derive(Debug, Default)]
pub struct CheckupInputs {
    pub on_cpu: Option<Profile>,
    pub off_cpu: Option<Profile>,
    pub edges: Option<EdgeTable>,
    pub requests: Option<RequestTable>,
    pub record: Option<CheckupRecord>,
    /// Of the on-CPU task.
    pub event_loops: Option<EventLoopTable>,
    /// The pod that was measured, for the settings of findings.
    pub pod: Option<Arc<PodNames>>,
    /// Only this process, its latency too; without one `scope` decides.
    pub pid: Option<u32>,
    pub scope: DiagnosisScope,
    /// What is known to be missing, as sentences.
    pub limits: Vec<String>,
}

impl CheckupInputs {
    /// Whether anything was seen of a process.
    pub fn has(&self, pid: u32) -> bool {
        let profiles = [&self.on_cpu, &self.off_cpu].into_iter().flatten();
        let mut sampled = profiles.flat_map(|profile| &profile.processes);
        let mut observed = self
            .record
            .iter()
            .flat_map(|record| &record.observed.processes);
        sampled.any(|process| process.key.pid == pid)
            || observed.any(|process| process.key.pid == pid)
    }

    /// Blocks for as long as it takes to go over the samples a few times.
    pub fn diagnose(self, rules: &DiagnosisRules, idle: &IdleRules) -> Diagnosis {
        let Self {
            on_cpu,
            off_cpu,
            edges,
            requests,
            record,
            event_loops,
            pod,
            pid,
            scope,
            mut limits,
        } = self;
        let observed = record.as_ref().map(|record| &record.observed);
        limits.extend(observed.iter().flat_map(|observed| {
            let gaps = observed.gaps.iter();
            gaps.map(|gap| sentence(gap))
        }));
        let profiles = [on_cpu.as_ref(), off_cpu.as_ref()];
        let requests_to: Vec<u32> = pid.into_iter().collect();
        let pids = match pid {
            Some(pid) => vec![pid],
            None => pids_of(scope, rules, profiles),
        };
        let event_loop = loops_of(event_loops, &pids, on_cpu.as_ref(), off_cpu.as_ref());
        let input = DiagnosisInput {
            on_cpu: on_cpu.as_ref(),
            off_cpu: off_cpu.as_ref(),
            edges: edges.as_ref(),
            requests: requests.as_ref(),
            observed,
            event_loop: event_loop.as_ref(),
            pids,
            requests_to,
            limits,
        };
        let mut diagnosis = diagnose(rules, idle, &input);
        if let (Some(found), Some(record)) = (&mut diagnosis.totals.cpu_us_per_request, &record) {
            comparison::widen(found, record, &diagnosis.processes);
        }
        place(&mut diagnosis, pod.as_deref());
        diagnosis
    }
}

/// The pod that the sampled processes are in; `None` where it has no name, and where they are in several.
pub fn pod_of(profile: &Profile, names: &ContainerDirectory) -> Option<Arc<PodNames>> {
    let containers: BTreeSet<&str> = profile
        .processes
        .iter()
        .map(|process| profile.text(process.container))
        .collect();
    let mut pods = containers
        .into_iter()
        .filter_map(|id| names.by_id(id)?.pod.clone());
    let first = pods.next()?;
    pods.all(|other| other.uid == first.uid).then_some(first)
}

/// With a capital at its start and a full stop at its end.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    let stop = if text.ends_with('.') { "" } else { "." };
    format!(
        "{}{}{stop}",
        first.into_iter().flatten().collect::<String>(),
        letters.as_str()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_become_sentences() {
        assert_eq!(
            sentence("requests are not known"),
            "Requests are not known."
        );
        assert_eq!(sentence("Done."), "Done.");
        assert_eq!(sentence(""), ".");
    }
}
