//! `ps`: the processes of this machine, busiest first.

use std::{fmt::Write, sync::Arc, time::Duration};

use anyhow::{Context, Result};

use super::{naming::named_table, print};
use crate::{
    api::{self, PodList, ProcessList, masked},
    config::{ArgumentPolicy, cli::PsArgs},
    container_names::ContainerDirectory,
    model::Process,
    process::{Pod, PodMember, pods, program},
};

/// Time between the two readings that CPU shares are computed from.
const INTERVAL: Duration = Duration::from_millis(500);
/// Width of the column of containers: what tells their ids apart, and at most that of a name.
const CONTAINER_COLUMN: usize = 12;
const MOST_CONTAINER_COLUMN: usize = 48;

pub fn run(args: &PsArgs) -> Result<()> {
    let table = named_table(&args.names)?;
    table.refresh();
    std::thread::sleep(INTERVAL);
    table.refresh();
    if args.pods {
        return print(&pod_list(
            &pods(&table.snapshot(), table.names()),
            args.json,
        )?);
    }
    let mut processes = table.snapshot();
    processes.retain(|process| !process.kernel_thread);
    let share = |process: &Process| process.cpu_percent.unwrap_or(-1.0);
    processes.sort_by(|a, b| share(b).total_cmp(&share(a)).then(a.key.cmp(&b.key)));
    if args.json {
        print(&json(&processes, table.names())?)
    } else {
        print(&text_table(&processes, table.names()))
    }
}

fn json(processes: &[Arc<Process>], names: &ContainerDirectory) -> Result<String> {
    let items: Vec<_> = processes
        .iter()
        .map(|process| api::Process::new(process, ArgumentPolicy::Masked, names))
        .collect();
    let total = items.len();
    let text = serde_json::to_string_pretty(&ProcessList { items, total })
        .context("encode the process list")?;
    Ok(text + "\n")
}

fn pod_list(pods: &[Pod], is_json: bool) -> Result<String> {
    if is_json {
        let text =
            serde_json::to_string_pretty(&PodList::new(pods)).context("encode the list of pods")?;
        return Ok(text + "\n");
    }
    let mut text = String::new();
    for pod in pods {
        let namespace = pod
            .namespace
            .map_or_else(String::new, |inode| format!(" (net {inode})"));
        // Writing to a string cannot fail.
        writeln!(
            text,
            "{}{namespace}: {}",
            printable(&pod.title, 80),
            pod.sidecar_line()
        )
        .ok();
        // Processes outside of pods all have the same reason: it is said once.
        let shared = shared_reason(pod);
        if let Some(reason) = shared {
            writeln!(text, "  each of them: {}", printable(reason, 120)).ok();
        }
        for member in &pod.members {
            let PodMember {
                process,
                role,
                reason,
            } = member;
            let cpu = process
                .cpu_percent
                .map_or_else(|| "-".into(), |share| format!("{:.2}", share / 100.0));
            let own = if shared.is_some() { "" } else { reason };
            let line = format!(
                "{:>8} {:<20} {:<8} {cpu:>6} {:>9} {:>5}  {}",
                process.key.pid,
                printable(program(process), 20),
                role.name(),
                mebibytes(process.rss_bytes),
                process.threads,
                printable(own, 120),
            );
            writeln!(text, "{}", line.trim_end()).ok();
        }
    }
    Ok(text)
}

/// The reason of every member, where several have the same.
fn shared_reason(pod: &Pod) -> Option<&str> {
    let (first, others) = pod.members.split_first()?;
    let is_shared = others.iter().all(|member| member.reason == first.reason);
    (!others.is_empty() && is_shared).then_some(first.reason.as_str())
}

