//! `ps`: the processes of this machine, busiest first.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result};
use profiler_host::{
    container_names::ContainerDirectory,
    process::{Pod, PodMember, pods, program},
};
use profiler_model::{
    Process,
    printable::{columns, left, printable, printable_within},
};

use super::naming::named_table;
use crate::{
    api::{self, PodList, ProcessList, masked},
    config::{ArgumentPolicy, cli::PsArgs},
    terminal::{self, Text},
};

/// Time between the two readings that CPU shares are computed from.
const INTERVAL: Duration = Duration::from_millis(500);
/// Width of the column of containers: what tells their ids apart, and at most that of a name.
const CONTAINER_COLUMN: usize = 12;
const MOST_CONTAINER_COLUMN: usize = 48;
/// Widths of the other columns of text.
const NAME_COLUMN: usize = 15;
const USER_COLUMN: usize = 12;
const PROGRAM_COLUMN: usize = 20;
/// Longest texts that stand last in a line, and longest titles of pods, in columns.
const LONGEST_COMMAND: usize = 160;
const LONGEST_REASON: usize = 120;
const LONGEST_TITLE: usize = 80;

pub fn run(args: &PsArgs) -> Result<()> {
    let table = named_table(&args.names)?;
    table.refresh();
    std::thread::sleep(INTERVAL);
    table.refresh();
    if args.pods {
        let pods = pods(&table.snapshot(), table.names());
        return terminal::out(&pod_list(&pods, args.json)?);
    }
    let mut processes = table.snapshot();
    processes.retain(|process| !process.kernel_thread);
    let share = |process: &Process| process.cpu_percent.unwrap_or(-1.0);
    processes.sort_by(|a, b| share(b).total_cmp(&share(a)).then(a.key.cmp(&b.key)));
    if args.json {
        terminal::out(&json(&processes, table.names())?)
    } else {
        terminal::out(&text_table(&processes, table.names()))
    }
}

pub(super) fn json(processes: &[Arc<Process>], names: &ContainerDirectory) -> Result<Text> {
    let items: Vec<_> = processes
        .iter()
        .map(|process| api::Process::new(process, ArgumentPolicy::Masked, names))
        .collect();
    let total = items.len();
    Text::json(&ProcessList { items, total }).context("encode the process list")
}

pub(super) fn pod_list(pods: &[Pod], is_json: bool) -> Result<Text> {
    if is_json {
        return Text::json(&PodList::new(pods)).context("encode the list of pods");
    }
    let mut text = Text::default();
    for pod in pods {
        let namespace = pod
            .namespace
            .map_or_else(String::new, |inode| format!(" (net {inode})"));
        text.line(format_args!(
            "{}{namespace}: {}",
            printable_within(&pod.title, LONGEST_TITLE),
            pod.sidecar_line()
        ));
        // Processes outside of pods all have the same reason: it is reported once.
        let shared = shared_reason(pod);
        if let Some(reason) = shared {
            text.line(format_args!(
                "  each of them: {}",
                printable_within(reason, LONGEST_REASON)
            ));
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
                "{:>8} {} {:<8} {cpu:>6} {:>9} {:>5}  {}",
                process.key.pid,
                cell(program(process), PROGRAM_COLUMN),
                role.name(),
                mebibytes(process.rss_bytes),
                process.threads,
                printable_within(own, LONGEST_REASON),
            );
            text.line(format_args!("{}", line.trim_end()));
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

pub(super) fn text_table(processes: &[Arc<Process>], names: &ContainerDirectory) -> Text {
    let containers: Vec<String> = processes
        .iter()
        .map(|process| container_title(process, names))
        .collect();
    let longest = containers.iter().map(|title| columns(title)).max();
    let width = longest.unwrap_or(0).max(CONTAINER_COLUMN);
    let mut text = Text::default();
    text.line(format_args!(
        "{:>8} {} {} {:>6} {:>9} {:>5} {} COMMAND",
        "PID",
        cell("NAME", NAME_COLUMN),
        cell("USER", USER_COLUMN),
        "CPU%",
        "RSS",
        "THR",
        left("CONTAINER", width)
    ));
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
        text.line(format_args!(
            "{:>8} {} {} {cpu:>6} {:>9} {:>5} {} {}",
            process.key.pid,
            cell(&process.comm, NAME_COLUMN),
            cell(&user, USER_COLUMN),
            mebibytes(process.rss_bytes),
            process.threads,
            left(&container, width),
            printable_within(&arguments.join(" "), LONGEST_COMMAND),
        ));
    }
    text
}

/// The name of the container, the beginning of its id where it has none, or `-`.
fn container_title(process: &Process, names: &ContainerDirectory) -> String {
    let Some(container) = &process.container else {
        return "-".to_owned();
    };
    if let Some(names) = names.of(container) {
        return printable_within(&names.title(), MOST_CONTAINER_COLUMN);
    }
    let start: String = container.id.chars().take(CONTAINER_COLUMN).collect();
    printable(&start).into_owned()
}

fn mebibytes(bytes: u64) -> String {
    format!("{}M", bytes >> 20)
}

/// A text in a column of this width.
fn cell(text: &str, width: usize) -> String {
    left(&printable_within(text, width), width)
}

#[cfg(test)]
mod tests {
    use profiler_model::{Container, ProcessKey};

    use super::*;

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
            "      42 app             1000           12.3        5M     3 0123456789ab /bin/app\\x1b[31m ***"
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
            &*text,
            "a\\x1bpp (net 7): no sidecar; 0.12 cores\n      42 a\\x1bpp              app        0.12        5M     3  \
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
