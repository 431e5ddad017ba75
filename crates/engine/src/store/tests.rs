use std::{
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use profiler_model::{
    Address, Clock, ContentionRow, CpuHolder, Edge, EdgeCount, EdgeKey, EdgeNamespaces, EdgeTable,
    Endpoint, Frame, FrameSpace, Function, LoggedFlagged, LoggedRequests, LoggingEnvoy, ModuleKind,
    NameSource, Outcomes, ProcessKey, Profile, ProfileBuilder, ProfileProcess, ProfileThread,
    Recording, RequestSpan, RequestTable, RequestTimeline, SampleKind, SampleRow, SeenBy,
    SideMetrics, Spread, Target, Task, TaskId, TaskSpec, TaskState, ThreadState,
};
use profiler_protocols::Protocol;
use redb::{Database, StorageBackend, backends::FileBackend};

use super::{
    Append, SegmentKey, Store, StoreError, StoreHandle, Stream,
    codec::{
        CodecError, Density, MAX_RAW_BYTES, decode_edges, decode_profile, decode_requests, encode,
        encode_edges, encode_profile, encode_requests,
    },
};

#[test]
fn a_profile_survives_encoding() {
    let profile = small_profile();
    for density in [Density::Fast, Density::Dense] {
        let blob = encode_profile(&profile, density).unwrap();
        assert_eq!(decode_profile(&blob).unwrap(), profile);
    }
}

#[test]
fn requests_over_time_survive_encoding_and_may_be_missing() {
    let mut table = RequestTable {
        samples_left_out: 3,
        ..RequestTable::default()
    };
    let older = encode(&table, Stream::Requests, Density::Fast).unwrap();
    assert_eq!(decode_requests(&older).unwrap(), table);
    let span = RequestSpan {
        count: 5,
        errors: 1,
        ..RequestSpan::default()
    };
    table.timeline = RequestTimeline {
        width_ns: 7,
        all: vec![span.clone()],
        edges: vec![(2, vec![span])],
    };
    let before_counts = encode(&(&table, &table.timeline), Stream::Requests, Density::Fast);
    assert_eq!(decode_requests(&before_counts.unwrap()).unwrap(), table);
    table.counted = vec![EdgeCount {
        edge: 1,
        protocol: Protocol::Http1,
        seen_by: SeenBy::Server,
        outcomes: Outcomes::default(),
        latency_ns: Spread::default(),
        is_exact: true,
    }];
    let blob = encode_requests(&table, Density::Dense).unwrap();
    assert_eq!(decode_requests(&blob).unwrap(), table);
    // Zeros are one that has reported nothing.
    let (envoy, _rest): (LoggingEnvoy, _) = postcard::take_from_bytes(&[0; 64]).unwrap();
    table.logged = Some(LoggedRequests {
        edges: vec![0, 3],
        seen_twice: 9,
        without_entry: 2,
        envoys: vec![envoy.clone(), envoy],
        ..LoggedRequests::default()
    });
    let before_places = encode(
        &(
            &table,
            &table.timeline,
            &table.counted,
            &table.logged.as_ref().unwrap(),
        ),
        Stream::Requests,
        Density::Fast,
    );
    assert_eq!(decode_requests(&before_places.unwrap()).unwrap(), table);
    table.logged.as_mut().unwrap().envoys[1].flagged = vec![LoggedFlagged {
        flag: "UF".to_owned(),
        cluster: "web".to_owned(),
        address: "10.0.0.1:80".to_owned(),
        count: 5,
    }];
    let blob = encode_requests(&table, Density::Dense).unwrap();
    assert_eq!(decode_requests(&blob).unwrap(), table);
    let logged = table.logged.as_ref().unwrap();
    let places: [&[LoggedFlagged]; 0] = [];
    let more = encode(
        &(
            &table,
            &table.timeline,
            &table.counted,
            logged,
            places.as_slice(),
            7_u8,
        ),
        Stream::Requests,
        Density::Fast,
    )
    .unwrap();
    let error = decode_requests(&more).unwrap_err();
    assert!(matches!(error, CodecError::Trailing(1)), "{error}");
    // A number that goes on behind the end.
    let damaged = encode(&(&table, 200_u8), Stream::Requests, Density::Fast).unwrap();
    let kept = decode_requests(&damaged).unwrap();
    assert_eq!(kept.timeline, RequestTimeline::default());
    assert_eq!(kept.window, table.window);
}

#[test]
fn who_had_the_cpu_survives_encoding_and_may_be_missing() {
    let mut profile = small_profile();
    let bare = encode(&profile, Stream::Profile, Density::Fast).unwrap();
    assert_eq!(decode_profile(&bare).unwrap(), profile);
    profile.holders = vec![
        CpuHolder::Idle,
        CpuHolder::Process {
            process: profile.processes[0].clone(),
            container_name: 0,
        },
    ];
    profile.contention = vec![ContentionRow {
        thread: 0,
        holder: 1,
        bucket: 3,
        ns: 17,
    }];
    let blob = encode_profile(&profile, Density::Dense).unwrap();
    assert_eq!(decode_profile(&blob).unwrap(), profile);
    let both = (&profile.holders, &profile.contention);
    let more = encode(&(&profile, both, 7_u8), Stream::Profile, Density::Fast).unwrap();
    let error = decode_profile(&more).unwrap_err();
    assert!(matches!(error, CodecError::Trailing(1)), "{error}");
    profile.contention[0].holder = 2;
    let wrong = encode_profile(&profile, Density::Fast).unwrap();
    assert!(decode_profile(&wrong).is_err());
}

#[test]
fn a_blob_of_another_version_is_refused() {
    let mut blob = encode_profile(&small_profile(), Density::Fast).unwrap();
    for version in [0, blob[4] - 1, blob[4] + 1] {
        blob[4] = version;
        let error = decode_profile(&blob).unwrap_err();
        assert!(matches!(error, CodecError::Version(found) if found == version));
    }
}

#[test]
fn a_file_of_another_schema_is_refused_and_stays_as_it_is() {
    const META: redb::TableDefinition<'static, &str, u64> = redb::TableDefinition::new("meta");
    for (schema, remedy) in [(1, "move it away"), (99, "start the newer version")] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("store.redb");
        let transaction = Database::create(&path).unwrap().begin_write().unwrap();
        let mut meta = transaction.open_table(META).unwrap();
        meta.insert("schema", &schema).unwrap();
        drop(meta);
        transaction.commit().unwrap();
        let error = Store::open(directory.path()).unwrap_err().to_string();
        assert!(error.contains(remedy), "{error}");
        assert!(path.exists());
    }
}

