use std::{
    io::Read as _,
    os::{
        fd::AsFd as _,
        unix::fs::{MetadataExt as _, symlink},
    },
    path::Path,
    sync::mpsc,
    time::Duration,
};

use tempfile::TempDir;

use super::*;

const LIMIT: u64 = 1 << 20;

/// A directory that plays the root of a target's mount namespace.
struct Root {
    dir: TempDir,
    fd: OwnedFd,
}

impl Root {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(dir.path(), flags, Mode::empty()).unwrap();
        Self { dir, fd }
    }

    fn write(&self, name: &str, content: &str) -> u64 {
        let path = self.dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        std::fs::metadata(&path).unwrap().ino()
    }

    /// Opens on another thread: a call that hangs fails the test instead of hanging it.
    fn open(&self, path: &str, links: Links) -> Result<ModuleFile, Refusal> {
        let (send, receive) = mpsc::channel();
        let root = self.fd.try_clone().unwrap();
        let path = path.as_bytes().to_vec();
        std::thread::spawn(move || {
            send.send(open_in_root(root.as_fd(), &path, LIMIT, links, None))
        });
        receive
            .recv_timeout(Duration::from_mins(1))
            .expect("open must not hang")
    }

    #[track_caller]
    fn check(&self, path: &str, expected: Result<&str, Refusal>) {
        let seen = self.open(path, Links::Follow).map(|mut found| {
            let mut text = String::new();
            found.file.read_to_string(&mut text).unwrap();
            text
        });
        assert_eq!(seen, expected.map(str::to_owned), "{path}");
    }
}

#[test]
fn regular_files_open_below_the_root() {
    let root = Root::new();
    root.write("usr/lib/x.so", "x");
    root.check("/usr/lib/x.so", Ok("x"));
    root.check("usr/lib/../lib/x.so", Ok("x"));
    root.check("/../../../usr/lib/x.so", Ok("x"));
    root.check("/usr/lib/missing.so", Err(Refusal::NotFound));
    root.check("/usr/lib/x.so\0", Err(Refusal::NotFound));
    root.check("", Err(Refusal::NotFound));
}

#[test]
fn symbolic_links_never_leave_the_root() {
    let root = Root::new();
    let host = tempfile::tempdir().unwrap();
    let secret = host.path().join("secret");
    std::fs::write(&secret, "of the host").unwrap();
    let at = |name: &str| root.dir.path().join(name);
    // Nothing has this name inside the root.
    symlink(&secret, at("absolute")).unwrap();
    root.check("/absolute", Err(Refusal::NotFound));
    symlink(
        Path::new("../../../../../../../").join(secret.strip_prefix("/").unwrap()),
        at("up"),
    )
    .unwrap();
    root.check("/up", Err(Refusal::NotFound));
    symlink(host.path(), at("directory")).unwrap();
    root.check("/directory/secret", Err(Refusal::NotFound));
    // The same link finds the process's own file where there is one.
    root.write(
        secret.strip_prefix("/").unwrap().to_str().unwrap(),
        "of the target",
    );
    root.check("/absolute", Ok("of the target"));
    root.check("/up", Ok("of the target"));
    assert_eq!(
        root.open("/absolute", Links::RefuseLast).unwrap_err(),
        Refusal::NotRegular
    );
}

