//! Gives up every capability that the agent does not use.
//!
//! Root has some forty, of which profiling needs seven. What is outside the chosen [`Tier`] leaves the
//! first thread before there are others, and they inherit what it has left.

use rustix::{
    io::Errno,
    thread::{
        CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
        clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
        set_no_new_privs,
    },
};

/// How much the agent keeps of what it was started with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tier {
    /// For profiles, and for the network as far as `/proc/PID/net` shows.
    Base,
    /// `SYS_ADMIN` as well: other network namespaces are entered, the kernel counts what programs cost.
    #[default]
    SysAdmin,
    /// Nothing: for recorded data.
    Nothing,
}

/// What each is for: SECURITY.md.
const BASE: CapabilitySet = CapabilitySet::BPF
    .union(CapabilitySet::PERFMON)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::NET_ADMIN)
    .union(CapabilitySet::SYSLOG)
    .union(CapabilitySet::CHECKPOINT_RESTORE)
    .union(CapabilitySet::DAC_READ_SEARCH);

impl Tier {
    /// Name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::SysAdmin => "sys-admin",
            Self::Nothing => "nothing",
        }
    }

    /// The most that is kept.
    pub fn keeps(self) -> CapabilitySet {
        match self {
            Self::Base => BASE,
            Self::SysAdmin => BASE.union(CapabilitySet::SYS_ADMIN),
            Self::Nothing => CapabilitySet::empty(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("give up capabilities outside the tier {}: {action}: {source}", tier.name())]
pub struct PrivilegesError {
    tier: Tier,
    action: &'static str,
    source: Errno,
}

/// Reduces this thread, and with it every thread that it starts, to at most `tier`. Nothing that is
/// executed gets more. Call before there are other threads: each has capabilities of its own.
pub fn keep_at_most(tier: Tier) -> Result<(), PrivilegesError> {
    let failed = |action| {
        move |source| PrivilegesError {
            tier,
            action,
            source,
        }
    };
    let keep = tier.keeps();
    // No file that is executed gives more, whatever the bounding set is.
    set_no_new_privs(true).map_err(failed("set no_new_privs"))?;
    clear_ambient_capability_set().map_err(failed("clear the ambient set"))?;
    let has = capabilities(None).map_err(failed("read them"))?;
    // While SETPCAP is still there. If we were started without it, the starter has set the bounding set.
    if has.effective.contains(CapabilitySet::SETPCAP) {
        for bit in 0..u64::BITS {
            let capability = CapabilitySet::from_bits_retain(1 << bit);
            // The question about one that the kernel does not know fails.
            if !keep.contains(capability)
                && capability_is_in_bounding_set(capability).unwrap_or(false)
            {
                remove_capability_from_bounding_set(capability)
                    .map_err(failed("drop one from the bounding set"))?;
            }
        }
    }
    let kept = has.permitted.intersection(keep);
    let sets = CapabilitySets {
        effective: kept,
        permitted: kept,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets).map_err(failed("set them"))
}

/// The same for one thread among others: it keeps nothing.
pub fn keep_none() -> Result<(), PrivilegesError> {
    let nothing = CapabilitySet::empty();
    let sets = CapabilitySets {
        effective: nothing,
        permitted: nothing,
        inheritable: nothing,
    };
    set_capabilities(None, sets).map_err(|source| PrivilegesError {
        tier: Tier::Nothing,
        action: "set them",
        source,
    })
}

/// The same, but `BPF` is kept when `works` fails without it: a kernel before 5.19, or one of a distribution, may refuse
/// every call of bpf(2) to processes without it (`kernel.unprivileged_bpf_disabled`).
pub fn keep_none_or_bpf(works: impl FnOnce() -> bool) -> Result<(), PrivilegesError> {
    let nothing = CapabilitySet::empty();
    let failed = |source| PrivilegesError {
        tier: Tier::Nothing,
        action: "set them",
        source,
    };
    let bpf = capabilities(None).map_err(failed)?.permitted & CapabilitySet::BPF;
    // What is permitted and not effective can be had again.
    let tried = CapabilitySets {
        effective: nothing,
        permitted: bpf,
        inheritable: nothing,
    };
    set_capabilities(None, tried).map_err(failed)?;
    if works() {
        return keep_none();
    }
    let sets = CapabilitySets {
        effective: bpf,
        ..tried
    };
    set_capabilities(None, sets).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tiers_are_those_of_the_manifests() {
        let names = |tier: Tier| -> Vec<String> {
            tier.keeps()
                .iter_names()
                .map(|(name, _)| name.to_owned())
                .collect()
        };
        let base = [
            "DAC_READ_SEARCH",
            "NET_ADMIN",
            "SYS_PTRACE",
            "SYSLOG",
            "PERFMON",
            "BPF",
            "CHECKPOINT_RESTORE",
        ];
        assert_eq!(names(Tier::Base), base);
        assert_eq!(names(Tier::SysAdmin).len(), base.len() + 1);
        assert!(Tier::SysAdmin.keeps().contains(CapabilitySet::SYS_ADMIN));
        assert!(names(Tier::Nothing).is_empty());
    }

    #[test]
    fn bpf_is_kept_only_where_it_is_needed() {
        let kept = |works: bool| {
            let giving_up = std::thread::spawn(move || {
                keep_none_or_bpf(|| {
                    assert!(capabilities(None).unwrap().effective.is_empty());
                    works
                })
                .unwrap();
                let left = capabilities(None).unwrap();
                assert_eq!(left.permitted, left.effective);
                left.permitted
            });
            giving_up.join().unwrap()
        };
        assert_eq!(kept(true), CapabilitySet::empty());
        assert_eq!(kept(false), CapabilitySet::BPF);
    }

    #[test]
    fn a_thread_that_keeps_none_has_none() {
        std::thread::spawn(|| {
            keep_none().unwrap();
            let left = capabilities(None).unwrap();
            assert!(left.permitted.is_empty() && left.effective.is_empty());
        })
        .join()
        .unwrap();
    }
}