#[test]
fn edges_keep_the_namespaces_and_round_trips_of_their_ends() {
    let end = |pid| Endpoint {
        pid: Some(pid),
        start_ticks: Some(1),
        comm: "app".to_owned(),
        container: None,
        address: Address::Ip([127, 0, 0, 1].into()),
    };
    let edge = |port, namespaces| Edge {
        key: EdgeKey {
            client: end(1),
            server: end(2),
            server_port: Some(port),
            original_destination: None,
        },
        namespaces,
        client_port: None,
        client_name: None,
        server_name: None,
        client: Some(SideMetrics {
            min_rtt_us: Some(u64::from(port)),
            ..SideMetrics::default()
        }),
        server: None,
    };
    let known = EdgeNamespaces {
        client: Some(4_026_531_840),
        server: None,
    };
    let table = EdgeTable {
        edges: vec![edge(80, known), edge(81, EdgeNamespaces::default())],
        ..EdgeTable::default()
    };
    let bytes = encode_edges(&table, Density::Fast).unwrap();
    assert_eq!(decode_edges(&bytes).unwrap(), table);
}

#[test]
fn every_truncation_is_refused() {
    let blob = encode_profile(&small_profile(), Density::Fast).unwrap();
    for length in 0..blob.len() {
        assert!(
            decode_profile(&blob[..length]).is_err(),
            "{length} of {} bytes",
            blob.len()
        );
    }
}

