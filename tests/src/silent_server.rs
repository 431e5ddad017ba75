//! A file system in user space with one program on it, whose server can fall silent.
//!
//! The server is a thread of the test, so that its requests can be held at a known place. Whatever hangs in it is released when
//! it is dropped: the connection is aborted first.

use std::{
    ffi::{CString, OsStr},
    fs::{self, File},
    io::Read as _,
    os::fd::{AsRawFd as _, OwnedFd},
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result, ensure};
use fuser::{
    FileAttr, FileType, Filesystem, ReplyAttr, ReplyData, ReplyEntry, ReplyOpen, Request, Session,
    SessionACL, consts::FOPEN_KEEP_CACHE,
};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::{
    cleanup::{Guard, scratch_directory},
    wait::wait_until,
};

const DEVICE: &str = "/dev/fuse";
/// Numbers of files.
const ROOT: u64 = 1;
const PROGRAM: u64 = 2;
/// Nothing is believed longer: every look asks the server.
const AT_ONCE: Duration = Duration::ZERO;
/// For the server to get to where it falls silent.
const SOON: Duration = Duration::from_secs(10);

/// How requests are left without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// The server has read the request: its client cannot even be killed.
    Unanswered,
    /// The server reads nothing any more.
    Unread,
}

#[derive(Debug, Default)]
struct State {
    /// What happens to the next request.
    next: Option<Silence>,
    /// Contents that are handed out before the server falls silent; `None`: any number.
    reads_left: Option<u32>,
    is_silent: bool,
    is_over: bool,
}

/// Shared with the server's thread.
#[derive(Debug, Default)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

