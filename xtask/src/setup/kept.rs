//! Tools that outlive a checkout: what was built or fetched for the same pins is taken again.
//!
//! Each lies in a folder of its own, named after the hash of its pins, with a list of its files' hashes. A copy that
//! does not fit its list is made anew.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

use crate::{
    progress::Outcome,
    stamp::{Stamp, file_hash, text_hash},
};

/// Names the folder; empty: nothing is kept.
const FOLDER: &str = "PROFILER_KEPT_TOOLS";
/// The list of hashes in the folder of a tool.
const LIST: &str = "SHA256SUMS";
/// What a folder was made from (`Stamp`).
const STAMP: &str = "stamp";

/// Leaves a tool in `folder`, with its stamp: what is there already, a kept one, or what `make` leaves there.
pub(crate) fn ensure(
    folder: &Path,
    stamp: &Stamp,
    make: impl FnOnce() -> Result<()>,
) -> Result<Outcome> {
    let place = place(folder, stamp);
    if stamp.is_fresh() {
        if let Some(place) = place.filter(|place| !place.exists()) {
            keep_or_say(folder, &place);
        }
        return Ok(Outcome::Cached);
    }
    if let Some(place) = place.as_deref().filter(|place| place.exists()) {
        match take(place, folder) {
            Ok(()) => {
                stamp.write()?;
                return Ok(Outcome::Remark(format!("kept in {}", place.display())));
            }
            Err(error) => {
                println!("note: {error:#}; it is made anew");
                remove(place)?;
            }
        }
    }
    make()?;
    stamp.write()?;
    if let Some(place) = place {
        keep_or_say(folder, &place);
    }
    Ok(Outcome::Done)
}

/// The same for a tool of thousands of small files, which take longer to copy than to fetch: it stays where tools are
/// kept, and `folder` becomes a link to it. Nothing may write to it.
pub(crate) fn ensure_in_place(
    folder: &Path,
    stamp: &Stamp,
    make: impl FnOnce(&Path) -> Result<()>,
) -> Result<Outcome> {
    if stamp.is_fresh() {
        return Ok(Outcome::Cached);
    }
    remove_link_or_folder(folder)?;
    let Some(place) = place(folder, stamp) else {
        make(folder)?;
        stamp.write()?;
        return Ok(Outcome::Done);
    };
    if place.exists() && !is_whole(&place) {
        println!(
            "note: {} is not what was kept there; it is made anew",
            place.display()
        );
        remove(&place)?;
    }
    let outcome = if place.exists() {
        Outcome::Remark(format!("kept in {}", place.display()))
    } else {
        make_in(&place, make)?;
        Outcome::Done
    };
    link(&place, folder)?;
    stamp.write()?;
    Ok(outcome)
}

/// Makes a tool where it is kept, unless another process is faster.
fn make_in(place: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let partial = partial(place);
    if partial.exists() {
        remove(&partial)?;
    }
    fs::create_dir_all(&partial).with_context(|| format!("create {}", partial.display()))?;
    make(&partial)?;
    write_list(&partial, &files(&partial)?)?;
    if fs::rename(&partial, place).is_err() {
        remove(&partial)?;
    }
    Ok(())
}

/// Whether a kept tool has the files of its list, and no others but the stamp of those who use it in place.
fn is_whole(place: &Path) -> bool {
    let whole = || -> Result<bool> {
        let list = fs::read_to_string(place.join(LIST)).context("read the list of hashes")?;
        let expected: Vec<&str> = list.lines().collect();
        let mut files = files(place)?;
        files.retain(|file| file != Path::new(LIST) && file != Path::new(STAMP));
        Ok(hashes(place, &files)? == expected)
    };
    whole().unwrap_or(false)
}

fn link(place: &Path, folder: &Path) -> Result<()> {
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent).with_context(|| format!("create {}", parent.display()))?;
    }
    std::os::unix::fs::symlink(place, folder)
        .with_context(|| format!("link {} to {}", folder.display(), place.display()))
}

fn remove_link_or_folder(folder: &Path) -> Result<()> {
    match fs::symlink_metadata(folder) {
        Err(_) => Ok(()),
        Ok(found) if found.is_dir() => remove(folder),
        Ok(_) => fs::remove_file(folder).with_context(|| format!("remove {}", folder.display())),
    }
}

fn keep_or_say(folder: &Path, place: &Path) {
    if let Err(error) = keep(folder, place) {
        println!("note: {} is not kept: {error:#}", folder.display());
    }
}

/// Where a tool of these pins is kept.
fn place(folder: &Path, stamp: &Stamp) -> Option<PathBuf> {
    let all = match env::var_os(FOLDER) {
        Some(named) if named.is_empty() => return None,
        Some(named) => PathBuf::from(named),
        None => match env::var_os("XDG_CACHE_HOME") {
            Some(cache) => PathBuf::from(cache).join("profiler-agent"),
            None => PathBuf::from(env::var_os("HOME")?).join(".cache/profiler-agent"),
        },
    };
    let name = folder.file_name()?.to_string_lossy().into_owned();
    let hash = text_hash(&format!("{name}\n{}", stamp.content()));
    Some(all.join(format!("{name}-{}", hash.get(..16)?)))
}

