//! Opens files that a target process has mapped. Those files are hostile.
//!
//! A process chooses the names in its own mount namespace: a mapped path may be replaced by a
//! symbolic link to a file of the host, by a FIFO without a writer, by a device whose opening
//! has effects, or by a sparse file of a terabyte. Therefore a path is looked up only with
//! `openat2(2)` (Linux 5.6 and later), starting at an `O_PATH` descriptor of `/proc/PID/root`:
//!
//! - `RESOLVE_IN_ROOT`: absolute paths, absolute symbolic links and `..` stay below that root, as
//!   if the agent had called `chroot(2)` for the one look-up.
//! - `RESOLVE_NO_MAGICLINKS`: links as in `/proc/PID/fd`, which jump out of any root, are refused.
//!
//! The look-up itself uses `O_PATH`, which neither waits for the writer of a FIFO nor calls a
//! device's driver. Only when `fstat(2)` on that descriptor says "regular file" of an acceptable
//! size is it opened for reading, through our own `/proc/self/fd`, with `O_NONBLOCK` (leases),
//! `O_NOCTTY` and `O_CLOEXEC`. Between the two steps nothing can be exchanged: the descriptor
//! already denotes one inode.
//!
//! A mapped file is opened by its mapping first: a link in `/proc/PID/map_files` denotes the mapped inode itself and nothing
//! that the process could choose, also when a program was upgraded while it runs. Following it needs
//! `CAP_CHECKPOINT_RESTORE` (Linux 5.9, `proc_pid_map_files(5)`); without it the path is all there is.
//!
//! A file system that others serve may never answer, and not even a question for its kind comes back then. Its files are
//! left alone unless `--remote-files read` asks for them: see `remote_mounts`. What hangs nevertheless (a disk, a link
//! that leads elsewhere) has a deadline, and the file is refused as [`Refusal::NoAnswer`].

use std::{
    fs::File,
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd},
    sync::Arc,
};

use parking_lot::{Mutex, MutexGuard};
use profiler_sandbox::broker::{self, Device, Operation, Source};
use rustix::{
    fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat},
    io::Errno,
};

use super::remote_mounts::{ProcessMounts, Served};

/// What the kernel adds to the path of a mapped file that was removed or replaced.
const DELETED: &[u8] = b" (deleted)";

/// File systems of one process whose deadline is waited for; the files of others are then refused without a question.
const SILENT_LIMIT: usize = 3;

/// Why a file of a target is not used for names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    /// It cannot be looked up or read: deleted, no permission, or not below the process's root.
    NotFound,
    /// A directory, symbolic link, FIFO, socket or device.
    NotRegular,
    /// Larger than the limit.
    TooLarge,
    /// Another file than the one that is mapped: replaced, or changed since.
    Replaced,
    /// A perf-map of another user.
    ForeignOwner,
    /// A perf-map that was last written before its process started: that of an earlier process with the same number.
    Old,
    /// Others serve its file system, and `--remote-files read` was not given.
    Remote,
    /// Its file system did not answer in time.
    NoAnswer,
    /// The kernel has no `openat2` (before 5.6) or a sandbox denies it.
    NoOpenat2,
    /// Not an ELF file that can be read.
    NotElf,
    /// Reading it made the ELF library panic.
    Panicked,
    /// The limits on memory for names are reached.
    OverBudget,
}

impl Refusal {
    /// Stable `snake_case` name for metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::NotRegular => "not_regular",
            Self::TooLarge => "too_large",
            Self::Replaced => "replaced",
            Self::ForeignOwner => "foreign_owner",
            Self::Old => "old",
            Self::Remote => "remote",
            Self::NoAnswer => "no_answer",
            Self::NoOpenat2 => "no_openat2",
            Self::NotElf => "not_elf",
            Self::Panicked => "panicked",
            Self::OverBudget => "over_budget",
        }
    }
}

