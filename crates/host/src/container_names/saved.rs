//! Names on disk, so that results of containers that have ended keep them when the agent starts again.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::Duration,
};

use profiler_model::ContainerNames;
use tokio_util::sync::CancellationToken;

use super::directory::ContainerDirectory;

const FILE: &str = "containers.json";
/// Largest file that is read.
const MOST_BYTES: u64 = 64 << 20;
/// Shortest time between two writes.
const PAUSE: Duration = Duration::from_secs(10);

/// Takes back what an earlier agent saved in this data directory. A file that cannot be read is logged and left
/// out: names are not results.
pub fn restore(data_dir: &Path, directory: &ContainerDirectory) {
    let path = data_dir.join(FILE);
    match read(&path) {
        Ok(Some(saved)) => directory.restore(saved),
        Ok(None) => {}
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "names of earlier containers cannot be read");
        }
    }
}

fn read(path: &Path) -> io::Result<Option<Vec<(String, ContainerNames)>>> {
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let limited = io::BufReader::new(io::Read::take(file, MOST_BYTES));
    serde_json::from_reader(limited)
        .map(Some)
        .map_err(io::Error::from)
}

/// Saves names soon after they have changed, and once more at the end. A directory that cannot be written is
/// logged once.
pub async fn keep_saved(data_dir: PathBuf, directory: ContainerDirectory, stop: CancellationToken) {
    let mut changes = directory.changes();
    let mut told = false;
    while !stop.is_cancelled() {
        tokio::select! {
            () = stop.cancelled() => {}
            changed = changes.changed() => {
                if changed.is_err() {
                    return;
                }
            }
        }
        let (folder, names) = (data_dir.clone(), directory.clone());
        let written = tokio::task::spawn_blocking(move || save(&folder, &names)).await;
        match written.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok(()) => told = false,
            Err(error) if !told => {
                told = true;
                tracing::warn!(%error, "names of containers are not saved; they are kept until the agent ends");
            }
            Err(_told) => {}
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

/// Replaces the file as a whole, or leaves it.
fn save(data_dir: &Path, directory: &ContainerDirectory) -> io::Result<()> {
    let new = data_dir.join(format!("{FILE}.new"));
    let mut file = fs::File::create(&new)?;
    file.write_all(&serde_json::to_vec(&directory.saved())?)?;
    file.sync_data()?;
    fs::rename(&new, data_dir.join(FILE))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use profiler_model::{ContainerRole, NamedBy};

    use super::*;

    #[test]
    fn names_come_back_and_damaged_files_do_no_harm() {
        let folder = tempfile::tempdir().unwrap();
        let directory = ContainerDirectory::default();
        restore(folder.path(), &directory);
        assert!(directory.saved().is_empty());
        let names = ContainerNames {
            name: "web".to_owned(),
            role: ContainerRole::Main,
            image: None,
            pod: None,
            labels: BTreeMap::new(),
            workload: None,
            named_by: NamedBy::Docker,
        };
        directory.learn(
            NamedBy::Docker,
            Vec::new(),
            vec![("c".to_owned(), names)],
            true,
        );
        save(folder.path(), &directory).unwrap();
        let next = ContainerDirectory::default();
        restore(folder.path(), &next);
        assert_eq!(next.by_id("c"), directory.by_id("c"));
        fs::write(folder.path().join(FILE), "[[\"c\", {}").unwrap();
        let other = ContainerDirectory::default();
        restore(folder.path(), &other);
        assert!(other.saved().is_empty());
    }
}