#[test]
fn no_flipped_bit_changes_the_result_unseen() {
    let profile = small_profile();
    let blob = encode_profile(&profile, Density::Fast).unwrap();
    for position in 0..blob.len() * 8 {
        let mut damaged = blob.clone();
        damaged[position / 8] ^= 1 << (position % 8);
        // Two header bytes are unused; everything else is refused.
        match decode_profile(&damaged) {
            Ok(decoded) => assert_eq!(decoded, profile, "bit {position}"),
            Err(_) => assert!(!(6 * 8..8 * 8).contains(&position), "bit {position}"),
        }
    }
}

#[test]
fn a_header_that_lies_about_the_length_is_refused() {
    let blob = encode_profile(&small_profile(), Density::Fast).unwrap();
    let honest = u32::from_le_bytes(blob[8..12].try_into().unwrap());
    for claimed in [0, 1, honest - 1, honest + 1, 60 << 20] {
        let mut lying = blob.clone();
        lying[8..12].copy_from_slice(&claimed.to_le_bytes());
        let error = decode_profile(&lying).unwrap_err();
        assert!(
            matches!(error, CodecError::Length { .. }),
            "{claimed}: {error}"
        );
    }
    let mut huge = blob;
    huge[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(
        decode_profile(&huge),
        Err(CodecError::TooLarge(_))
    ));
}

#[test]
fn a_value_beyond_the_limit_is_not_encoded() {
    let bytes = vec![7_u8; MAX_RAW_BYTES + 1];
    let result = encode(&bytes, Stream::Profile, Density::Fast);
    assert!(matches!(result, Err(CodecError::TooLarge(_))));
}

#[test]
fn ids_that_point_nowhere_are_refused() {
    let mut profile = small_profile();
    profile.samples[0].stack = 99;
    let blob = encode_profile(&profile, Density::Fast).unwrap();
    assert!(matches!(
        decode_profile(&blob),
        Err(CodecError::Inconsistent(_))
    ));
}

#[test]
fn blobs_are_there_before_and_after_the_commit_and_after_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(directory.path()).unwrap();
    assert!(store.append(append(1, 0, b"first")));
    assert!(store.append(append(1, 0, b"second")));
    assert_eq!(contents(&mut store, key(1, 0)), ["first", "second"]);
    assert_eq!(store.waiting_blobs(TaskId(1)), 2);
    store.commit().unwrap();
    assert_eq!(store.waiting_blobs(TaskId(1)), 0);
    assert!(store.append(append(1, 0, b"third")));
    assert_eq!(
        contents(&mut store, key(1, 0)),
        ["first", "second", "third"]
    );
    store.close().unwrap();

    let mut store = Store::open(directory.path()).unwrap();
    assert_eq!(
        contents(&mut store, key(1, 0)),
        ["first", "second", "third"]
    );
    let segments = store.segments(TaskId(1), Stream::Profile);
    assert_eq!(segments.len(), 1);
    assert_eq!(segments[0].1.samples, 30);
    assert_eq!(segments[0].1.blobs, 3);
}

#[test]
fn replacing_keeps_the_samples_and_leaves_one_blob() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(directory.path()).unwrap();
    assert!(store.append(append(1, 0, b"a")));
    assert!(store.append(append(1, 0, b"b")));
    // A list of blobs that is out of date changes nothing.
    store.replace(key(1, 0), &[0], b"wrong").unwrap();
    assert_eq!(contents(&mut store, key(1, 0)), ["a", "b"]);
    store.replace(key(1, 0), &[0, 1], b"ab").unwrap();
    assert!(store.append(append(1, 0, b"c")));
    store.commit().unwrap();
    drop(store);
    let mut store = Store::open(directory.path()).unwrap();
    assert_eq!(contents(&mut store, key(1, 0)), ["ab", "c"]);
    assert_eq!(store.segments(TaskId(1), Stream::Profile)[0].1.samples, 30);
}

