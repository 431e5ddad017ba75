//! The step `supply-chain`: known weaknesses, licences, places and duplicates of what the program is made of. It asks
//! npm's registry only; advisories of crates are a snapshot in the checkout (advisories/).

mod advisories;
mod deny;
mod npm;
mod refusals;

use std::{collections::BTreeSet, fs};

use anyhow::{Context as _, Result, bail, ensure};

pub(crate) use advisories::{AdvisoriesArgs, renew};

use crate::{notice, setup, test::Tally, workspace::Workspace};
use advisories::Snapshot;
use deny::Deny;

/// Fewer parts than this cannot be all of the program's; there are some 300.
const LEAST_PARTS: usize = 150;

pub(crate) fn run(workspace: &Workspace, tally: &mut Tally) -> Result<()> {
    let snapshot = Snapshot::read(workspace)?;
    println!("{}", snapshot.coverage(workspace)?);
    advisories::database(workspace)?;
    let deny = Deny::new(workspace)?;
    tally.count(said(deny.accepts()));
    for case in refusals::CASES {
        tally.count(said(refusals::check(&deny, case)));
    }
    tally.count(said(npm::audit(workspace)));
    tally.count(said(notices(workspace)));
    ensure!(tally.failed == 0, "{} checks failed", tally.failed);
    Ok(())
}

/// Whether NOTICE and the image's label say what the program consists of now.
fn notices(workspace: &Workspace) -> Result<String> {
    const REMEDY: &str = "run `cargo xtask notice`, look at what changed, and commit it";
    let made = notice::make(workspace)?;
    let read = |name: &str| {
        let path = workspace.root.join(name);
        fs::read_to_string(&path).with_context(|| format!("read {}: {REMEDY}", path.display()))
    };
    ensure!(
        read(notice::NOTICE)? == made.list,
        "{} is not that of Cargo.lock and package-lock.json: {REMEDY}",
        notice::NOTICE
    );
    let label = format!("licenses=\"{}\"", made.expression);
    ensure!(
        read("deploy/Dockerfile")?.contains(&label),
        "the image's label is not {label}: change deploy/Dockerfile"
    );
    let parts = named_parts(&made.texts)?;
    println!(
        "{} parts with {} bytes of licences",
        parts.len(),
        made.texts.len()
    );
    let lock = read("Cargo.lock")?;
    let page = notice::packages_of_page(&read("web/package-lock.json")?)?;
    for part in &parts {
        let is_crate = lock.contains(&entry(part));
        let is_package = page.iter().any(|(path, version, _)| {
            path.ends_with(&format!("node_modules/{}", part.0)) && *version == part.1
        });
        ensure!(
            is_crate || is_package,
            "{} {} is in no lock file",
            part.0,
            part.1
        );
    }
    Ok(
        "NOTICE, the image's label and the texts of licences are those of the lock files"
            .to_owned(),
    )
}

/// The beginning of a part's entry in Cargo.lock.
fn entry((name, version): &(String, String)) -> String {
    format!("name = \"{name}\"\nversion = \"{version}\"\n")
}

/// Names and versions of the parts that THIRD-PARTY-LICENSES lists.
pub(crate) fn named_parts(texts: &str) -> Result<BTreeSet<(String, String)>> {
    let mut parts = BTreeSet::new();
    for line in texts.lines().skip_while(|line| !line.starts_with("  ")) {
        let Some((part, _)) = line
            .strip_prefix("  ")
            .and_then(|line| line.split_once(": "))
        else {
            break;
        };
        let Some((name, version)) = part.split_once(' ') else {
            bail!("{part:?} is not a name with a version");
        };
        parts.insert((name.to_owned(), version.to_owned()));
    }
    ensure!(
        parts.len() >= LEAST_PARTS,
        "{} lists {} parts only",
        notice::TEXTS,
        parts.len()
    );
    Ok(parts)
}

/// Prints a result; whether it is a good one.
fn said(result: Result<String>) -> bool {
    match &result {
        Ok(what) => println!("ok {what}"),
        Err(error) => println!("failed {error:#}"),
    }
    result.is_ok()
}

/// Fetches what the checks need.
pub(crate) fn prepare(workspace: &Workspace) -> Result<()> {
    setup::run(workspace, &[setup::Part::CargoDeny])
}
