//! What of the evidence is about the processes that are diagnosed.

use std::{borrow::Cow, collections::BTreeMap};

use profiler_model::{ProcessKey, Profile, Selection, diagnosis::DiagnosisScope};

use super::{
    input::{DiagnosisInput, sampled_processes},
    rules::DiagnosisRules,
};

/// Rules of sidecars.
const SIDECAR: &str = "envoy";

/// The processes of a scope, as `DiagnosisInput::pids` has them.
pub fn pids_of(
    scope: DiagnosisScope,
    rules: &DiagnosisRules,
    profiles: [Option<&Profile>; 2],
) -> Vec<u32> {
    match scope {
        DiagnosisScope::All => Vec::new(),
        DiagnosisScope::Sidecar => sidecar(rules, profiles).into_iter().collect(),
    }
}

/// The one proxy beside other processes.
fn sidecar(rules: &DiagnosisRules, profiles: [Option<&Profile>; 2]) -> Option<u32> {
    let mut is_proxy: BTreeMap<ProcessKey, bool> = BTreeMap::new();
    for profile in profiles.into_iter().flatten() {
        for process in sampled_processes(profile) {
            is_proxy.entry(process.key).or_insert_with(|| {
                let set = rules.set_of(profile.text(process.comm), profile.text(process.exe));
                rules.sets[set].id.get_ref() == SIDECAR
            });
        }
    }
    let mut proxies = is_proxy.iter().filter(|(_, is_proxy)| **is_proxy);
    let (key, _) = proxies.next()?;
    (proxies.next().is_none() && is_proxy.len() > 1).then_some(key.pid)
}

/// The profiles of the processes that are diagnosed.
pub(super) struct Cut<'a> {
    on_cpu: Option<Cow<'a, Profile>>,
    off_cpu: Option<Cow<'a, Profile>>,
}

impl<'a> Cut<'a> {
    pub(super) fn of(input: &DiagnosisInput<'a>) -> Self {
        let selection = Selection {
            pids: input.pids.clone(),
            ..Selection::default()
        };
        let cut = |profile: &'a Profile| {
            if selection.is_all() {
                Cow::Borrowed(profile)
            } else {
                Cow::Owned(selection.apply(profile))
            }
        };
        Self {
            on_cpu: input.on_cpu.map(cut),
            off_cpu: input.off_cpu.map(cut),
        }
    }

    /// The same evidence, with these profiles.
    pub(super) fn input<'b>(&'b self, whole: &DiagnosisInput<'b>) -> DiagnosisInput<'b> {
        DiagnosisInput {
            on_cpu: self.on_cpu.as_deref(),
            off_cpu: self.off_cpu.as_deref(),
            ..whole.clone()
        }
    }
}
