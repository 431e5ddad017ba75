//! Which files of a process lie on file systems that others serve: a network, or a program of this machine.
//!
//! Such a file system may never answer, and the thread that waits for it cannot always be ended. Even `fstatfs(2)` of a
//! descriptor asks the server, so it is recognised without touching the file: by the device that `/proc/PID/maps` names, or
//! by the longest mount point above a path, in `/proc/PID/mountinfo`.
//!
//! What that text says is bounded and partly chosen by the process: it may mount what it wants in a namespace of its own. A
//! wrong answer costs names, and an opening that does not come back has a deadline (`broker`).

use std::{
    collections::HashMap,
    io,
    os::fd::OwnedFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use profiler_sandbox::broker::{self, Device, OwnPath};

/// Largest mountinfo that is read: some 20,000 mounts.
const TEXT_LIMIT: usize = 4 << 20;
/// How long the mounts of a namespace are believed.
const AGE_LIMIT: Duration = Duration::from_secs(5);
/// Namespaces whose mounts are kept.
const KEPT: usize = 64;
/// Layers of one overlay that are looked at; the kernel allows 500.
const LAYERS_LIMIT: usize = 512;

/// File systems by their names in mountinfo. Those in user space have `fuse.` and more.
const REMOTE: [&[u8]; 24] = [
    b"nfs",
    b"nfs4",
    b"cifs",
    b"smb3",
    b"smbfs",
    b"9p",
    b"ceph",
    b"glusterfs",
    b"lustre",
    b"afs",
    b"coda",
    b"orangefs",
    b"pvfs2",
    b"gpfs",
    b"beegfs",
    b"wekafs",
    b"virtiofs",
    b"vboxsf",
    b"vmhgfs",
    b"prl_fs",
    b"fuse",
    b"fuseblk",
    b"ncpfs",
    b"autofs",
];

/// Whether files on file systems that others serve are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RemoteFiles {
    /// Their frames have addresses in place of names.
    #[default]
    Skip,
    /// A server that does not answer costs names of others as well.
    Read,
}

impl RemoteFiles {
    /// Name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Read => "read",
        }
    }

    /// Settles it for the whole process.
    pub fn choose(self) {
        READ.store(self == Self::Read, Ordering::Relaxed);
    }

    fn chosen() -> Self {
        if READ.load(Ordering::Relaxed) {
            Self::Read
        } else {
            Self::Skip
        }
    }
}

impl std::str::FromStr for RemoteFiles {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Skip, Self::Read]
            .into_iter()
            .find(|mode| mode.name() == text)
            .ok_or("is neither skip nor read")
    }
}

static READ: AtomicBool = AtomicBool::new(false);

/// What serves a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// The kernel alone, as far as is known.
    Here,
    Elsewhere,
}

/// What a process sees mounted.
#[derive(Debug, Default)]
pub struct Mounts {
    all: Vec<Mount>,
    /// Whether some are served elsewhere, so that a symbolic link may lead there.
    any_elsewhere: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct Mount {
    device: Device,
    /// Absolute, below the root of the process in question.
    point: Vec<u8>,
    served: Served,
    /// Folders that an overlay consists of, as named at the mount.
    layers: Vec<Vec<u8>>,
}

/// The mounts of one process and, for what lies behind them, those of the host.
#[derive(Clone, Debug)]
pub struct ProcessMounts {
    own: Arc<Mounts>,
    host: Arc<Mounts>,
}

impl ProcessMounts {
    /// Of the process whose folder in `/proc` is given. Fails when it is gone.
    pub fn read(process: &Arc<OwnedFd>) -> io::Result<Self> {
        let part = |name: &str| broker::read_link(OwnPath::below(process, name));
        Ok(Self::seen_by(process, &part("ns/mnt")?, &part("root")?))
    }

    /// The same for one whose links `ns/mnt` and `root` are known. Of one that has ended meanwhile nothing is known but
    /// what the host sees.
    pub fn seen_by(process: &Arc<OwnedFd>, namespace: &[u8], root: &[u8]) -> Self {
        let read = || -> io::Result<Mounts> {
            let text = broker::read(OwnPath::below(process, "mountinfo"), TEXT_LIMIT)?;
            Ok(Mounts::parse(&text))
        };
        // Two processes of one namespace see different parts of it when their roots differ.
        let own = if namespace.is_empty() {
            read().map(Arc::new)
        } else {
            cached([namespace, root].join(&b'\n'), read)
        };
        Self {
            own: own.unwrap_or_default(),
            host: host(),
        }
    }