#[test]
fn magic_links_are_refused() {
    let fd = rustix::fs::open("/", OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
    let file = File::open("/proc/self/exe").unwrap();
    let magic = format!("/proc/self/fd/{}", file.as_raw_fd());
    for path in [
        magic.as_str(),
        "/proc/self/exe",
        "/proc/self/root/etc/passwd",
    ] {
        let seen = open_in_root(fd.as_fd(), path.as_bytes(), u64::MAX, Links::Follow, None);
        assert_eq!(seen.unwrap_err(), Refusal::NotFound, "{path}");
    }
}

#[test]
fn other_kinds_of_files_are_refused_without_waiting() {
    let root = Root::new();
    let at = |name: &str| root.dir.path().join(name);
    rustix::fs::mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    std::fs::create_dir(at("directory")).unwrap();
    symlink("fifo", at("link-to-fifo")).unwrap();
    symlink("loop", at("loop")).unwrap();
    for name in ["/fifo", "/socket", "/directory", "/link-to-fifo", "/"] {
        root.check(name, Err(Refusal::NotRegular));
    }
    root.check("/loop", Err(Refusal::NotFound));
}

#[test]
fn devices_are_refused() {
    // The host's own device nodes: making one needs a privilege that tests may lack.
    let fd = rustix::fs::open("/dev", OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
    for name in ["null", "zero", "tty"] {
        let seen = open_in_root(fd.as_fd(), name.as_bytes(), u64::MAX, Links::Follow, None);
        assert_eq!(seen.unwrap_err(), Refusal::NotRegular, "{name}");
    }
}

#[test]
fn sparse_terabyte_is_refused_by_its_size() {
    let root = Root::new();
    let file = File::create(root.dir.path().join("huge")).unwrap();
    file.set_len(1 << 40)
        .expect("the temporary directory must allow sparse files of 1 TiB");
    root.check("/huge", Err(Refusal::TooLarge));
}

#[test]
fn a_file_replaced_after_mapping_is_refused() {
    let root = Root::new();
    let mapped = root.write("lib.so", "old");
    // The old inode stays in use, as a mapping keeps it.
    let keep = File::open(root.dir.path().join("lib.so")).unwrap();
    let fd = Arc::new(root.fd.try_clone().unwrap());
    let open = || {
        let wanted = Wanted {
            path: b"/lib.so".to_vec(),
            inode: Some(mapped),
            ..Wanted::default()
        };
        open_mapped(&fd, &fd, vec![wanted], LIMIT, None).remove(0)
    };
    assert_eq!(open().unwrap().key.inode, mapped);
    root.write("new.so", "new");
    std::fs::rename(
        root.dir.path().join("new.so"),
        root.dir.path().join("lib.so"),
    )
    .unwrap();
    assert_eq!(open().unwrap_err(), Refusal::Replaced);
    std::fs::remove_file(root.dir.path().join("lib.so")).unwrap();
    assert_eq!(open().unwrap_err(), Refusal::NotFound);
    drop(keep);
}

#[test]
fn a_changed_file_has_another_key() {
    let root = Root::new();
    root.write("lib.so", "one");
    let before = root.open("/lib.so", Links::Follow).unwrap().key;
    assert_eq!(root.open("/lib.so", Links::Follow).unwrap().key, before);
    root.write("lib.so", "four");
    assert_ne!(root.open("/lib.so", Links::Follow).unwrap().key, before);
}

/// What others serve is refused by what is known of it; nothing of it is opened.
#[test]
fn files_that_others_serve_are_refused_and_those_beside_them_are_opened() {
    let root = Root::new();
    root.write("near.so", "near");
    root.write("far.so", "far");
    let text = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 22 0:40 / /far.so rw - fuse.x x rw\n";
    let mounts = ProcessMounts::of_text(text);
    let fd = Arc::new(root.fd.try_clone().unwrap());
    let wanted = |path: &str, (major, minor)| Wanted {
        path: path.into(),
        device: Some(Device { major, minor }),
        ..Wanted::default()
    };
    let files = vec![
        wanted("/far.so", (0, 40)),
        wanted("/near.so", (8, 1)),
        wanted("/far.so", (0, 40)),
        wanted("/missing.so", (8, 1)),
    ];
    let opened = open_mapped(&fd, &fd, files, LIMIT, Some(&mounts));
    let refusals: Vec<Option<Refusal>> = opened
        .iter()
        .map(|one| one.as_ref().err().copied())
        .collect();
    let (remote, missing) = (Some(Refusal::Remote), Some(Refusal::NotFound));
    assert_eq!(refusals, [remote, None, remote, missing]);
    let by_path = |path: &[u8]| {
        let opened = open_in_root(fd.as_fd(), path, LIMIT, Links::Follow, Some(&mounts));
        opened.map(|found| found.key.size)
    };
    assert_eq!(by_path(b"/far.so"), Err(Refusal::Remote));
    assert_eq!(by_path(b"/near.so"), Ok(4));
    // A link may lead anywhere within the mount of the root.
    symlink("near.so", root.dir.path().join("link.so")).unwrap();
    assert_eq!(by_path(b"/link.so"), Ok(4));
    let apart = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 22 0:40 / /far rw - fuse.x x rw\n\
                 31 22 8:2 / /usr rw - ext4 /dev/sda2 rw\n";
    let apart = ProcessMounts::of_text(apart);
    root.write("usr/near.so", "near");
    symlink("near.so", root.dir.path().join("usr/link.so")).unwrap();
    let by_path = |path: &[u8]| {
        let opened = open_in_root(fd.as_fd(), path, LIMIT, Links::Follow, Some(&apart));
        opened.map(|found| found.key.size)
    };
    assert_eq!(by_path(b"/usr/near.so"), Ok(4));
    assert_eq!(
        by_path(b"/usr/link.so"),
        Err(Refusal::NotFound),
        "it may lead elsewhere"
    );
}
