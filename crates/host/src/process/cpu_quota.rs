//! CPU quotas of cgroups, and how often they stopped the cgroup's threads.
//!
//! A quota gives a cgroup so much CPU time of each period. When it is used up, the cgroup's queues of
//! runnable threads stand still until the next period: the threads want to run and do not. The
//! kernel counts these periods and, added up over its CPUs, how long queues stood still.

use std::path::{Path, PathBuf};

use profiler_image::proc_dir;

use super::cgroups::{ContainerHierarchy, read_cgroups};

/// Largest file of a cgroup that is read.
const FILE_LIMIT: usize = 16 * 1024;
/// Cgroups above one that are looked at.
const ANCESTORS: usize = 32;

/// What the kernel has counted since a cgroup was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThrottleCounts {
    /// Periods in which a thread of the cgroup ran or wanted to.
    pub periods: u64,
    /// Of these, the ones in which the quota was used up.
    pub throttled: u64,
    /// Time that queues stood still, added up over CPUs.
    pub throttled_ns: u64,
    /// CPU time of everything in it, also of what has ended; `None` where another hierarchy counts it.
    pub usage_ns: Option<u64>,
}

impl ThrottleCounts {
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            periods: self.periods.saturating_sub(earlier.periods),
            throttled: self.throttled.saturating_sub(earlier.throttled),
            throttled_ns: self.throttled_ns.saturating_sub(earlier.throttled_ns),
            usage_ns: self
                .usage_ns
                .zip(earlier.usage_ns)
                .map(|(now, before)| now.saturating_sub(before)),
        }
    }

    /// The same, or `None` where a count is smaller than it was: the cgroup is another one of the same path.
    pub fn since_same(self, earlier: Self) -> Option<Self> {
        let is_same = self.periods >= earlier.periods
            && self.throttled >= earlier.throttled
            && self.throttled_ns >= earlier.throttled_ns
            && self.usage_ns >= earlier.usage_ns;
        is_same.then(|| self.since(earlier))
    }
}

/// CPU time that a cgroup may use of each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    pub quota_us: u64,
    pub period_us: u64,
}

/// A cgroup with a quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitedCgroup {
    /// In its hierarchy; untrusted text.
    pub path: String,
    directory: PathBuf,
    pub quota: Quota,
}

impl LimitedCgroup {
    /// None when the cgroup is gone.
    pub fn counts(&self) -> Option<ThrottleCounts> {
        let mut counts = parse_counts(&read(&self.directory, "cpu.stat")?);
        if counts.usage_ns.is_none() {
            // v1, where both controllers are mounted together.
            let usage = read(&self.directory, "cpuacct.usage");
            counts.usage_ns = usage.and_then(|text| text.trim().parse().ok());
        }
        Some(counts)
    }
}

/// The hierarchy that shares out the CPUs.
#[derive(Clone, Debug)]
pub struct CpuHierarchy(ContainerHierarchy);

impl CpuHierarchy {
    pub fn detect() -> Option<Self> {
        ContainerHierarchy::of_controller("cpu").map(Self)
    }

    /// The cgroups that limit a process: its own and those above it, as far as they have a quota.
    pub fn limits_of(&self, pid: u32) -> Vec<LimitedCgroup> {
        let text = read_cgroups(pid).unwrap_or_default();
        let Some(path) = self.0.path_in(&text) else {
            return Vec::new();
        };
        let above = Path::new(path).ancestors().take(ANCESTORS);
        above
            .filter_map(|path| {
                let path = path.to_str()?;
                let directory = self.0.directory(path).ok()?;
                let quota = self.quota(&directory)?;
                Some(LimitedCgroup {
                    path: path.to_owned(),
                    directory,
                    quota,
                })
            })
            .collect()
    }

    fn quota(&self, directory: &Path) -> Option<Quota> {
        match self.0 {
            ContainerHierarchy::V2 { .. } => parse_maximum(&read(directory, "cpu.max")?),
            ContainerHierarchy::V1 { .. } => {
                let number = |name| read(directory, name)?.trim().parse().ok();
                // Without a quota it is -1.
                Some(Quota {
                    quota_us: number("cpu.cfs_quota_us")?,
                    period_us: number("cpu.cfs_period_us")?,
                })
            }
        }
    }
}

fn read(directory: &Path, name: &str) -> Option<String> {
    let path = directory.join(name);
    let bytes = proc_dir::read_path(path.to_str()?, FILE_LIMIT).ok()?;
    String::from_utf8(bytes).ok()
}

/// `cpu.max`: quota and period, or `max` in place of a quota.
fn parse_maximum(text: &str) -> Option<Quota> {
    let mut words = text.split_whitespace();
    Some(Quota {
        quota_us: words.next()?.parse().ok()?,
        period_us: words.next()?.parse().ok()?,
    })
}

/// `cpu.stat`, in which the time has another name and unit in each version of cgroups.
fn parse_counts(text: &str) -> ThrottleCounts {
    let mut counts = ThrottleCounts::default();
    for line in text.lines() {
        let Some((name, Ok(value))) = line
            .split_once(' ')
            .map(|(name, value)| (name, value.trim().parse::<u64>()))
        else {
            continue;
        };
        match name {
            "nr_periods" => counts.periods = value,
            "nr_throttled" => counts.throttled = value,
            "usage_usec" => counts.usage_ns = Some(value.saturating_mul(1000)),
            "throttled_usec" => counts.throttled_ns = value.saturating_mul(1000),
            "throttled_time" => counts.throttled_ns = value,
            _ => {}
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_count_alike() {
        let expected = ThrottleCounts {
            periods: 40,
            throttled: 12,
            throttled_ns: 3_000_000,
            usage_ns: None,
        };
        let v1 = "nr_periods 40\nnr_throttled 12\nthrottled_time 3000000\n";
        let v2 = "usage_usec 7\nnr_periods 40\nnr_throttled 12\nthrottled_usec 3000\nnr_bursts 0\n";
        assert_eq!(parse_counts(v1), expected);
        let used = ThrottleCounts {
            usage_ns: Some(7_000),
            ..expected
        };
        assert_eq!(parse_counts(v2), used);
        assert_eq!(used.since_same(used).unwrap().usage_ns, Some(0));
        assert_eq!(ThrottleCounts::default().since_same(expected), None);
        assert_eq!(
            parse_counts("noise\nnr_periods -1\n"),
            ThrottleCounts::default()
        );
        assert_eq!(expected.since(expected), ThrottleCounts::default());
    }

    #[test]
    fn only_a_number_is_a_quota() {
        let quota = Quota {
            quota_us: 20_000,
            period_us: 100_000,
        };
        assert_eq!(parse_maximum("20000 100000\n"), Some(quota));
        for unlimited in ["max 100000\n", "", "20000"] {
            assert_eq!(parse_maximum(unlimited), None, "{unlimited:?}");
        }
    }
}
