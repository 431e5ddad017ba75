//! Who had the CPU, by container and by pod.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{CpuHolder, Profile, StrId, percent};

/// Groups that are told apart; the others are one.
const MOST_GROUPS: usize = 30;

/// Processes that had the CPU while threads waited for one, the process of the waiting thread included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CpuHolderGroup {
    pub kind: CpuHolderGroupKind,
    /// Of a pod `NAMESPACE/POD`, of a container its name or else its id; of what is none, null. Text is untrusted.
    #[schema(required)]
    pub name: Option<String>,
    pub ns: u64,
    /// Of `waited_ns`.
    pub share_percent: f64,
}

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum CpuHolderGroupKind {
    /// A container, or a pod.
    Container,
    Pod,
    /// Processes in no container; among pods those in containers of which no pod is known, too.
    Outside,
    /// Nobody: the CPU was idle.
    Idle,
    /// Processes outside the agent's PID namespace.
    OutOfSight,
    /// Those that had the least of it.
    Others,
}

use CpuHolderGroupKind as Kind;

/// By whom the CPU was held, for one way to group.
pub(super) type Groups<'a> = BTreeMap<(Kind, &'a str), u64>;

impl Profile {
    pub(super) fn container_of(&self, holder: &CpuHolder) -> (Kind, &str) {
        self.group_of(holder, |name, id| {
            Some((Kind::Container, if name.is_empty() { id } else { name }))
        })
    }

    pub(super) fn pod_of(&self, holder: &CpuHolder) -> (Kind, &str) {
        self.group_of(holder, |name, _| {
            // NAMESPACE/POD/CONTAINER; names of other containers have fewer parts.
            let (pod, _) = name.rsplit_once('/').filter(|(pod, _)| pod.contains('/'))?;
            Some((Kind::Pod, pod))
        })
    }

    fn group_of<'a>(
        &'a self,
        holder: &CpuHolder,
        named: impl Fn(&'a str, &'a str) -> Option<(Kind, &'a str)>,
    ) -> (Kind, &'a str) {
        let text = |id: StrId| self.text(id);
        match holder {
            CpuHolder::Idle => (Kind::Idle, ""),
            CpuHolder::OutOfSight => (Kind::OutOfSight, ""),
            CpuHolder::Process {
                process,
                container_name,
            } => {
                let (name, id) = (text(*container_name), text(process.container));
                let is_contained = !(name.is_empty() && id.is_empty());
                let found = is_contained.then(|| named(name, id)).flatten();
                found.unwrap_or((Kind::Outside, ""))
            }
        }
    }
}

/// Most time first.
pub(super) fn listed(groups: Groups<'_>, waited_ns: u64) -> Vec<CpuHolderGroup> {
    let group = |kind, name: &str, ns| CpuHolderGroup {
        kind,
        name: (!name.is_empty()).then(|| name.to_owned()),
        ns,
        share_percent: percent(ns, waited_ns),
    };
    let mut found: Vec<CpuHolderGroup> = groups
        .into_iter()
        .map(|((kind, name), ns)| group(kind, name, ns))
        .collect();
    found.sort_by_key(|group| std::cmp::Reverse(group.ns));
    if found.len() > MOST_GROUPS {
        let others = found.split_off(MOST_GROUPS);
        let ns = others.iter().map(|group| group.ns).sum();
        found.push(group(Kind::Others, "", ns));
    }
    found
}
