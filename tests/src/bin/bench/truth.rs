//! Requests against what programs count that take part, as the table of docs/truth.md.

use std::{fmt::Write as _, fs};

use anyhow::{Context as _, Result};
use clap::Args;
use profiler_tests::{
    cleanup::scratch_directory,
    paths,
    request_truth::{CASES, Length, Verdict},
};

const HEAD: &str = "# Requests against programs that count themselves

    cargo xtask bench truth

writes this page. Each row is one case, watched at one end or at both. **exact**: as the programs counted. **said**: something
is missing or unknown, and the answer says so. **SILENT**: something is wrong, or missing without a word; the bench fails then.

| case | watched | counted | told | verdict |
|---|---|---|---|---|
";

#[derive(Args)]
pub(crate) struct Options {
    /// Only cases whose name has this in it; the other rows of the page stay
    #[arg(long, default_value = "")]
    only: String,
}

/// Runs the cases and writes the page; how many are silent.
pub(crate) fn run(options: &Options) -> Result<usize> {
    let path = paths::workspace().join("docs/truth.md");
    let mut page = HEAD.to_owned();
    if !options.only.is_empty() && path.exists() {
        page = fs::read_to_string(&path).context("read the page whose rows are made anew")?;
    }
    let mut silent = 0;
    for case in CASES
        .iter()
        .filter(|case| case.name.contains(&options.only))
    {
        for view in case.views {
            let (folder, _guard) = scratch_directory("truth")?;
            let row = (case.run)(&folder, *view, Length::Long)
                .with_context(|| format!("{}, {view}", case.name))?;
            silent += usize::from(row.verdict == Verdict::Silent);
            let line = format!(
                "| {} | {view} | {} | {} | {} |",
                case.name, row.truth, row.told, row.verdict
            );
            println!("{line}");
            let start = format!("| {} | {view} |", case.name);
            let known = page.lines().find(|known| known.starts_with(&start));
            if let Some(known) = known.map(str::to_owned) {
                page = page.replacen(&known, &line, 1);
            } else {
                writeln!(page, "{line}").context("write a row")?;
            }
        }
    }
    fs::write(&path, page).with_context(|| format!("write {}", path.display()))?;
    Ok(silent)
}
