//! What is done with the capabilities of a thread `broker`: files are looked up and opened, small ones read whole.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::{
            ffi::OsStringExt as _,
            fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _},
        },
    },
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, readlinkat, statat};

use super::{Operation, Source, perform};

/// A path of the agent's own making, below an open directory or from the root of the agent. A file that a target names is
/// opened by `module_file`.
#[derive(Clone, Debug)]
pub struct OwnPath {
    below: Option<Arc<OwnedFd>>,
    path: PathBuf,
}

impl OwnPath {
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            below: None,
            path: path.into(),
        }
    }

    pub fn below(directory: &Arc<OwnedFd>, path: &str) -> Self {
        Self {
            below: Some(Arc::clone(directory)),
            path: path.into(),
        }
    }

    fn directory(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd as _;

        self.below.as_ref().map_or(CWD, |below| below.as_fd())
    }

    fn open(&self, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC;
        Ok(openat(self.directory(), &self.path, flags, Mode::empty())?)
    }
}

/// Opens a file for reading.
pub fn open(place: OwnPath) -> io::Result<File> {
    perform(Open(place, OFlags::RDONLY))?.map(File::from)
}

/// Opens a directory as a start for look-ups (`O_PATH`).
pub fn open_path(place: OwnPath) -> io::Result<OwnedFd> {
    perform(Open(place, OFlags::PATH | OFlags::DIRECTORY))?
}

/// The same for a directory that the process with this pid may have on a file system that others serve.
pub fn open_path_of(pid: u32, place: OwnPath) -> io::Result<OwnedFd> {
    perform(Of(pid, Open(place, OFlags::PATH | OFlags::DIRECTORY)))?
}

/// An operation that may have to wait for a process.
struct Of<O>(u32, O);

impl<O: Operation> Operation for Of<O> {
    type Answer = O::Answer;

    fn waits_for(&self) -> Option<Source> {
        Some(Source::Process(self.0))
    }

    fn perform(self) -> Self::Answer {
        self.1.perform()
    }
}

struct Open(OwnPath, OFlags);

impl Operation for Open {
    type Answer = io::Result<OwnedFd>;

    fn perform(self) -> Self::Answer {
        self.0.open(self.1)
    }
}

/// Reads at most `limit` bytes of a file; what lies beyond is left away. What some files of `/proc` show depends on who
/// reads them, not only on the thread that opens them.
pub fn read(place: OwnPath, limit: usize) -> io::Result<Vec<u8>> {
    perform(Read(place, limit))?
}

/// The same for a file that shows memory of the process with this pid.
pub fn read_of(pid: u32, place: OwnPath, limit: usize) -> io::Result<Vec<u8>> {
    perform(Of(pid, Read(place, limit)))?
}

struct Read(OwnPath, usize);

impl Operation for Read {
    type Answer = io::Result<Vec<u8>>;

    fn perform(self) -> Self::Answer {
        let file = File::from(self.0.open(OFlags::RDONLY)?);
        let mut bytes = Vec::with_capacity(self.1.min(1024));
        file.take(self.1 as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Reads memory of the process with this pid from its open `/proc/PID/mem`: at most `limit` bytes from `start`.
pub fn read_at(pid: u32, file: &Arc<File>, start: u64, limit: usize) -> io::Result<Vec<u8>> {
    let file = Arc::clone(file);
    perform(Of(pid, ReadAt { file, start, limit }))?
}

struct ReadAt {
    file: Arc<File>,
    start: u64,
    limit: usize,
}

impl Operation for ReadAt {
    type Answer = io::Result<Vec<u8>>;

    fn perform(self) -> Self::Answer {
        let mut bytes = vec![0; self.limit];
        let count = self.file.read_at(&mut bytes, self.start)?;
        bytes.truncate(count);
        Ok(bytes)
    }
}

/// The target of a link.
pub fn read_link(place: OwnPath) -> io::Result<Vec<u8>> {
    perform(ReadLink(place))?
}

struct ReadLink(OwnPath);

impl Operation for ReadLink {
    type Answer = io::Result<Vec<u8>>;

    fn perform(self) -> Self::Answer {
        let target = readlinkat(self.0.directory(), &self.0.path, Vec::new())?;
        Ok(target.into_bytes())
    }
}

/// An entry of a directory.
#[derive(Debug)]
pub struct Entry {
    pub name: OsString,
    pub is_directory: bool,
}

/// Entries of a directory without `.` and `..`, at most `limit`.
pub fn list(place: OwnPath, limit: usize) -> io::Result<Vec<Entry>> {
    perform(List(place, limit))?
}

struct List(OwnPath, usize);

impl Operation for List {
    type Answer = io::Result<Vec<Entry>>;

    fn perform(self) -> Self::Answer {
        let directory = self.0.open(OFlags::RDONLY | OFlags::DIRECTORY)?;
        let stats = directory.try_clone()?;
        let entries = Dir::new(directory)?.flatten().filter_map(|entry| {
            let name = entry.file_name();
            if [&b"."[..], b".."].contains(&name.to_bytes()) {
                return None;
            }
            let kind = match entry.file_type() {
                // Not every file system says it here.
                FileType::Unknown => statat(&stats, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |stat| {
                        FileType::from_raw_mode(stat.st_mode)
                    }),
                known => known,
            };
            Some(Entry {
                name: OsString::from_vec(name.to_bytes().to_vec()),
                is_directory: kind == FileType::Directory,
            })
        });
        Ok(entries.take(self.1).collect())
    }
}

/// Those of `pids` that are there.
pub fn living(pids: Vec<u32>) -> io::Result<Vec<u32>> {
    perform(Living(pids))
}

struct Living(Vec<u32>);

impl Operation for Living {
    type Answer = Vec<u32>;

    fn perform(mut self) -> Self::Answer {
        let is_there = |pid: &u32| {
            OwnPath::at(format!("/proc/{pid}"))
                .open(OFlags::PATH)
                .is_ok()
        };
        self.0.retain(is_there);
        self.0
    }
}

/// Adds text to a file of the agent's own, which is made with its folder when it is missing.
pub fn append(path: &Path, text: String) -> io::Result<()> {
    perform(Write {
        path: path.to_owned(),
        text,
        is_new: false,
    })?
}

/// Replaces a file of the agent's own by one with this text; after a crash it is the old or the new one.
pub fn replace(path: &Path, text: String) -> io::Result<()> {
    perform(Write {
        path: path.to_owned(),
        text,
        is_new: true,
    })?
}

struct Write {
    path: PathBuf,
    text: String,
    is_new: bool,
}

impl Operation for Write {
    type Answer = io::Result<()>;

    fn perform(self) -> Self::Answer {
        if !self.is_new {
            return write(&self.path, &self.text);
        }
        let fresh = self.path.with_extension("new");
        // Left over from a crash.
        drop(fs::remove_file(&fresh));
        write(&fresh, &self.text)?;
        fs::rename(&fresh, &self.path)
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent()
        && !folder.exists()
    {
        fs::DirBuilder::new().mode(0o700).create(folder)?;
    }
    let mut file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())
}