/// Identity of a file's content, as far as the file system reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileKey {
    pub device: u64,
    pub inode: u64,
    pub size: u64,
    modified: (i64, u64),
    /// Unlike the modification time this one cannot be set by the file's owner.
    changed: (i64, u64),
}

impl FileKey {
    /// When the content was last changed, nanoseconds since the Unix epoch.
    pub fn modified_ns(&self) -> u64 {
        let (seconds, nanoseconds) = self.modified;
        let seconds = u64::try_from(seconds).unwrap_or(0);
        seconds
            .saturating_mul(1_000_000_000)
            .saturating_add(nanoseconds)
    }

    fn new(stat: &Stat) -> Self {
        // The widths of these fields differ between architectures.
        #[allow(
            clippy::unnecessary_cast,
            clippy::cast_sign_loss,
            clippy::cast_lossless,
            reason = "the C types of these fields differ between architectures"
        )]
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as u64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as u64),
        }
    }
}

/// An open regular file of a target.
#[derive(Debug)]
pub struct ModuleFile {
    pub file: File,
    pub key: FileKey,
    pub owner: u32,
    /// `None` for files that belong to no program, as a perf-map.
    pub origin: Option<Origin>,
}

/// Where the file of a program was found, from which its separate debug file is looked for.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The root directory of its process.
    pub root: Arc<OwnedFd>,
    /// Below that root.
    pub path: Arc<[u8]>,
    /// What that process sees mounted; `None`: not known.
    pub mounts: Option<ProcessMounts>,
}

impl ModuleFile {
    /// The same with a descriptor of its own, if there is one.
    pub fn try_clone(&self) -> Option<Self> {
        Some(Self {
            file: self.file.try_clone().ok()?,
            origin: self.origin.clone(),
            ..*self
        })
    }

    /// A file that the agent made itself.
    pub fn of_memory(file: File) -> Option<Self> {
        let stat = rustix::fs::fstat(&file).ok()?;
        Some(Self {
            file,
            key: FileKey::new(&stat),
            owner: stat.st_uid,
            origin: None,
        })
    }
}

/// Whether the last part of a path may be a symbolic link (which then resolves inside the root).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    Follow,
    RefuseLast,
    /// Followed as long as none leads to another mount.
    FollowWithin,
    /// Nor any other part.
    RefuseAll,
}

/// Opens `path` as the process whose root directory is `root` would find it. `mounts` is what that process sees mounted,
/// where it is known: what others serve is then refused without a question.
pub fn open_in_root(
    root: BorrowedFd<'_>,
    path: &[u8],
    max_bytes: u64,
    links: Links,
    mounts: Option<&ProcessMounts>,
) -> Result<ModuleFile, Refusal> {
    let looked = mounts.map(|mounts| mounts.of_path(path));
    if looked.is_some_and(|looked| looked.served == Served::Elsewhere) {
        return Err(Refusal::Remote);
    }
    let root = root.try_clone_to_owned().map_err(|_| Refusal::NotFound)?;
    let wanted = Wanted {
        path: path.to_vec(),
        ..Wanted::default()
    };
    let mut opened = open_all(OpenFiles {
        below: Below {
            root: Arc::new(root),
            process: None,
            max_bytes,
            links: match looked {
                Some(looked) if looked.may_follow => links,
                Some(looked) if looked.is_in_root && links == Links::Follow => Links::FollowWithin,
                Some(_) => Links::RefuseAll,
                None => links,
            },
        },
        device: looked.and_then(|looked| looked.device),
        files: vec![wanted],
    });
    opened.pop().unwrap_or(Err(Refusal::NotFound))
}

/// A file of a target.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub path: Vec<u8>,
    /// The one that it has to have.
    pub inode: Option<u64>,
    /// The first and the end of the addresses of one mapping of it.
    pub range: Option<[u64; 2]>,
    /// Its file system.
    pub device: Option<Device>,
}

