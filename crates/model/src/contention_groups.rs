//! Who had the CPU, by container and by pod.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use self::CpuHolderGroupKind as Kind;
use super::{CpuHolder, Profile, percent};

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
        match holder {
            CpuHolder::Idle => (Kind::Idle, ""),
            CpuHolder::OutOfSight => (Kind::OutOfSight, ""),
            CpuHolder::Process {
                process,
                container_name,
            } => {
                let (name, id) = (self.text(*container_name), self.text(process.container));
                let is_contained = !(name.is_empty() && id.is_empty());
                let found = is_contained.then(|| named(name, id)).flatten();
                found.unwrap_or((Kind::Outside, ""))
            }
        }
    }
}

/// The sums of holders by one way to group, most time first.
pub(super) fn grouped<'a>(
    holders: impl Iterator<Item = (&'a CpuHolder, u64)>,
    waited_ns: u64,
    group_of: impl Fn(&'a CpuHolder) -> (Kind, &'a str),
) -> Vec<CpuHolderGroup> {
    let mut sums: BTreeMap<(Kind, &str), u64> = BTreeMap::new();
    for (holder, ns) in holders {
        let sum = sums.entry(group_of(holder)).or_default();
        *sum = sum.saturating_add(ns);
    }
    let group = |kind, name: &str, ns| CpuHolderGroup {
        kind,
        name: (!name.is_empty()).then(|| name.to_owned()),
        ns,
        share_percent: percent(ns, waited_ns),
    };
    let found = sums.into_iter();
    let found = found.map(|((kind, name), ns)| group(kind, name, ns));
    most_time_first(
        found.collect(),
        MOST_GROUPS,
        |group| group.ns,
        |ns| group(Kind::Others, "", ns),
    )
}

/// The first `most`, and the others as one.
pub(super) fn most_time_first<T>(
    mut found: Vec<T>,
    most: usize,
    time_of: impl Fn(&T) -> u64,
    others: impl FnOnce(u64) -> T,
) -> Vec<T> {
    found.sort_by_key(|one| std::cmp::Reverse(time_of(one)));
    if found.len() > most {
        let rest = found.split_off(most);
        found.push(others(rest.iter().map(time_of).sum()));
    }
    found
}
