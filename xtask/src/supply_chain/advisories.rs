//! The snapshot of `RustSec`'s advisories in the checkout: its age, what it covers, and the repository that cargo-deny
//! wants it in.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::{exec, workspace::Workspace};

/// The folder of the snapshot.
const FOLDER: &str = "advisories";
/// What cargo-deny calls the folder of <https://github.com/rustsec/advisory-db>: it puts a hash of the address behind.
const DATABASE: &str = "advisory-db-3157b0e258782691";
/// An older snapshot is worth a word.
const OLD: Duration = Duration::from_hours(24 * 90);
/// Longer files are not advisories.
const MAX_BYTES: u64 = 256 * 1024;
const DAY_S: u64 = 24 * 60 * 60;

#[derive(Args, Debug)]
pub(crate) struct AdvisoriesArgs {
    /// A checkout of <https://github.com/rustsec/advisory-db>
    checkout: PathBuf,
}

/// What the snapshot was made of.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Snapshot {
    source: String,
    /// Year, month and day.
    date: String,
    /// Crates that were looked for.
    crates: Vec<String>,
}

impl Snapshot {
    pub(super) fn read(workspace: &Workspace) -> Result<Self> {
        let path = workspace.root.join(FOLDER).join("snapshot.toml");
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        toml::from_str(&text).with_context(|| format!("parse {}", path.display()))
    }

    /// How much of Cargo.lock it knows, and whether it is old: words for people.
    pub(super) fn coverage(&self, workspace: &Workspace) -> Result<String> {
        let locked = locked(workspace)?;
        let known: BTreeSet<&str> = self.crates.iter().map(String::as_str).collect();
        let unknown: Vec<&str> = locked
            .iter()
            .map(String::as_str)
            .filter(|name| !known.contains(name))
            .collect();
        let mut words = format!(
            "advisories of {} ({}): {} of {} crates of Cargo.lock were looked for",
            self.date,
            self.source,
            locked.len() - unknown.len(),
            locked.len()
        );
        if !unknown.is_empty() {
            words.push_str("\nnote: not looked for: ");
            words.push_str(&unknown.join(" "));
        }
        let made = SystemTime::UNIX_EPOCH + Duration::from_secs(days(&self.date)? * DAY_S);
        let age = SystemTime::now().duration_since(made).unwrap_or_default();
        if age > OLD {
            words.push_str(
                "\nwarning: the advisories are old: renew them with `cargo xtask advisories CHECKOUT`",
            );
        }
        Ok(words)
    }
}

/// Names of the crates in Cargo.lock that come from elsewhere.
fn locked(workspace: &Workspace) -> Result<BTreeSet<String>> {
    #[derive(Deserialize)]
    struct Lock {
        package: Vec<Locked>,
    }
    #[derive(Deserialize)]
    struct Locked {
        name: String,
        source: Option<String>,
    }
    let path = workspace.root.join("Cargo.lock");
    let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let lock: Lock = toml::from_str(&text).with_context(|| format!("parse {}", path.display()))?;
    let foreign = lock
        .package
        .into_iter()
        .filter(|package| package.source.is_some());
    Ok(foreign.map(|package| package.name).collect())
}

/// Days from 1970 to a date of the Gregorian calendar, `YEAR-MONTH-DAY`.
fn days(date: &str) -> Result<u64> {
    let mut parts = date.split('-').map(str::parse::<u64>);
    let (Some(Ok(year)), Some(Ok(month)), Some(Ok(day))) =
        (parts.next(), parts.next(), parts.next())
    else {
        anyhow::bail!("{date:?} is not a date");
    };
    ensure!(
        (1970..=9999).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day),
        "{date:?} is not a date"
    );
    // Years that begin in March have the odd day at their end.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let before = year * 365 + year / 4 - year / 100 + year / 400;
    // 719,468 days are from March of year 0 to 1970.
    Ok(before + (month * 153 + 2) / 5 + day - 1 - 719_468)
}

/// Makes the repository that cargo-deny reads from the snapshot, below target/.
pub(super) fn database(workspace: &Workspace) -> Result<()> {
    // Where deny.toml says, whatever cargo's output folder is.
    let database = workspace.root.join("target/advisory-db").join(DATABASE);
    if database.exists() {
        fs::remove_dir_all(&database).with_context(|| format!("remove {}", database.display()))?;
    }
    let from = workspace.root.join(FOLDER).join("crates");
    let names: BTreeSet<String> = names(&from)?.into_iter().collect();
    let copied = copy(&from, &database.join("crates"), &names)?;
    ensure!(copied > 0, "{} holds no advisory", from.display());
    let author = [
        "-c",
        "user.name=snapshot",
        "-c",
        "user.email=snapshot@localhost",
    ];
    git(&database, &["init", "--quiet"])?;
    git(&database, &["add", "--all"])?;
    git(
        &database,
        &[
            &author[..],
            &["commit", "--quiet", "--no-verify", "--message=snapshot"],
        ]
        .concat(),
    )
}