impl Wanted {
    fn is(&self, found: &ModuleFile) -> bool {
        self.inode.is_none_or(|inode| inode == found.key.inode)
    }
}

/// Where files are looked up, and how.
#[derive(Clone, Debug)]
struct Below {
    root: Arc<OwnedFd>,
    /// `/proc/PID` of the process that maps the files.
    process: Option<Arc<OwnedFd>>,
    max_bytes: u64,
    links: Links,
}

impl Below {
    fn open(&self, wanted: &Wanted) -> Result<ModuleFile, Refusal> {
        match self.open_by_mapping(wanted) {
            Some(Ok(found)) => Ok(found),
            Some(Err(Refusal::TooLarge)) => Err(Refusal::TooLarge),
            Some(Err(_)) | None => self.open_by_path(wanted),
        }
    }

    fn open_by_path(&self, wanted: &Wanted) -> Result<ModuleFile, Refusal> {
        let root = self.root.as_fd();
        let found = open_here(root, &wanted.path, self.max_bytes, self.links)?;
        if wanted.is(&found) {
            Ok(found)
        } else {
            Err(Refusal::Replaced)
        }
    }

    /// The mapping may be another one by now: only the wanted inode is taken.
    fn open_by_mapping(&self, wanted: &Wanted) -> Option<Result<ModuleFile, Refusal>> {
        let (Some(process), Some([start, end])) = (&self.process, wanted.range) else {
            return None;
        };
        let link = format!("map_files/{start:x}-{end:x}");
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let found = rustix::fs::openat(process, link, flags, Mode::empty()).ok()?;
        match read_regular(&found, self.max_bytes) {
            Ok(found) if !wanted.is(&found) => None,
            opened => Some(opened),
        }
    }
}

type Opened = Vec<Result<ModuleFile, Refusal>>;

/// Opens files of one file system. What was opened before one that does not answer is in `opened`.
struct OpenFiles {
    below: Below,
    device: Option<Device>,
    files: Vec<Wanted>,
}

/// The same on its way, with what has been opened so far.
struct Opening(OpenFiles, Arc<Mutex<Opened>>);

impl Operation for Opening {
    type Answer = ();

    fn waits_for(&self) -> Option<Source> {
        Some(self.0.device.map_or(Source::Unknown, Source::Device))
    }

    fn perform(self) {
        let Self(open, opened) = self;
        for wanted in &open.files {
            // Not under the lock: it may take for ever.
            let found = open.below.open(wanted);
            lock(&opened).push(found);
        }
    }
}

fn lock(opened: &Mutex<Opened>) -> MutexGuard<'_, Opened> {
    opened.lock()
}

/// As many answers as files.
fn open_all(open: OpenFiles) -> Opened {
    let count = open.files.len();
    let opened = Arc::new(Mutex::new(Vec::with_capacity(count)));
    let performed = broker::perform(Opening(open, Arc::clone(&opened)));
    let mut opened = std::mem::take(&mut *lock(&opened));
    let rest = match performed {
        Err(error) if broker::is_silence(&error) => Refusal::NoAnswer,
        Ok(()) | Err(_) => Refusal::NotFound,
    };
    opened.truncate(count);
    opened.resize_with(count, || Err(rest));
    opened
}

/// By the calling thread.
fn open_here(
    root: BorrowedFd<'_>,
    path: &[u8],
    max_bytes: u64,
    links: Links,
) -> Result<ModuleFile, Refusal> {
    let mut flags = OFlags::PATH | OFlags::CLOEXEC;
    if links == Links::RefuseLast {
        // With O_PATH this opens the link itself, which is then no regular file.
        flags |= OFlags::NOFOLLOW;
    }
    let mut resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    match links {
        Links::FollowWithin => resolve |= ResolveFlags::NO_XDEV,
        Links::RefuseAll => resolve |= ResolveFlags::NO_SYMLINKS,
        Links::Follow | Links::RefuseLast => {}
    }
    read_regular(&open_found(root, path, flags, resolve)?, max_bytes)
}