#[test]
fn a_blob_that_is_put_takes_the_place_of_all_before_it_whatever_the_disk_does() {
    let directory = tempfile::tempdir().unwrap();
    let refuse = Arc::new(AtomicBool::new(false));
    let mut store = failing_store(directory.path(), &refuse);
    store.put(append(1, 0, b"a"));
    store.commit().unwrap();
    store.put(append(1, 0, b"b"));
    assert_eq!(contents(&mut store, key(1, 0)), ["b"]);
    refuse.store(true, Ordering::Relaxed);
    assert!(store.commit().is_err());
    store.put(append(1, 0, b"c"));
    assert!(store.has_waiting());
    assert_eq!(store.waiting_blobs(TaskId(1)), 1);
    refuse.store(false, Ordering::Relaxed);
    let deadline = Instant::now() + Duration::from_mins(1);
    while store.commit().is_err() {
        assert!(Instant::now() < deadline, "the store never works again");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(contents(&mut store, key(1, 0)), ["c"]);
    drop(store);
    let mut store = Store::open(directory.path()).unwrap();
    assert_eq!(contents(&mut store, key(1, 0)), ["c"]);
    let (_key, segment) = store.segments(TaskId(1), Stream::Profile)[0];
    assert_eq!((segment.blobs, segment.samples), (1, 10));
}

#[test]
fn removing_touches_only_what_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(directory.path()).unwrap();
    for (id, segment) in [(1, 0), (2, 0), (2, 1), (3, 0)] {
        store.put_task(&task(id)).unwrap();
        assert!(store.append(append(id, segment, b"x")));
    }
    store.commit().unwrap();
    store.remove_segments(&[key(2, 0)]).unwrap();
    store.remove_task(TaskId(3)).unwrap();
    drop(store);
    let mut store = Store::open(directory.path()).unwrap();
    let left: Vec<SegmentKey> = store
        .all_segments()
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    assert_eq!(left, [key(1, 0), key(2, 1)]);
    assert!(contents(&mut store, key(2, 0)).is_empty());
    let (tasks, damaged) = store.tasks().unwrap();
    assert_eq!(
        tasks.iter().map(|task| task.id.0).collect::<Vec<_>>(),
        [1, 2]
    );
    assert_eq!(damaged, 0);
}

#[test]
fn task_numbers_are_never_given_out_twice() {
    let directory = tempfile::tempdir().unwrap();
    let mut seen = Vec::new();
    for _ in 0..3 {
        let mut store = Store::open(directory.path()).unwrap();
        let id = store.new_task_id();
        store.put_task(&task(id.0)).unwrap();
        store.commit().unwrap();
        store.remove_task(id).unwrap();
        seen.push(id.0);
    }
    assert_eq!(seen, [1, 2, 3]);
}

#[test]
fn the_directory_is_private_and_has_one_owner() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("a/data");
    let store = Store::open(&directory).unwrap();
    let mode = std::fs::metadata(&directory).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let error = Store::open(&directory).unwrap_err();
    assert!(matches!(error, StoreError::InUse { .. }));
    let expected = format!(
        "data directory {} is in use by another agent (pid {}): stop that one, or choose another with --data-dir",
        directory.display(),
        std::process::id()
    );
    assert_eq!(error.to_string(), expected);
    drop(store);
    Store::open(&directory).unwrap();
}

#[test]
fn a_file_that_is_no_store_is_refused_with_a_way_out() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("store.redb"), vec![0x5a; 100_000]).unwrap();
    let error = Store::open(directory.path()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("move it away to start with an empty store"),
        "{error}"
    );
}

#[test]
fn a_disk_that_refuses_writes_loses_nothing_that_fits_in_memory() {
    let directory = tempfile::tempdir().unwrap();
    let refuse = Arc::new(AtomicBool::new(false));
    let mut store = failing_store(directory.path(), &refuse);
    assert!(store.append(append(1, 0, b"before")));
    store.commit().unwrap();

    refuse.store(true, Ordering::Relaxed);
    assert!(store.append(append(1, 0, b"during")));
    let error = store.commit().unwrap_err();
    assert!(
        error.to_string().contains("No space left on device"),
        "{error}"
    );
    assert_eq!(store.waiting_blobs(TaskId(1)), 1);
    // The text stays the same until the file can be opened again.
    assert_eq!(store.commit().unwrap_err().to_string(), error.to_string());

    refuse.store(false, Ordering::Relaxed);
    store.reset();
    store.commit().unwrap();
    assert_eq!(contents(&mut store, key(1, 0)), ["before", "during"]);
    drop(store);
    let mut store = Store::open(directory.path()).unwrap();
    assert_eq!(contents(&mut store, key(1, 0)), ["before", "during"]);
}

