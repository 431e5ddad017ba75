//! Who had the CPU while threads waited for one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    Profile, ProfileProcess, StrId, ThreadId, ThreadState, percent, printable::printable_within,
    short_time,
};

use super::contention_groups::{CpuHolderGroup, grouped, most_time_first};

pub type HolderId = u32;

/// Holders that are told apart; the others are one.
const MOST_HOLDERS: usize = 50;
/// Columns of a name in a sentence.
const NAME_COLUMNS: usize = 60;

/// Who had a CPU.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum CpuHolder {
    /// Its start is 0 and its texts are empty where nothing was known of the process when it was counted.
    Process {
        process: ProfileProcess,
        /// What its container is called, `NAMESPACE/POD/CONTAINER` as far as it is known.
        container_name: StrId,
    },
    /// Nobody: the CPU was idle. The thread was on its way to it, or a CPU quota was used up.
    Idle,
    /// A process without a number in the agent's PID namespace.
    OutOfSight,
}

/// Time in which a thread waited for a CPU and somebody else had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ContentionRow {
    pub thread: ThreadId,
    pub holder: HolderId,
    /// Of the end of the wait, as in [`super::SampleRow`].
    pub bucket: u32,
    pub ns: u64,
}

/// How long threads waited for a CPU, and who had it meanwhile. Times are nanoseconds, in sum over threads.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CpuContention {
    /// All that they waited for a CPU.
    pub waited_ns: u64,
    /// The part of it of which it is known who had the CPU: the sum of `holders`.
    pub known_ns: u64,
    /// Most time first.
    pub holders: Vec<CpuHolderTime>,
    /// The same by container, most time first.
    #[serde(default)]
    #[schema(required)]
    pub by_container: Vec<CpuHolderGroup>,
    /// The same by pod, most time first.
    #[serde(default)]
    #[schema(required)]
    pub by_pod: Vec<CpuHolderGroup>,
}

/// One that had the CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CpuHolderTime {
    pub kind: CpuHolderKind,
    /// Who it is, for the middle of a sentence: its name and container, or what is known. Printable.
    pub title: String,
    /// Null: not one process, or one that had ended before it was looked at. Text is untrusted.
    #[schema(required)]
    pub name: Option<String>,
    #[schema(required)]
    pub pid: Option<u32>,
    /// Id of its container.
    #[schema(required)]
    pub container: Option<String>,
    /// What the container is called, `NAMESPACE/POD/CONTAINER` as far as it is known. Text is untrusted.
    #[schema(required)]
    pub container_name: Option<String>,
    pub ns: u64,
    /// Of `waited_ns`.
    pub share_percent: f64,
}

/// What had the CPU.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum CpuHolderKind {
    /// Another process than that of the thread that waited.
    Process,
    /// Another thread of the same process.
    SameProcess,
    /// Nobody: the thread was on its way to an idle CPU, or a CPU quota was used up.
    Idle,
    /// A process outside the agent's PID namespace.
    OutOfSight,
    /// Processes that had the least of it.
    Others,
}

impl CpuHolderKind {
    fn title(self, pid: Option<u32>, name: Option<&str>, container: Option<&str>) -> String {
        match self {
            Self::SameProcess => "other threads of the same process".to_owned(),
            Self::Idle => "nobody (the CPU was idle)".to_owned(),
            Self::OutOfSight => "a process outside the agent's PID namespace".to_owned(),
            Self::Others => "other processes".to_owned(),
            Self::Process => {
                let pid = pid.unwrap_or(0);
                let name = name.map_or_else(
                    || format!("process {pid} (no name is known)"),
                    |name| printable_within(name, NAME_COLUMNS),
                );
                container.map_or_else(
                    || name.clone(),
                    |container| {
                        let container = printable_within(container, NAME_COLUMNS);
                        format!("{name} (container {container})")
                    },
                )
            }
        }
    }
}

impl CpuContention {
    /// `chromium 6.1 s, node 4.0 s, not known 0.2 s`: the first `most` of them, those with one name together, the others in
    /// one. Empty where nothing waited.
    pub fn line(&self, most: usize) -> String {
        let of = |text: &str, ns: u64| format!("{text} {}", short_time(ns));
        let mut by_title: Vec<(&str, u64, u64)> = Vec::new();
        for holder in &self.holders {
            match by_title
                .iter_mut()
                .find(|(title, ..)| *title == holder.title)
            {
                Some((_, number, ns)) => {
                    *number += 1;
                    *ns = ns.saturating_add(holder.ns);
                }
                None => by_title.push((&holder.title, 1, holder.ns)),
            }
        }
        by_title.sort_by_key(|(.., ns)| std::cmp::Reverse(*ns));
        let (named, others) = by_title.split_at(most.min(by_title.len()));
        let mut parts: Vec<String> = named
            .iter()
            .map(|(title, number, ns)| match number {
                1 => of(title, *ns),
                number => of(&format!("{title} ({number} processes)"), *ns),
            })
            .collect();
        let others_ns: u64 = others.iter().map(|(.., ns)| ns).sum();
        if others_ns > 0 {
            parts.push(of("others", others_ns));
        }
        let unknown_ns = self.waited_ns.saturating_sub(self.known_ns);
        if unknown_ns > 0 {
            parts.push(of("not known", unknown_ns));
        }
        parts.join(", ")
    }