    /// Of a process that sees what a text says, as the host does.
    #[cfg(test)]
    pub(crate) fn of_text(text: &str) -> Self {
        let own = Arc::new(Mounts::parse(text.as_bytes()));
        Self {
            host: Arc::clone(&own),
            own,
        }
    }

    /// Of the agent itself.
    pub fn of_agent() -> Self {
        let read = || {
            let text = broker::read(OwnPath::at("/proc/self/mountinfo"), TEXT_LIMIT)?;
            Ok(Mounts::parse(&text))
        };
        Self {
            own: cached(b"self".to_vec(), read).unwrap_or_default(),
            host: host(),
        }
    }

    /// What serves the file system of a mapped file, by its device and its path.
    pub fn of_mapping(&self, device: Device, path: &[u8]) -> Served {
        if RemoteFiles::chosen() == RemoteFiles::Read {
            return Served::Here;
        }
        self.of_device(device, path)
    }

    fn of_device(&self, device: Device, path: &[u8]) -> Served {
        let mounts = [&self.own, &self.host];
        let mut found = mounts
            .into_iter()
            .filter_map(|mounts| mounts.of_device(device));
        match found.next() {
            Some(mount) => self.of_mount(mount),
            // A file system with a device of its own, as on a disk, has no server.
            None if device.major != 0 => Served::Here,
            // Older kernels name the device of an overlay's layer, and btrfs has numbers that no mount shows.
            None => self.look_up(path).served,
        }
    }

    /// What serves the file system that a path leads to, as far as it is known without looking it up.
    pub(crate) fn of_path(&self, path: &[u8]) -> Looked {
        if RemoteFiles::chosen() == RemoteFiles::Read {
            return Looked {
                served: Served::Here,
                device: None,
                may_follow: true,
                is_in_root: false,
            };
        }
        self.look_up(path)
    }

    fn look_up(&self, path: &[u8]) -> Looked {
        let mount = self.own.above(path);
        let is_plain = !path.split(|byte| *byte == b'/').any(|part| part == b"..");
        let served = match mount {
            Some(mount) if is_plain => self.of_mount(mount),
            Some(_) | None if self.own.any_elsewhere => Served::Elsewhere,
            Some(_) | None => Served::Here,
        };
        Looked {
            served,
            device: mount.map(|mount| mount.device),
            may_follow: !self.own.any_elsewhere,
            is_in_root: is_plain && mount.is_some_and(|mount| mount.point == b"/"),
        }
    }

    fn of_mount(&self, mount: &Mount) -> Served {
        let is_elsewhere = |layer: &Vec<u8>| {
            // The path was given at the mount: in the process's own namespace, or outside of it.
            [&self.own, &self.host].into_iter().any(|mounts| {
                let below = mounts.above(layer);
                below.is_some_and(|below| below.served == Served::Elsewhere)
            })
        };
        if mount.served == Served::Elsewhere || mount.layers.iter().any(is_elsewhere) {
            Served::Elsewhere
        } else {
            Served::Here
        }
    }
}

/// What is known of a path before it is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looked {
    pub served: Served,
    pub device: Option<Device>,
    /// Whether no symbolic link can lead to a file system that is served elsewhere.
    pub may_follow: bool,
    /// It lies in the mount of the root, as far as no link leads out of that.
    pub is_in_root: bool,
}

impl Mounts {
    /// Lines that cannot be understood are skipped.
    pub fn parse(text: &[u8]) -> Self {
        let lines = text.split(|byte| *byte == b'\n');
        let all: Vec<Mount> = lines.filter_map(parse_line).collect();
        Self {
            any_elsewhere: all.iter().any(|mount| mount.served == Served::Elsewhere),
            all,
        }
    }

    fn of_device(&self, device: Device) -> Option<&Mount> {
        self.all.iter().find(|mount| mount.device == device)
    }