impl Gate {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stays here until the server is to end.
    fn hold(&self) {
        let mut state = self.lock();
        state.is_silent = true;
        while !state.is_over {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Answers a request, or leaves it without an answer.
    fn pass(&self, answer: impl FnOnce()) {
        let next = self.lock().next;
        if next == Some(Silence::Unanswered) {
            self.hold();
        }
        answer();
        if next == Some(Silence::Unread) {
            self.hold();
        }
    }

    /// Counts a reading.
    fn count_read(&self) {
        let mut state = self.lock();
        if let Some(left) = state.reads_left {
            state.reads_left = left.checked_sub(1);
            if left == 0 {
                state.next = Some(Silence::Unanswered);
            }
        }
    }
}

struct Served {
    gate: Arc<Gate>,
    name: String,
    content: Vec<u8>,
}

impl Served {
    fn attributes(&self, number: u64) -> Option<FileAttr> {
        let (kind, size) = match number {
            ROOT => (FileType::Directory, 0),
            PROGRAM => (FileType::RegularFile, self.content.len() as u64),
            _ => return None,
        };
        let time: SystemTime = UNIX_EPOCH;
        Some(FileAttr {
            ino: number,
            size,
            blocks: size.div_ceil(512),
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind,
            perm: 0o755,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }
}

impl Filesystem for Served {
    fn lookup(&mut self, _request: &Request<'_>, parent: u64, name: &OsStr, reply: ReplyEntry) {
        let is_there = parent == ROOT && name == OsStr::new(&self.name);
        let found = self.attributes(PROGRAM).filter(|_| is_there);
        self.gate.pass(|| match found {
            Some(found) => reply.entry(&AT_ONCE, &found, 0),
            None => reply.error(libc::ENOENT),
        });
    }

    fn getattr(
        &mut self,
        _request: &Request<'_>,
        number: u64,
        _handle: Option<u64>,
        reply: ReplyAttr,
    ) {
        let found = self.attributes(number);
        self.gate.pass(|| match found {
            Some(found) => reply.attr(&AT_ONCE, &found),
            None => reply.error(libc::ENOENT),
        });
    }

    /// A later open reads the file anew, if its reads are counted.
    fn open(&mut self, _request: &Request<'_>, _number: u64, _flags: i32, reply: ReplyOpen) {
        let is_kept = self.gate.lock().reads_left.is_none();
        let flags = if is_kept { FOPEN_KEEP_CACHE } else { 0 };
        self.gate.pass(|| reply.opened(0, flags));
    }

    fn read(
        &mut self,
        _request: &Request<'_>,
        _number: u64,
        _handle: u64,
        offset: i64,
        size: u32,
        _flags: i32,
        _lock_owner: Option<u64>,
        reply: ReplyData,
    ) {
        self.gate.count_read();
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.content.get(start..).unwrap_or_default();
        let part = &rest[..rest.len().min(size as usize)];
        self.gate.pass(|| reply.data(part));
    }
}

/// A mounted file system with one program, which runs until the value is dropped.
#[derive(Debug)]
pub struct SilentServer {
    gate: Arc<Gate>,
    mounted: PathBuf,
    program: PathBuf,
    server: Option<JoinHandle<()>>,
    _folder: Guard,
}

impl SilentServer {
    /// Serves a copy of `program` under the name `name`. Needs root and the kernel's FUSE.
    pub fn start(program: &Path, name: &str) -> Result<Self> {
        ensure!(
            Path::new(DEVICE).exists(),
            "{DEVICE} is missing: load the kernel's module, `modprobe fuse`"
        );
        let (folder, guard) = scratch_directory("silent")?;
        let mounted = folder.join("mounted");
        fs::create_dir(&mounted).context("create the mount point")?;
        let content = fs::read(program).with_context(|| format!("read {}", program.display()))?;
        let device: OwnedFd = File::options()
            .read(true)
            .write(true)
            .open(DEVICE)
            .with_context(|| format!("open {DEVICE} (needs root)"))?
            .into();
        let options = format!(
            "fd={},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions",
            device.as_raw_fd()
        );
        let options = CString::new(options).context("options of the mount")?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount("silent", &mounted, "fuse", flags, options.as_c_str())
            .with_context(|| format!("mount {}", mounted.display()))?;
        let gate = Arc::new(Gate::default());
        let served = Served {
            gate: Arc::clone(&gate),
            name: name.to_owned(),
            content,
        };
        let mut session = Session::from_fd(served, device, SessionACL::All);
        let server = thread::Builder::new()
            .name("silent-server".into())
            .spawn(move || {
                // It ends with an error when the connection is aborted, and that is what we want.
                session.run().ok();
            })
            .context("start the server")?;
        let program = mounted.join(name);
        let silent = Self {
            gate,
            mounted,
            program,
            server: Some(server),
            _folder: guard,
        };
        silent.keep_in_memory()?;
        Ok(silent)
    }

    /// Path of the program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// What a program runs from is in memory, so that it runs on when the server is silent.
    fn keep_in_memory(&self) -> Result<()> {
        let mut content = Vec::new();
        File::open(&self.program)
            .and_then(|mut file| file.read_to_end(&mut content))
            .context("read the program from its server")?;
        Ok(())
    }

    /// Returns when the server answers nothing any more.
    pub fn fall_silent(&self, how: Silence) -> Result<()> {
        self.gate.lock().next = Some(how);
        // One more request gets the server there; its client may hang until the end.
        let program = self.program.clone();
        thread::spawn(move || fs::metadata(program).ok());
        wait_until("the server is silent", SOON, || self.is_silent())
    }

    /// Falls silent after this many readings of content from now on.
    pub fn fall_silent_after_reads(&self, reads: u32) {
        self.gate.lock().reads_left = Some(reads);
    }

    pub fn is_silent(&self) -> bool {
        self.gate.lock().is_silent
    }
}

impl Drop for SilentServer {
    fn drop(&mut self) {
        // By force: that aborts the connection, and every request of it fails.
        let flags = UnmountFlags::FORCE | UnmountFlags::DETACH;
        if let Err(error) = unmount(&self.mounted, flags) {
            eprintln!("unmount {}: {error}", self.mounted.display());
        }
        self.gate.lock().is_over = true;
        self.gate.changed.notify_all();
        if let Some(server) = self.server.take() {
            server.join().ok();
        }
    }
}