/// Opens what was found for reading, if it is a regular file of an acceptable size.
fn read_regular(found: &OwnedFd, max_bytes: u64) -> Result<ModuleFile, Refusal> {
    let stat = rustix::fs::fstat(found).map_err(|_| Refusal::NotFound)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Refusal::NotRegular);
    }
    let key = FileKey::new(&stat);
    if key.size > max_bytes {
        return Err(Refusal::TooLarge);
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let own = format!("/proc/self/fd/{}", found.as_raw_fd());
    let file = rustix::fs::openat(CWD, own, flags, Mode::empty()).map_err(|_| Refusal::NotFound)?;
    Ok(ModuleFile {
        file: file.into(),
        key,
        owner: stat.st_uid,
        origin: None,
    })
}

fn open_found(
    root: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Refusal> {
    // The kernel asks for another try when a rename elsewhere made it doubt a "..".
    for _ in 0..4 {
        match rustix::fs::openat2(root, path, flags, Mode::empty(), resolve) {
            Ok(found) => return Ok(found),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(Errno::NOSYS) => return Err(Refusal::NoOpenat2),
            Err(_) => return Err(Refusal::NotFound),
        }
    }
    Err(Refusal::NotFound)
}

/// Opens mapped files, each once: `inode` is the one in `/proc/PID/maps`. A file with another inode is not
/// what the process runs, so its names would be wrong. `process` is its folder in `/proc`, `mounts` what it sees mounted.
pub fn open_mapped(
    root: &Arc<OwnedFd>,
    process: &Arc<OwnedFd>,
    files: Vec<Wanted>,
    max_bytes: u64,
    mounts: Option<&ProcessMounts>,
) -> Vec<Result<ModuleFile, Refusal>> {
    let below = Below {
        root: Arc::clone(root),
        process: Some(Arc::clone(process)),
        max_bytes,
        links: Links::Follow,
    };
    // One after the other for each file system: one that does not answer costs the files of others nothing.
    let mut devices: Vec<Option<Device>> = Vec::new();
    for file in &files {
        if !devices.contains(&file.device) {
            devices.push(file.device);
        }
    }
    let mut found: Vec<Result<ModuleFile, Refusal>> = Vec::new();
    found.resize_with(files.len(), || Err(Refusal::NotFound));
    let mut silent = 0;
    for device in devices {
        let (places, wanted): (Vec<usize>, Vec<Wanted>) = files
            .iter()
            .cloned()
            .enumerate()
            .filter(|(_, file)| file.device == device)
            .unzip();
        let is_remote = |file: &Wanted| {
            let served = mounts
                .zip(device)
                .map(|(mounts, device)| mounts.of_mapping(device, &file.path));
            served == Some(Served::Elsewhere)
        };
        // Those of one device are of one file system.
        let opened: Opened = if wanted.first().is_some_and(is_remote) {
            wanted.iter().map(|_| Err(Refusal::Remote)).collect()
        } else if silent >= SILENT_LIMIT {
            wanted.iter().map(|_| Err(Refusal::NoAnswer)).collect()
        } else {
            open_all(OpenFiles {
                below: below.clone(),
                device,
                files: wanted,
            })
        };
        let is_silent = |opened: &Result<_, Refusal>| matches!(opened, Err(Refusal::NoAnswer));
        silent += usize::from(opened.iter().any(is_silent));
        for (place, opened) in places.into_iter().zip(opened) {
            let path = files[place].path.as_slice();
            let origin = Origin {
                root: Arc::clone(root),
                path: path.strip_suffix(DELETED).unwrap_or(path).into(),
                mounts: mounts.cloned(),
            };
            found[place] = opened.map(|found| ModuleFile {
                origin: Some(origin),
                ..found
            });
        }
    }
    found
}

#[cfg(test)]
#[path = "module_file_tests.rs"]
mod tests;