#[test]
fn what_was_committed_is_read_while_the_disk_refuses() {
    let directory = tempfile::tempdir().unwrap();
    let refuse = Arc::new(AtomicBool::new(false));
    let mut store = failing_store(directory.path(), &refuse);
    assert!(store.append(append(1, 0, b"before")));
    store.commit().unwrap();
    assert!(!store.refuses());
    refuse.store(true, Ordering::Relaxed);
    for round in 0..3 {
        assert!(store.append(append(1, 0, b"during")));
        assert!(store.commit().is_err());
        assert!(store.refuses(), "round {round}");
        assert_eq!(contents(&mut store, key(1, 0))[0], "before");
        assert_eq!(store.tasks().unwrap().1, 0);
    }
    assert!(store.try_again().is_err());
    refuse.store(false, Ordering::Relaxed);
    let deadline = Instant::now() + Duration::from_mins(1);
    while store.try_again().is_err() {
        assert!(Instant::now() < deadline, "the store never works again");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!store.refuses());
    let all = ["before", "during", "during", "during"];
    assert_eq!(contents(&mut store, key(1, 0)), all);
    // Nothing waits, and it is still known whether the disk takes anything.
    refuse.store(true, Ordering::Relaxed);
    assert!(store.try_again().is_err());
    assert!(store.refuses());
    assert_eq!(contents(&mut store, key(1, 0)), all);
}

#[test]
fn memory_for_what_waits_is_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let refuse = Arc::new(AtomicBool::new(false));
    let mut store = failing_store(directory.path(), &refuse);
    refuse.store(true, Ordering::Relaxed);
    let megabyte = vec![0; 1 << 20];
    let kept = (0..64)
        .filter(|_| store.append(append(1, 0, &megabyte)))
        .count();
    assert_eq!(kept, 32);
}

#[test]
fn the_file_stays_bounded_while_segments_come_and_go() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(directory.path()).unwrap();
    let mut noise = 1_u64;
    let mut largest = 0;
    for segment in 0..300_u32 {
        for _ in 0..4 {
            let bytes: Vec<u8> = (0..12_000)
                .map(|_| next(&mut noise).to_le_bytes()[3])
                .collect();
            assert!(store.append(append(1, segment, &bytes)));
            store.commit().unwrap();
        }
        let merged: Vec<u8> = (0..40_000)
            .map(|_| next(&mut noise).to_le_bytes()[3])
            .collect();
        store
            .replace(key(1, segment), &[0, 1, 2, 3], &merged)
            .unwrap();
        if segment >= 20 {
            store.remove_segments(&[key(1, segment - 20)]).unwrap();
        }
        largest = largest.max(store.disk_bytes());
    }
    // 20 segments of 64 kB are alive; 300 went through.
    assert!(store.live_bytes() <= 21 * 65_536);
    assert!(largest < 6 << 20, "the file grew to {largest} bytes");
}

#[test]
fn compaction_gives_room_back_and_keeps_the_rest() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(directory.path()).unwrap();
    let block = vec![1; 900_000];
    for segment in 0..40 {
        assert!(store.append(append(1, segment, &block)));
        store.commit().unwrap();
    }
    assert!(!store.compact_if_sparse().unwrap());
    let gone: Vec<SegmentKey> = (0..39).map(|segment| key(1, segment)).collect();
    store.remove_segments(&gone).unwrap();
    let before = store.disk_bytes();
    assert!(
        before > 30 << 20,
        "free pages went away by themselves: {before}"
    );
    assert!(store.compact_if_sparse().unwrap());
    assert!(
        store.disk_bytes() < 8 << 20,
        "{before} -> {}",
        store.disk_bytes()
    );
    assert_eq!(store.blobs(key(1, 39)).unwrap()[0].bytes, block);
}