    /// `shop/batch 6.1 s, shop/cart 4.0 s`: the first `most` pods; empty where none is known.
    pub fn pods_line(&self, most: usize) -> String {
        let pods = self.by_pod.iter().filter_map(|group| {
            let name = group.name.as_deref()?;
            let name = printable_within(name, NAME_COLUMNS);
            Some(format!("{name} {}", short_time(group.ns)))
        });
        pods.take(most).collect::<Vec<_>>().join(", ")
    }
}

/// What some threads waited, and who had the CPU meanwhile.
#[derive(Default)]
struct Sums<'a> {
    waited_ns: u64,
    holders: BTreeMap<(CpuHolderKind, &'a CpuHolder), u64>,
}

impl Profile {
    /// Who had the CPU while the threads that `keeps` takes waited for one.
    pub fn cpu_contention(&self, keeps: impl Fn(ThreadId) -> bool) -> CpuContention {
        let mut all = self.cpu_contentions(|thread| keeps(thread).then_some(()));
        all.remove(&()).unwrap_or_default()
    }

    /// The same of groups of threads, in one pass; threads without a group are left out, and groups that did not wait.
    pub fn cpu_contentions<K: Ord>(
        &self,
        group: impl Fn(ThreadId) -> Option<K>,
    ) -> BTreeMap<K, CpuContention> {
        let mut groups: BTreeMap<K, Sums<'_>> = BTreeMap::new();
        let runnable = |state| matches!(state, ThreadState::Preempted | ThreadState::Woken);
        for row in self.samples.iter().filter(|row| runnable(row.state)) {
            if let Some(group) = group(row.thread) {
                let sums = groups.entry(group).or_default();
                sums.waited_ns = sums.waited_ns.saturating_add(row.total_ns);
            }
        }
        let known = self.known_holders();
        for row in &self.contention {
            let holder = self.holders.get(row.holder as usize);
            let (Some(group), Some(holder)) = (group(row.thread), holder) else {
                continue;
            };
            let holder = known_as(&known, holder);
            let kind = self.kind_of_holder(row.thread, holder);
            let sums = groups.entry(group).or_default();
            let sum = sums.holders.entry((kind, holder)).or_default();
            *sum = sum.saturating_add(row.ns);
        }
        groups
            .into_iter()
            .map(|(group, sums)| (group, self.contention_of(sums)))
            .collect()
    }

    fn contention_of(&self, sums: Sums<'_>) -> CpuContention {
        let known_ns = sums.holders.values().copied().fold(0, u64::saturating_add);
        // While a task runs, waits whose stacks are being named are not among the samples yet.
        let waited_ns = sums.waited_ns.max(known_ns);
        let mut holders: BTreeMap<(CpuHolderKind, Option<&CpuHolder>), u64> = BTreeMap::new();
        for ((kind, holder), ns) in &sums.holders {
            // Processes alone are told apart: the waiting threads may be of several.
            let process = Some(*holder).filter(|_| *kind == CpuHolderKind::Process);
            let sum = holders.entry((*kind, process)).or_default();
            *sum = sum.saturating_add(*ns);
        }
        let time_of = |((kind, process), ns)| self.holder_time(process, kind, ns, waited_ns);
        let all = || sums.holders.iter().map(|((_, holder), ns)| (*holder, *ns));
        CpuContention {
            waited_ns,
            known_ns,
            holders: most_time_first(
                holders.into_iter().map(time_of).collect(),
                MOST_HOLDERS,
                |holder| holder.ns,
                |ns| self.holder_time(None, CpuHolderKind::Others, ns, waited_ns),
            ),
            by_container: grouped(all(), waited_ns, |holder| self.container_of(holder)),
            by_pod: grouped(all(), waited_ns, |holder| self.pod_of(holder)),
        }
    }

