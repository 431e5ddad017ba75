//! Who the processes of a task's target are: a pid says nothing once the process has ended.

use profiler_image::proc_dir::read_stat;
use profiler_model::{Target, TargetName};

/// The processes of the target that run now, in the order of the target. Empty for targets that do not
/// list processes, and for unused pids. Reads `/proc`: call off the reactor.
pub(super) fn target_names(target: &Target) -> Vec<TargetName> {
    let Target::Pids(pids) = target else {
        return Vec::new();
    };
    let named = pids.iter().filter_map(|pid| {
        let stat = read_stat(*pid).ok()?;
        Some(TargetName {
            pid: *pid,
            start_ticks: stat.start_ticks,
            comm: stat.comm,
        })
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_named_in_the_order_of_the_target() {
        let own = std::process::id();
        let names = target_names(&Target::Pids(vec![own, u32::MAX, 1]));
        let pids: Vec<u32> = names.iter().map(|name| name.pid).collect();
        assert_eq!(pids, [own, 1]);
        let comm = std::fs::read_to_string("/proc/self/comm").unwrap();
        assert_eq!(names[0].comm, comm.trim_end());
        assert!(names[0].start_ticks >= names[1].start_ticks);
    }

    #[test]
    fn other_targets_have_no_names() {
        assert_eq!(target_names(&Target::Comm("init".to_owned())), []);
        assert_eq!(target_names(&Target::All), []);
    }
}