    /// The mount with the longest point above a path; of several at one point the last, which hides the others.
    fn above(&self, path: &[u8]) -> Option<&Mount> {
        let above = |mount: &&Mount| {
            let point = mount.point.strip_suffix(b"/").unwrap_or(&mount.point);
            let rest = path.strip_prefix(point);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        self.all
            .iter()
            .filter(above)
            .max_by_key(|mount| mount.point.len())
    }
}

/// One line: `36 35 98:0 /root /point rw,noatime master:1 - ext4 /dev/sda rw,lowerdir=...` (`proc_pid_mountinfo(5)`).
fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ').skip(2);
    let device = parse_device(fields.next()?)?;
    let point = unescape(fields.nth(1)?);
    let mut behind = fields.skip_while(|field| *field != b"-").skip(1);
    let kind = behind.next()?;
    let options = behind.nth(1).unwrap_or_default();
    let served = if REMOTE.contains(&kind) || kind.starts_with(b"fuse.") {
        Served::Elsewhere
    } else {
        Served::Here
    };
    let layers = if kind == b"overlay" {
        layers(options)
    } else {
        Vec::new()
    };
    point.starts_with(b"/").then_some(Mount {
        device,
        point,
        served,
        layers,
    })
}

fn parse_device(text: &[u8]) -> Option<Device> {
    let (major, minor) = std::str::from_utf8(text).ok()?.split_once(':')?;
    Some(Device {
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
    })
}

/// Absolute folders of an overlay; relative ones lie beside its upper folder.
fn layers(options: &[u8]) -> Vec<Vec<u8>> {
    const KEYS: [&[u8]; 4] = [b"lowerdir=", b"lowerdir+=", b"upperdir=", b"workdir="];
    let values = options
        .split(|byte| *byte == b',')
        .filter_map(|option| KEYS.iter().find_map(|key| option.strip_prefix(*key)));
    values
        .map(unescape)
        .flat_map(|value| split_folders(&value))
        .filter(|folder| folder.starts_with(b"/"))
        .take(LAYERS_LIMIT)
        .collect()
}

/// Folders with `:` between them; one that belongs to a name has `\` before it.
fn split_folders(value: &[u8]) -> Vec<Vec<u8>> {
    let mut folders = vec![Vec::new()];
    let mut bytes = value.iter();
    while let Some(byte) = bytes.next() {
        let add = match byte {
            b':' => {
                folders.push(Vec::new());
                continue;
            }
            b'\\' => bytes.next().unwrap_or(byte),
            other => other,
        };
        if let Some(last) = folders.last_mut() {
            last.push(*add);
        }
    }
    folders
}

/// Bytes that the kernel writes as `\` and three octal digits.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.get(..3).filter(|digits| {
            *first == b'\\' && digits.iter().all(|digit| (b'0'..=b'7').contains(digit))
        });
        if let Some(digits) = digits {
            let value = digits
                .iter()
                .fold(0_u32, |value, digit| value * 8 + u32::from(*digit - b'0'));
            // Three octal digits may say more than a byte holds; the kernel never writes that.
            plain.push(u8::try_from(value).unwrap_or(b'?'));
            rest = behind.get(3..).unwrap_or_default();
        } else {
            plain.push(*first);
            rest = behind;
        }
    }
    plain
}

/// What was read, by namespace and root.
type Cache = HashMap<Vec<u8>, (Instant, Arc<Mounts>)>;

fn cached(seen: Vec<u8>, read: impl FnOnce() -> io::Result<Mounts>) -> io::Result<Arc<Mounts>> {
    static CACHE: Mutex<Option<Cache>> = Mutex::new(None);
    let lock = || CACHE.lock();
    let known = lock().as_ref().and_then(|cache| cache.get(&seen).cloned());
    if let Some((at, mounts)) = known
        && at.elapsed() < AGE_LIMIT
    {
        return Ok(mounts);
    }
    // Not under the lock: others must not wait for it.
    let mounts = Arc::new(read()?);
    let mut guard = lock();
    let cache = guard.get_or_insert_default();
    if cache.len() >= KEPT {
        cache.retain(|_, (at, _)| at.elapsed() < AGE_LIMIT);
    }
    if cache.len() < KEPT {
        cache.insert(seen, (Instant::now(), Arc::clone(&mounts)));
    }
    Ok(mounts)
}

/// Of the agent and, where it may look, of the first process: in a pod the agent has a namespace of its own.
fn host() -> Arc<Mounts> {
    let read = || {
        let mut all = Vec::new();
        for path in ["/proc/self/mountinfo", "/proc/1/mountinfo"] {
            let text = broker::read(OwnPath::at(path), TEXT_LIMIT).unwrap_or_default();
            all.extend(Mounts::parse(&text).all);
        }
        Ok(Mounts {
            any_elsewhere: all.iter().any(|mount| mount.served == Served::Elsewhere),
            all,
        })
    };
    cached(b"host".to_vec(), read).unwrap_or_default()
}

#[cfg(test)]
#[path = "remote_mounts_tests.rs"]
mod tests;