    /// Processes of which more is known than their pid, by it; None: several had the same one.
    fn known_holders(&self) -> BTreeMap<u32, Option<&CpuHolder>> {
        let mut known: BTreeMap<u32, Option<&CpuHolder>> = BTreeMap::new();
        for holder in &self.holders {
            if let CpuHolder::Process { process, .. } = holder
                && process.key.start_ticks != 0
            {
                known
                    .entry(process.key.pid)
                    // The last name is that of the program that it ran in the end.
                    .and_modify(|other| {
                        *other = other.filter(|other| is_same(other, holder)).map(|_| holder);
                    })
                    .or_insert(Some(holder));
            }
        }
        known
    }

    fn kind_of_holder(&self, waiting: ThreadId, holder: &CpuHolder) -> CpuHolderKind {
        let own = self
            .threads
            .get(waiting as usize)
            .and_then(|thread| self.processes.get(thread.process as usize));
        match holder {
            CpuHolder::Process { process, .. }
                if own.is_some_and(|own| own.key.pid == process.key.pid) =>
            {
                CpuHolderKind::SameProcess
            }
            CpuHolder::Process { .. } => CpuHolderKind::Process,
            CpuHolder::Idle => CpuHolderKind::Idle,
            CpuHolder::OutOfSight => CpuHolderKind::OutOfSight,
        }
    }

    fn holder_time(
        &self,
        holder: Option<&CpuHolder>,
        kind: CpuHolderKind,
        ns: u64,
        waited_ns: u64,
    ) -> CpuHolderTime {
        let text = |id: StrId| Some(self.text(id).to_owned()).filter(|text| !text.is_empty());
        let (process, container_name) = match holder {
            Some(CpuHolder::Process {
                process,
                container_name,
            }) => (Some(process), text(*container_name)),
            Some(CpuHolder::Idle | CpuHolder::OutOfSight) | None => (None, None),
        };
        let name = process.and_then(|process| text(process.comm));
        let pid = process.map(|process| process.key.pid);
        CpuHolderTime {
            kind,
            title: kind.title(pid, name.as_deref(), container_name.as_deref()),
            name,
            pid,
            container: process.and_then(|process| text(process.container)),
            container_name,
            ns,
            share_percent: percent(ns, waited_ns),
        }
    }
}

/// Whether two are the same process, which may have another name since.
fn is_same(one: &CpuHolder, other: &CpuHolder) -> bool {
    match (one, other) {
        (CpuHolder::Process { process: one, .. }, CpuHolder::Process { process: other, .. }) => {
            one.key == other.key
        }
        _ => one == other,
    }
}

