use super::*;

/// Runs on a thread of its own, which stays confined.
fn apart(work: impl FnOnce() + Send + 'static) {
    let work = || {
        rustix::thread::set_no_new_privs(true).unwrap();
        work();
    };
    std::thread::spawn(work).join().unwrap();
}

#[test]
fn a_reader_opens_nothing_changes_nothing_and_connects_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, "text").unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let given = std::fs::File::open(&path).unwrap();
    apart(move || {
        confine_to(&Reach::Given).unwrap();
        let mut text = String::new();
        std::io::Read::read_to_string(&mut &given, &mut text).unwrap();
        assert_eq!(text, "text");
        for path in ["/etc/shadow", "/etc/hosts", "/proc/self/status"] {
            assert!(std::fs::File::open(path).is_err(), "{path}");
        }
        assert!(std::fs::File::open(&path).is_err());
        assert!(std::fs::write(path.with_file_name("new"), "").is_err());
        assert!(std::fs::remove_file(&path).is_err());
        assert!(std::net::TcpStream::connect(address).is_err());
        // What it needs all the same.
        rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        std::thread::spawn(|| ()).join().unwrap();
    });
}

#[test]
fn who_asks_servers_reads_what_finds_them_and_writes_one_folder_at_most() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().to_owned();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let more = own.join("account");
    std::fs::write(&more, "text").unwrap();
    let (first, second) = (own.clone(), own);
    apart(move || {
        confine_to(&Reach::Servers(vec![more.clone()])).unwrap();
        std::net::TcpStream::connect(address).unwrap();
        std::fs::read_to_string("/etc/hosts").unwrap();
        std::fs::read_to_string(&more).unwrap();
        assert!(std::fs::File::open("/etc/passwd").is_err());
        assert!(std::fs::write(&more, "").is_err());
        assert!(std::fs::write(first.join("new"), "").is_err());
    });
    let address = listener.local_addr().unwrap();
    apart(move || {
        confine_to(&Reach::Folder(second.clone())).unwrap();
        std::net::TcpStream::connect(address).unwrap();
        std::fs::write(second.join("new"), "").unwrap();
        std::fs::rename(second.join("new"), second.join("kept")).unwrap();
        std::fs::remove_file(second.join("kept")).unwrap();
        assert!(std::fs::write("/tmp/profiler-agent-elsewhere", "").is_err());
        assert!(std::fs::File::open("/etc/passwd").is_err());
    });
    apart(move || {
        confine_to(&Reach::Network).unwrap();
        std::net::TcpStream::connect(address).unwrap();
        assert!(std::fs::File::open("/etc/hosts").is_err());
    });
}

#[test]
fn a_confined_thread_starts_threads_and_no_programs() {
    std::thread::spawn(|| {
        rustix::thread::set_no_new_privs(true).unwrap();
        set_filters().unwrap();
        assert!(std::process::Command::new("/bin/true").spawn().is_err());
        // SAFETY: the call takes a number.
        let unshared = unsafe { libc::syscall(libc::SYS_unshare, 0) };
        assert_eq!(unshared, -1);
        let error = std::io::Error::last_os_error();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
        std::thread::spawn(|| ()).join().unwrap();
        confine_http().unwrap();
        assert!(std::fs::File::open("/proc/self/status").is_err());
        assert!(std::net::TcpListener::bind("127.0.0.1:0").is_err());
        std::thread::spawn(|| ()).join().unwrap();
    })
    .join()
    .unwrap();
}
