//! Sockets of container runtimes, also those of the host as seen from inside of a container.

use std::{
    io,
    os::fd::{AsRawFd as _, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags};
use tokio::{net::UnixStream, runtime::Handle};

use crate::process::ProcessTable;

/// The host's file system, in a container that shares the host's PID namespace.
const HOST: &str = "/proc/1/root";
/// Programs that make the usual sockets, or use them: their file system is the host's as well, also where that of
/// the first process may not be looked at.
const DAEMONS: [&str; 7] = [
    "containerd",
    "crio",
    "dockerd",
    "cri-dockerd",
    "k3s-server",
    "rke2",
    "kubelet",
];

/// What speaks at a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    Cri,
    Docker,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeSocket {
    pub path: PathBuf,
    pub speaks: Speaks,
}

/// Whether and where container runtimes are asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RuntimeMode {
    /// Where their packages put their sockets.
    #[default]
    Auto,
    Off,
    At(Vec<RuntimeSocket>),
}

/// Where packages put them: containerd, CRI-O, K3s and RKE2, cri-dockerd, Docker.
const USUAL: [(&str, Speaks); 5] = [
    ("/run/containerd/containerd.sock", Speaks::Cri),
    ("/run/crio/crio.sock", Speaks::Cri),
    ("/run/k3s/containerd/containerd.sock", Speaks::Cri),
    ("/run/cri-dockerd.sock", Speaks::Cri),
    ("/run/docker.sock", Speaks::Docker),
];

impl RuntimeSocket {
    /// `PATH`, `cri:PATH` or `docker:PATH`; without a prefix a file called `docker.sock` is Docker's.
    pub fn parse(text: &str) -> Option<Self> {
        let (path, speaks) = if let Some(path) = text.strip_prefix("docker:") {
            (path, Speaks::Docker)
        } else if let Some(path) = text.strip_prefix("cri:") {
            (path, Speaks::Cri)
        } else if text.ends_with("/docker.sock") {
            (text, Speaks::Docker)
        } else {
            (text, Speaks::Cri)
        };
        path.starts_with('/').then(|| Self {
            path: PathBuf::from(path),
            speaks,
        })
    }
}

impl std::fmt::Display for RuntimeMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Off => f.write_str("off"),
            Self::At(sockets) => {
                let shown: Vec<String> = sockets
                    .iter()
                    .map(|RuntimeSocket { path, speaks }| {
                        let speaks = match speaks {
                            Speaks::Cri => "cri",
                            Speaks::Docker => "docker",
                        };
                        format!("{speaks}:{}", path.display())
                    })
                    .collect();
                f.write_str(&shown.join(","))
            }
        }
    }
}

impl RuntimeMode {
    /// The sockets that exist now; the reason when there are none. Reads the file system.
    pub(super) fn sockets(
        &self,
        speaks: Speaks,
        table: &ProcessTable,
    ) -> Result<Vec<RuntimeSocket>, String> {
        match self {
            Self::Off => Err("switched off by --runtime-socket=off".to_owned()),
            Self::At(given) => {
                let wanted: Vec<_> = given
                    .iter()
                    .filter(|socket| socket.speaks == speaks)
                    .cloned()
                    .collect();
                if wanted.is_empty() {
                    return Err("no such socket is given by --runtime-socket".to_owned());
                }
                Ok(wanted)
            }
            Self::Auto => {
                let usual = USUAL.iter().filter(|(_, other)| *other == speaks);
                let daemons = DAEMONS.iter().flat_map(|name| table.pids_named(name));
                let mut roots = vec![String::new(), HOST.to_owned()];
                roots.extend(daemons.map(|pid| format!("/proc/{pid}/root")));
                let found: Vec<_> = usual
                    .clone()
                    .filter_map(|(path, _)| {
                        roots
                            .iter()
                            .map(|root| PathBuf::from(format!("{root}{path}")))
                            .find(|path| is_socket(path))
                    })
                    .map(|path| RuntimeSocket { path, speaks })
                    .collect();
                if found.is_empty() {
                    let paths: Vec<&str> = usual.map(|(path, _)| *path).collect();
                    return Err(format!("no socket at {}", paths.join(", ")));
                }
                Ok(found)
            }
        }
    }
}

fn is_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;

    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

/// Runs blocking work with the rights of the threads of `broker`. A runtime starts the thread for such work from
/// the thread that asks for it, and the new one has the capabilities of that: so one of its own has to ask.
pub(super) async fn elsewhere<T: Send + 'static>(
    broker: &Handle,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let asked = broker.spawn(async { tokio::task::spawn_blocking(work).await });
    asked
        .await
        .map_err(io::Error::other)?
        .map_err(io::Error::other)
}

/// Connects to a socket that this thread alone might not reach: it is looked up by a thread of `broker`, and
/// connected to by its descriptor (Linux follows `/proc/self/fd` also for `O_PATH`).
pub(super) async fn connect(path: &Path, broker: &Handle) -> io::Result<UnixStream> {
    let path = path.to_owned();
    let open = move || rustix::fs::open(&path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    let found: OwnedFd = elsewhere(broker, open).await??;
    UnixStream::connect(format!("/proc/self/fd/{}", found.as_raw_fd())).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_told_by_prefix_or_name() {
        let parsed = |text: &str| RuntimeSocket::parse(text).map(|socket| socket.speaks);
        assert_eq!(parsed("/run/docker.sock"), Some(Speaks::Docker));
        assert_eq!(parsed("docker:/tmp/x"), Some(Speaks::Docker));
        assert_eq!(parsed("cri:/run/docker.sock"), Some(Speaks::Cri));
        assert_eq!(parsed("/run/containerd/containerd.sock"), Some(Speaks::Cri));
        assert_eq!(parsed("run/docker.sock"), None);
        assert_eq!(parsed("docker:"), None);
    }

    #[test]
    fn what_is_not_given_is_not_looked_for() {
        let table = ProcessTable::new();
        let mode = RuntimeMode::At(vec![RuntimeSocket::parse("/run/docker.sock").unwrap()]);
        assert_eq!(mode.sockets(Speaks::Docker, &table).unwrap().len(), 1);
        assert!(mode.sockets(Speaks::Cri, &table).is_err());
        assert!(RuntimeMode::Off.sockets(Speaks::Docker, &table).is_err());
    }
}
