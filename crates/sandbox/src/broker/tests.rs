//! Tests of the threads without capabilities.

use std::{os::fd::OwnedFd, sync::Arc};

use rustix::thread::{CapabilitySet, capabilities};

use std::{fs::File, io::Read as _};

use super::*;

/// Answers with what the thread that performs it holds.
struct Held;

impl Operation for Held {
    type Answer = CapabilitySet;

    fn perform(self) -> Self::Answer {
        held()
    }
}

/// Fails.
struct Broken;

impl Operation for Broken {
    type Answer = ();

    fn perform(self) {
        panic!("it is broken");
    }
}

fn held() -> CapabilitySet {
    capabilities(None).unwrap().permitted
}

#[test]
fn work_has_no_capability_and_its_operations_have_those_of_who_started_it() {
    let before = held();
    assert!(!before.is_empty(), "this test is run as root");
    let (own, asked) = apart("test", || (held(), perform(Held).unwrap())).unwrap();
    assert_eq!((own, asked), (CapabilitySet::empty(), before));
    assert_eq!(held(), before);
    assert_eq!(perform(Held).unwrap(), before);
}

#[test]
fn what_such_a_thread_starts_uses_the_same_partner() {
    let before = held();
    let (tell, told) = sync_channel(2);
    let first = start("first", move || {
        let again = tell.clone();
        tell.send((held(), perform(Held).unwrap())).unwrap();
        let second = start("second", move || {
            again.send((held(), perform(Held).unwrap())).unwrap();
        });
        second.unwrap().join().unwrap();
    });
    first.unwrap().join().unwrap();
    let all: Vec<_> = told.iter().collect();
    assert_eq!(all, vec![(CapabilitySet::empty(), before); 2]);
}

#[test]
fn a_thread_that_cannot_give_up_its_capabilities_does_not_work() {
    let refused = || Err::<(), _>(io::Error::other("not allowed"));
    let started = start_after("test", crate::confine::Reach::Given, refused, |()| {
        panic!("it works")
    });
    assert_eq!(started.unwrap_err().to_string(), "not allowed");
}

#[test]
fn an_operation_that_fails_is_an_error_and_the_next_one_works() {
    let (failed, next) = apart("test", || (perform(Broken), perform(Held))).unwrap();
    assert!(failed.unwrap_err().to_string().contains("failed"));
    assert!(!next.unwrap().is_empty());
}

#[test]
fn without_its_partner_a_thread_gets_errors_and_does_not_wait() {
    let answer = apart("test", || {
        let (asked, works) = sync_channel(1);
        OPENER.set(Some(asked));
        drop(works);
        perform(Held)
    });
    assert!(
        answer
            .unwrap()
            .unwrap_err()
            .to_string()
            .contains("has ended")
    );
}

#[test]
fn a_helper_does_one_piece_of_work_after_the_other_without_capabilities() {
    let before = held();
    let helper = Helper::start("test").unwrap();
    let first = helper.run(|| (held(), perform(Held).unwrap())).unwrap();
    assert_eq!(first, (CapabilitySet::empty(), before));
    assert!(helper.run(|| panic!("it is broken")).is_err());
    assert_eq!(helper.run(|| 7).unwrap(), 7);
}

#[test]
fn a_panic_of_the_work_is_an_error() {
    let error = apart("test", || panic!("it is broken")).unwrap_err();
    assert!(error.to_string().contains("panicked"), "{error}");
}

/// A thread with fewer capabilities than a process may not look into it, regardless of its user.
#[test]
fn what_only_capabilities_may_see_is_opened_read_and_listed() {
    let mut child = std::process::Command::new("sleep")
        .arg("60")
        .spawn()
        .unwrap();
    let process = format!("/proc/{}", child.id());
    let maps = format!("{process}/maps");
    // Its mappings stay what they are when it sleeps.
    let sleeps = || {
        let status = std::fs::read_to_string(format!("{process}/status")).unwrap();
        status.starts_with("Name:\tsleep\n") && status.contains("State:\tS")
    };
    while !sleeps() {
        thread::yield_now();
    }
    let direct = std::fs::read(&maps).unwrap();
    let seen = apart("test", || {
        assert!(File::open(&maps).is_err());
        let below: Arc<OwnedFd> = open_path(OwnPath::at(&process)).unwrap().into();
        assert_eq!(
            read(OwnPath::below(&below, "maps"), 1 << 20).unwrap(),
            direct
        );
        assert_eq!(
            read(OwnPath::below(&below, "maps"), 7).unwrap(),
            &direct[..7]
        );
        let mut text = Vec::new();
        let mut opened = open(OwnPath::below(&below, "maps")).unwrap();
        opened.read_to_end(&mut text).unwrap();
        assert_eq!(text, direct);
        assert!(std::fs::read_link(format!("{process}/exe")).is_err());
        assert!(
            read_link(OwnPath::below(&below, "exe"))
                .unwrap()
                .ends_with(b"sleep")
        );
        assert!(
            !list(OwnPath::below(&below, "fd"), 1 << 20)
                .unwrap()
                .is_empty()
        );
        assert!(open(OwnPath::below(&below, "no such file")).is_err());
        let own = std::process::id();
        assert_eq!(living(vec![own, u32::MAX]).unwrap(), [own]);
    });
    child.kill().unwrap();
    child.wait().unwrap();
    seen.unwrap();
}

#[test]
fn own_files_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    let notes = inner.join("notes");
    apart("test", || {
        append(&notes, "one\n".into()).unwrap();
        append(&notes, "two\n".into()).unwrap();
        let found = list(OwnPath::at(&inner), 10).unwrap();
        assert_eq!((found.len(), found[0].is_directory), (1, false));
        let text = read(OwnPath::at(&notes), 100).unwrap();
        assert_eq!(text, b"one\ntwo\n");
        replace(&notes, "three\n".into()).unwrap();
    })
    .unwrap();
    assert_eq!(std::fs::read(notes).unwrap(), b"three\n");
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(inner).unwrap());
    assert_eq!(mode & 0o777, 0o700);
}