/// Copies a kept tool, if every file is what it was.
fn take(place: &Path, folder: &Path) -> Result<()> {
    let list = place.join(LIST);
    let list = fs::read_to_string(&list).with_context(|| format!("read {}", list.display()))?;
    let expected: Vec<&str> = list.lines().collect();
    let mut files = files(place)?;
    files.retain(|file| file != Path::new(LIST));
    ensure!(
        hashes(place, &files)? == expected,
        "{} is not what was kept there",
        place.display()
    );
    copy(place, &files, folder)
}

/// Keeps a tool, unless another process was faster.
fn keep(folder: &Path, place: &Path) -> Result<()> {
    let mut files = files(folder)?;
    files.retain(|file| file != Path::new(STAMP));
    let partial = partial(place);
    copy(folder, &files, &partial)?;
    write_list(&partial, &files)?;
    if fs::rename(&partial, place).is_err() {
        remove(&partial)?;
    }
    Ok(())
}

/// Where a tool lies until it is whole.
fn partial(place: &Path) -> PathBuf {
    let mut name = place.as_os_str().to_owned();
    name.push(format!(".partial-{}", std::process::id()));
    PathBuf::from(name)
}

fn write_list(folder: &Path, files: &[PathBuf]) -> Result<()> {
    let list = hashes(folder, files)?.join("\n");
    fs::write(folder.join(LIST), list).context("write the list of hashes")
}

/// `HASH  PATH` of each file.
fn hashes(folder: &Path, files: &[PathBuf]) -> Result<Vec<String>> {
    files
        .iter()
        .map(|file| {
            Ok(format!(
                "{}  {}",
                file_hash(&folder.join(file))?,
                file.display()
            ))
        })
        .collect()
}

fn copy(from: &Path, files: &[PathBuf], to: &Path) -> Result<()> {
    if to.exists() {
        remove(to)?;
    }
    for file in files {
        let (from, to) = (from.join(file), to.join(file));
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
        }
        fs::copy(&from, &to).with_context(|| format!("copy {}", from.display()))?;
    }
    Ok(())
}

/// All files below a folder, relative to it, in order.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        let path = folder.join(&below);
        for entry in fs::read_dir(&path).with_context(|| format!("list {}", path.display()))? {
            let entry = entry.with_context(|| format!("list {}", path.display()))?;
            let name = below.join(entry.file_name());
            if entry.file_type().context("look at a file")?.is_dir() {
                folders.push(name);
            } else {
                found.push(name);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn remove(folder: &Path) -> Result<()> {
    fs::remove_dir_all(folder).with_context(|| format!("remove {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(folder: &Path) {
        fs::create_dir_all(folder.join("bin")).unwrap();
        fs::write(folder.join("bin/tool"), "program").unwrap();
        fs::write(folder.join("stamp"), "version 1").unwrap();
    }

    #[test]
    fn what_is_kept_is_taken_without_its_stamp() {
        let all = tempfile::tempdir().unwrap();
        let [made, place, taken] =
            ["made", "kept/place", "taken"].map(|name| all.path().join(name));
        tool(&made);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        keep(&made, &place).unwrap();
        take(&place, &taken).unwrap();
        assert_eq!(files(&taken).unwrap(), [PathBuf::from("bin/tool")]);
        // Another process keeps the same.
        keep(&made, &place).unwrap();
        assert_eq!(fs::read_dir(place.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_used_in_place_is_linked_and_noticed_when_it_was_changed() {
        let all = tempfile::tempdir().unwrap();
        let [place, folder] = ["place", "target/tool"].map(|name| all.path().join(name));
        make_in(&place, |partial| {
            tool(partial);
            fs::remove_file(partial.join(STAMP)).context("remove the stamp")
        })
        .unwrap();
        link(&place, &folder).unwrap();
        fs::write(folder.join(STAMP), "version 1").unwrap();
        assert!(is_whole(&place));
        assert!(place.join(STAMP).exists());
        fs::write(place.join("bin/more"), "").unwrap();
        assert!(!is_whole(&place));
        // The link goes, and what it points to stays.
        remove_link_or_folder(&folder).unwrap();
        assert!(!folder.exists() && place.join("bin/tool").exists());
    }

    #[test]
    fn what_was_changed_is_not_taken() {
        let all = tempfile::tempdir().unwrap();
        let [made, place, taken] = ["made", "place", "taken"].map(|name| all.path().join(name));
        tool(&made);
        keep(&made, &place).unwrap();
        fs::write(place.join("bin/tool"), "another").unwrap();
        assert!(take(&place, &taken).is_err());
        fs::write(place.join("bin/tool"), "program").unwrap();
        fs::write(place.join("bin/more"), "").unwrap();
        assert!(take(&place, &taken).is_err());
        assert!(!taken.exists());
    }
}
