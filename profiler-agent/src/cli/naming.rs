//! Names of containers for commands that run without a server.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use profiler_host::{name_sources::load_once, process::ProcessTable};
use profiler_model::{Endpoint, Target, printable::printable_within};

use crate::{config::cli::NameArgs, terminal::Text};

/// Longest name of a container that is printed.
const LONGEST: usize = 120;
/// Longest name of a process, which has at most 15 bytes and more columns where they are escaped.
const LONGEST_PROCESS: usize = 60;

/// An empty table of processes with the names of containers, as far as a source answers at once.
pub(super) fn named_table(args: &NameArgs) -> Result<ProcessTable> {
    let table = ProcessTable::new();
    ask(args, &table)?;
    Ok(table)
}

/// The same where `target` has such a name; otherwise no source is asked.
pub(super) fn named_table_for(args: &NameArgs, target: &Target) -> Result<ProcessTable> {
    match target {
        Target::Pod(_) => named_table(args),
        _ => Ok(ProcessTable::new()),
    }
}

fn ask(args: &NameArgs, table: &ProcessTable) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    runtime.block_on(load_once(args.to_config(), table));
    runtime.shutdown_background();
    Ok(())
}

/// Asks again when there is one among these that started later.
pub(super) fn ask_for<'end>(
    args: &NameArgs,
    ends: impl IntoIterator<Item = &'end Endpoint>,
    table: &ProcessTable,
) -> Result<()> {
    let mut containers = ends.into_iter().filter_map(|end| end.container.as_ref());
    if containers.any(|id| table.names().by_id(id).is_none()) {
        ask(args, table)?;
    }
    Ok(())
}

/// Which process is in which container, for below a table of ends; empty when none has a name.
pub(super) fn legend<'end>(
    ends: impl IntoIterator<Item = &'end Endpoint>,
    table: &ProcessTable,
) -> Text {
    let mut lines: BTreeMap<String, String> = BTreeMap::new();
    for end in ends {
        let names = end
            .container
            .as_ref()
            .and_then(|id| table.names().by_id(id));
        let (Some(pid), Some(names)) = (end.pid, names) else {
            continue;
        };
        let workload = names.workload().map_or_else(String::new, |workload| {
            format!(" ({} {})", workload.kind, workload.name)
        });
        let process = format!("{}[{pid}]", printable_within(&end.comm, LONGEST_PROCESS));
        let name = printable_within(&format!("{}{workload}", names.title()), LONGEST);
        lines.insert(process, name);
    }
    let mut text = Text::default();
    if !lines.is_empty() {
        text.line(format_args!("containers:"));
    }
    for (process, name) in lines {
        text.line(format_args!("  {process} is in {name}"));
    }
    text
}