#[test]
fn a_panic_in_the_store_is_contained() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(directory.path()).unwrap();
    assert!(store.append(append(1, 0, b"kept")));
    let (handle, owner) = StoreHandle::spawn(store).unwrap();
    let result = handle.run_blocking(|_| -> () { panic!("damaged page") });
    assert!(matches!(result, Err(StoreError::Panicked)));
    let blobs = handle
        .run_blocking(|store| store.blobs(key(1, 0)))
        .unwrap()
        .unwrap();
    assert_eq!(blobs[0].bytes, b"kept");
    drop(owner);
    assert!(matches!(
        handle.run_blocking(|_| ()),
        Err(StoreError::Closed)
    ));
    Store::open(directory.path()).unwrap();
}

/// A file whose writes can be made to fail as on a full disk.
#[derive(Debug)]
struct RefusingFile {
    file: FileBackend,
    refuse: Arc<AtomicBool>,
}

impl RefusingFile {
    fn room(&self) -> std::io::Result<()> {
        if self.refuse.load(Ordering::Relaxed) {
            return Err(std::io::Error::from_raw_os_error(libc::ENOSPC));
        }
        Ok(())
    }
}

impl StorageBackend for RefusingFile {
    fn len(&self) -> std::io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, length: u64) -> std::io::Result<()> {
        self.room()?;
        self.file.set_len(length)
    }

    fn sync_data(&self) -> std::io::Result<()> {
        self.room()?;
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        self.room()?;
        self.file.write(offset, data)
    }
}

pub(crate) fn failing_store(directory: &Path, refuse: &Arc<AtomicBool>) -> Store {
    let refuse = Arc::clone(refuse);
    Store::open_with(
        directory,
        Box::new(move |path| {
            let file = std::fs::OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)
                .unwrap();
            let file = FileBackend::new(file)?;
            Database::builder().create_with_backend(RefusingFile {
                file,
                refuse: Arc::clone(&refuse),
            })
        }),
    )
    .unwrap()
}

fn key(task: u64, segment: u32) -> SegmentKey {
    SegmentKey {
        task: TaskId(task),
        stream: Stream::Profile,
        segment,
    }
}

fn append(task: u64, segment: u32, bytes: &[u8]) -> Append {
    Append {
        key: key(task, segment),
        bytes: bytes.to_vec(),
        from_ns: 0,
        to_ns: 1,
        end_unix_ns: 1,
        samples: 10,
    }
}

fn contents(store: &mut Store, key: SegmentKey) -> Vec<String> {
    let blobs = store.blobs(key).unwrap();
    blobs
        .into_iter()
        .map(|blob| String::from_utf8(blob.bytes).unwrap())
        .collect()
}

fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn task(id: u64) -> Task {
    let spec = TaskSpec {
        target: Target::All,
        duration_s: Some(10),
        recording: Recording::Samples(SampleKind::OnCpu.into()),
    };
    Task {
        state: TaskState::Finished,
        ..Task::queued(TaskId(id), spec, 0)
    }
}

fn small_profile() -> Profile {
    let mut builder = ProfileBuilder::new(1_000, 100_000_000, Clock::CpuClock);
    let module = builder.module("/usr/bin/envoy", &[1, 2, 3], ModuleKind::Elf);
    let name = builder.string("Envoy::Http::ConnectionManagerImpl::onData");
    let frame = builder.frame(Frame {
        space: FrameSpace::User,
        module,
        offset: 0x1234,
        functions: vec![Function {
            name,
            file: 0,
            line: 0,
        }],
        source: NameSource::ElfSymbol,
    });
    let stack = builder.stack(vec![frame]);
    let comm = builder.string("envoy");
    let process = builder.process(ProfileProcess {
        key: ProcessKey {
            pid: 7,
            start_ticks: 70,
        },
        comm,
        exe: 0,
        container: 0,
    });
    let thread = builder.thread(ProfileThread {
        process,
        tid: 8,
        name: comm,
    });
    for bucket in 0..20 {
        builder.sample(SampleRow {
            thread,
            stack,
            cpu: 1,
            bucket,
            state: ThreadState::OnCpu,
            waker: None,
            count: 3,
            total_ns: 30,
        });
    }
    builder.cover(0, 2_000_000_000);
    builder.finish()
}