fn text_table(processes: &[Arc<Process>], names: &ContainerDirectory) -> String {
    let containers: Vec<String> = processes
        .iter()
        .map(|process| container_title(process, names))
        .collect();
    let longest = containers.iter().map(|title| title.chars().count()).max();
    let width = longest.unwrap_or(0).max(CONTAINER_COLUMN);
    let mut text = format!(
        "{:>8} {:<15} {:<12} {:>6} {:>9} {:>5} {:<width$} COMMAND\n",
        "PID", "NAME", "USER", "CPU%", "RSS", "THR", "CONTAINER"
    );
    for (process, container) in processes.iter().zip(containers) {
        let user = process
            .user
            .clone()
            .unwrap_or_else(|| process.uid.to_string());
        let cpu = process
            .cpu_percent
            .map_or_else(|| "-".into(), |share| format!("{share:.1}"));
        let mut arguments = masked(&process.cmdline, ArgumentPolicy::Masked);
        if arguments.is_empty() {
            arguments.push(format!("[{}]", process.comm));
        }
        // Writing to a string cannot fail.
        writeln!(
            text,
            "{:>8} {:<15} {:<12} {cpu:>6} {:>9} {:>5} {container:<width$} {}",
            process.key.pid,
            printable(&process.comm, 15),
            printable(&user, 12),
            mebibytes(process.rss_bytes),
            process.threads,
            printable(&arguments.join(" "), 160),
        )
        .ok();
    }
    text
}

/// The name of the container, the beginning of its id where it has none, or `-`.
fn container_title(process: &Process, names: &ContainerDirectory) -> String {
    let Some(container) = &process.container else {
        return "-".to_owned();
    };
    names.of(container).map_or_else(
        || printable(&container.id, CONTAINER_COLUMN),
        |names| printable(&names.title(), MOST_CONTAINER_COLUMN),
    )
}

fn mebibytes(bytes: u64) -> String {
    format!("{}M", bytes >> 20)
}

/// Untrusted text for a terminal: no control or direction characters, at most `limit` characters.
pub(super) fn printable(text: &str, limit: usize) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars()
        .take(limit)
        .map(|c| if hidden(c) { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Container, ProcessKey};

    fn process() -> Arc<Process> {
        Arc::new(Process {
            key: ProcessKey {
                pid: 42,
                start_ticks: 7,
            },
            parent_pid: 1,
            comm: "app".into(),
            exe: Some("/bin/app".into()),
            cmdline: vec![
                "/bin/app\u{1b}[31m".into(),
                "--password=planted-secret".into(),
            ],
            uid: 1000,
            user: None,
            cgroup: "/".into(),
            container: Some(Container {
                id: "0123456789abcdef".into(),
                runtime: "docker".into(),
                pod_uid: None,
            }),
            network_namespace: None,
            threads: 3,
            rss_bytes: 5 << 20,
            cpu_percent: Some(12.34),
            kernel_thread: false,
        })
    }

    #[test]
    fn the_table_is_plain_and_masked() {
        let text = text_table(&[process()], &ContainerDirectory::default());
        let row = text.lines().nth(1).unwrap();
        assert_eq!(
            row,
            "      42 app             1000           12.3        5M     3 0123456789ab /bin/app\u{fffd}[31m ***"
        );
    }

    #[test]
    fn pods_are_listed_with_what_each_process_is() {
        let mut given = Process::clone(&process());
        given.network_namespace = Some(7);
        given.comm = "a\u{1b}pp".into();
        let found = pods(&[Arc::new(given)], &ContainerDirectory::default());
        let text = pod_list(&found, false).unwrap();
        assert_eq!(
            text,
            "a\u{fffd}pp (net 7): no sidecar; 0.12 cores\n      42 a\u{fffd}pp                 app        0.12        5M     3  \
             the pod has no proxy that is known here\n"
        );
        assert!(
            pod_list(&found, true)
                .unwrap()
                .contains("\"role\": \"app\"")
        );
    }

    #[test]
    fn what_is_true_of_all_processes_is_said_once() {
        let mut given = Process::clone(&process());
        given.network_namespace = None;
        let mut other = given.clone();
        other.key.pid = 43;
        let found = pods(
            &[Arc::new(given), Arc::new(other)],
            &ContainerDirectory::default(),
        );
        let text = pod_list(&found, false).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(
            lines[1].starts_with("  each of them: its network namespace"),
            "{text}"
        );
        assert_eq!(text.matches("its network namespace").count(), 1, "{text}");
        assert!(lines[3].ends_with("5M     3"), "{text}");
    }

    #[test]
    fn json_is_masked() {
        let text = json(&[process()], &ContainerDirectory::default()).unwrap();
        assert!(
            text.contains("\"id\": \"42-7\"") && text.contains("\"total\": 1"),
            "{text}"
        );
        assert!(!text.contains("planted-secret"), "{text}");
    }
}