/// A process that was counted before anything was known of it is the one with its pid.
fn known_as<'a>(
    known: &BTreeMap<u32, Option<&'a CpuHolder>>,
    holder: &'a CpuHolder,
) -> &'a CpuHolder {
    match holder {
        CpuHolder::Process { process, .. } => known
            .get(&process.key.pid)
            .copied()
            .flatten()
            .unwrap_or(holder),
        CpuHolder::Idle | CpuHolder::OutOfSight => holder,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clock, ProcessKey, ProfileBuilder, ProfileThread, SampleRow, Selection};

    /// Threads 11 and 12 of process 11 wait for a CPU: 11 for 10 ms, of which "spinner" had 6 and thread 12 had 3.
    fn profile() -> Profile {
        let mut builder = ProfileBuilder::new(0, 1_000_000, Clock::Switches);
        let process = |builder: &mut ProfileBuilder, pid, name: &str| ProfileProcess {
            key: ProcessKey {
                pid,
                start_ticks: 1,
            },
            comm: builder.string(name),
            exe: 0,
            container: 0,
        };
        let own = process(&mut builder, 11, "envoy");
        let other = process(&mut builder, 20, "spinner");
        let container_name = builder.string("shop/cart/app");
        let process = builder.process(own.clone());
        let holders = [
            CpuHolder::Process {
                process: other,
                container_name,
            },
            CpuHolder::Process {
                process: own,
                container_name: 0,
            },
            CpuHolder::Idle,
        ]
        .map(|holder| builder.holder(holder));
        let stack = builder.stack(Vec::new());
        for (tid, bucket, waited_ms, held_ms) in [(11, 0, 10, [6, 3, 0]), (12, 5, 4, [0, 3, 1])] {
            let name = builder.string("wrk");
            let thread = builder.thread(ProfileThread { process, tid, name });
            builder.sample(SampleRow {
                thread,
                stack,
                cpu: 0,
                bucket,
                state: ThreadState::Preempted,
                waker: None,
                count: 1,
                total_ns: waited_ms * 1_000_000,
            });
            for (holder, ms) in holders.into_iter().zip(held_ms) {
                if ms > 0 {
                    builder.wait_for_cpu(ContentionRow {
                        thread,
                        holder,
                        bucket,
                        ns: ms * 1_000_000,
                    });
                }
            }
        }
        builder.finish()
    }

    fn check(profile: &Profile, expected: &str) {
        assert_eq!(profile.check(), Ok(()));
        assert_eq!(profile.cpu_contention(|_| true).line(5), expected);
    }

    #[test]
    fn says_who_had_the_cpu_and_what_is_not_known() {
        let found = profile().cpu_contention(|_| true);
        assert_eq!((found.waited_ns, found.known_ns), (14_000_000, 13_000_000));
        check(
            &profile(),
            "spinner (container shop/cart/app) 6.00 ms, other threads of the same process 6.00 ms, \
             nobody (the CPU was idle) 1.00 ms, not known 1.00 ms",
        );
        let groups = |groups: &[CpuHolderGroup]| -> Vec<(Option<String>, u64)> {
            let each = groups.iter();
            each.map(|group| (group.name.clone(), group.ns / 1_000_000))
                .collect()
        };
        let named = |name: &str| Some(name.to_owned());
        // The process of the waiting threads is in no container.
        assert_eq!(
            groups(&found.by_container),
            [(named("shop/cart/app"), 6), (None, 6), (None, 1)]
        );
        assert_eq!(
            groups(&found.by_pod),
            [(named("shop/cart"), 6), (None, 6), (None, 1)]
        );
        assert_eq!(found.pods_line(3), "shop/cart 6.00 ms");
        assert_eq!(
            found.line(1),
            "spinner (container shop/cart/app) 6.00 ms, others 7.00 ms, not known 1.00 ms"
        );
    }

    #[test]
    fn a_process_that_was_counted_before_it_was_known_is_one() {
        let mut found = profile();
        let unknown = |pid| CpuHolder::Process {
            process: ProfileProcess {
                key: ProcessKey {
                    pid,
                    start_ticks: 0,
                },
                comm: 0,
                exe: 0,
                container: 0,
            },
            container_name: 0,
        };
        found.holders.extend([unknown(20), unknown(30)]);
        found.contention[0].ns -= 2_000_000;
        for holder in [3, 4] {
            found.contention.push(ContentionRow {
                thread: 0,
                holder,
                bucket: 0,
                ns: 1_000_000,
            });
        }
        check(
            &found,
            "other threads of the same process 6.00 ms, spinner (container shop/cart/app) 5.00 ms, \
             process 30 (no name is known) 1.00 ms, nobody (the CPU was idle) 1.00 ms, not known 1.00 ms",
        );
    }

    #[test]
    fn a_process_has_its_last_name_and_the_least_are_one() {
        let mut found = profile();
        let mut renamed = found.holders[0].clone();
        if let CpuHolder::Process { process, .. } = &mut renamed {
            process.comm = StrId::try_from(found.holders.len()).unwrap();
        }
        found.holders.push(renamed);
        let expected = found.strings[found.holders.len() - 1].clone();
        assert_eq!(
            found.cpu_contention(|_| true).holders[0].name,
            Some(expected)
        );
        for pid in 1000..1060 {
            let mut other = found.holders[0].clone();
            if let CpuHolder::Process { process, .. } = &mut other {
                process.key.pid = pid;
            }
            found.contention.push(ContentionRow {
                thread: 0,
                holder: HolderId::try_from(found.holders.len()).unwrap(),
                bucket: 0,
                ns: 1,
            });
            found.holders.push(other);
        }
        let all = found.cpu_contention(|_| true);
        assert_eq!(all.holders.len(), MOST_HOLDERS + 1);
        let last = all.holders.last().unwrap();
        assert_eq!((last.kind, last.ns), (CpuHolderKind::Others, 13));
        assert_eq!(
            all.holders.iter().map(|holder| holder.ns).sum::<u64>(),
            all.known_ns
        );
    }

    #[test]
    fn a_selection_cuts_it_too() {
        let selection = Selection {
            tids: vec![12],
            ..Selection::default()
        };
        let later = Selection {
            from_ns: Some(5_000_000),
            ..Selection::default()
        };
        for selection in [selection, later] {
            check(
                &selection.apply(&profile()),
                "other threads of the same process 3.00 ms, nobody (the CPU was idle) 1.00 ms",
            );
        }
    }

    #[test]
    fn merging_adds_up() {
        let mut builder = ProfileBuilder::new(0, 1_000_000, Clock::Switches);
        // Other numbers for the same texts.
        builder.string("something else");
        builder.merge(&profile());
        builder.merge(&profile());
        check(
            &builder.finish(),
            "spinner (container shop/cart/app) 12.0 ms, other threads of the same process 12.0 ms, \
             nobody (the CPU was idle) 2.00 ms, not known 2.00 ms",
        );
    }

    #[test]
    fn a_damaged_table_is_refused() {
        let mut damaged = profile();
        damaged.holders.pop();
        assert!(damaged.check().is_err());
    }
}