/// Git without the user's settings.
fn git(folder: &Path, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("git");
    command
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(variable);
    }
    exec::output(&mut command).map(drop)
}

/// `cargo xtask advisories CHECKOUT`: replaces the snapshot by the advisories of all crates in Cargo.lock.
pub(crate) fn renew(workspace: &Workspace, args: &AdvisoriesArgs) -> Result<()> {
    let from = args.checkout.join("crates");
    ensure!(
        from.is_dir(),
        "{} is not a checkout of advisory-db: it has no folder `crates`",
        args.checkout.display()
    );
    let asked = |arguments: &[&str]| {
        let mut git = Command::new("git");
        exec::output(git.args(arguments).current_dir(&args.checkout))
    };
    let commit = asked(&["rev-parse", "HEAD"])?;
    let date = asked(&["show", "--no-patch", "--format=%cs", "HEAD"])?;
    let names = locked(workspace)?;
    let folder = workspace.root.join(FOLDER);
    let to = folder.join("crates");
    if to.exists() {
        fs::remove_dir_all(&to).with_context(|| format!("remove {}", to.display()))?;
    }
    let copied = copy(&from, &to, &names)?;
    let snapshot = Snapshot {
        source: format!("rustsec/advisory-db at {}", commit.trim()),
        date: date.trim().to_owned(),
        crates: names.into_iter().collect(),
    };
    days(&snapshot.date)?;
    let text = toml::to_string_pretty(&snapshot).context("encode the snapshot")?;
    let path = folder.join("snapshot.toml");
    let head =
        "# What the folder beside it is a copy of. `cargo xtask advisories CHECKOUT` writes it.\n";
    fs::write(&path, format!("{head}{text}"))
        .with_context(|| format!("write {}", path.display()))?;
    println!(
        "{copied} advisories of {} crates, as of {}",
        snapshot.crates.len(),
        snapshot.date
    );
    Ok(())
}

/// Copies the advisories of some crates; how many there are.
fn copy(from: &Path, to: &Path, crates: &BTreeSet<String>) -> Result<usize> {
    let mut copied = 0;
    for name in crates {
        let folder = from.join(name);
        if !folder.is_dir() {
            continue;
        }
        for file in names(&folder)? {
            if !is_advisory(&file) {
                continue;
            }
            let path = folder.join(&file);
            let metadata = path.symlink_metadata();
            let metadata = metadata.with_context(|| format!("look at {}", path.display()))?;
            ensure!(
                metadata.is_file() && metadata.len() <= MAX_BYTES,
                "{} is not an advisory",
                path.display()
            );
            let target = to.join(name);
            fs::create_dir_all(&target).with_context(|| format!("create {}", target.display()))?;
            fs::copy(&path, target.join(&file))
                .with_context(|| format!("copy {}", path.display()))?;
            copied += 1;
        }
    }
    Ok(copied)
}

/// Whether a file has the name of an advisory; those without a number are drafts.
fn is_advisory(file: &str) -> bool {
    let number = file
        .strip_prefix("RUSTSEC-")
        .and_then(|rest| rest.strip_suffix(".md"));
    number.is_some_and(|number| !number.starts_with("0000"))
}

/// Names in a folder.
fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))?;
    let names = entries.map(|entry| {
        let entry = entry.with_context(|| format!("list {}", folder.display()))?;
        Ok(entry.file_name().to_string_lossy().into_owned())
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_dates() {
        for (date, expected) in [
            ("1970-01-01", 0),
            ("1970-03-01", 59),
            ("2000-02-29", 11_016),
            ("2000-03-01", 11_017),
            ("2026-11-25", 20_782),
        ] {
            assert_eq!(days(date).unwrap(), expected, "{date}");
        }
        for wrong in [
            "",
            "2026",
            "2026-13-01",
            "2026-00-10",
            "x-1-1",
            "1969-01-01",
        ] {
            assert!(days(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn advisories_of_the_crates_that_are_used_are_copied_and_no_drafts() {
        let all = tempfile::tempdir().unwrap();
        let (from, to) = (all.path().join("from"), all.path().join("to"));
        for file in [
            "a/RUSTSEC-2025-0001.md",
            "a/RUSTSEC-0000-0000.md",
            "a/notes.txt",
            "b/RUSTSEC-2025-0002.md",
        ] {
            let path = from.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "text").unwrap();
        }
        let wanted = ["a", "c"].map(str::to_owned).into();
        assert_eq!(copy(&from, &to, &wanted).unwrap(), 1);
        assert!(to.join("a/RUSTSEC-2025-0001.md").exists());
        assert!(!to.join("b").exists());
        let big = usize::try_from(MAX_BYTES).unwrap() + 1;
        fs::write(from.join("a/RUSTSEC-2025-0003.md"), vec![b'x'; big]).unwrap();
        assert!(copy(&from, &to, &wanted).is_err());
    }
}
