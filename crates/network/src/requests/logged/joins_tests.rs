use super::*;

const US: u64 = 1_000;
const PID: u32 = 7;

fn client(port: u16) -> SocketAddr {
    ([10, 0, 0, 1], port).into()
}

/// A request at the socket of connection 1.
fn at_socket(seen_by: SeenBy, [begin_ns, end_ns]: [u64; 2], request_id: u64) -> RequestAtSocket {
    RequestAtSocket {
        pid: PID,
        tid: Some(PID + 1),
        seen_by,
        client: client(1),
        begin_ns,
        end_ns,
        first_byte_ns: None,
        ready_ns: None,
        answer_ready_ns: None,
        request_id: (request_id > 0).then_some(request_id),
        is_multiplexed: false,
    }
}

fn logged(seen_by: SeenBy, [begin_ns, end_ns]: [u64; 2], request_id: u64) -> LoggedEnd {
    LoggedEnd {
        place: Place::new(PID, seen_by, client(1)),
        begin_ns,
        end_ns,
        request_id: (request_id > 0).then_some(request_id),
    }
}

/// A request that has this end alone.
fn request(end: LoggedEnd) -> LoggedEnds {
    LoggedEnds {
        envoy: EnvoyId(0),
        timing: None,
        ends: [Some((end, Joined::default())), None],
    }
}

/// What becomes of ends in the order in which they are settled, when all that will come is there.
fn joined(seen: &[RequestAtSocket], ends: &[LoggedEnd]) -> Vec<Joined> {
    let mut joins = Joins::default();
    joins.see(seen.to_vec(), 0, |_| true, 0);
    for end in ends {
        assert!(joins.wait(&request(*end), 0).is_none());
    }
    let settled = joins.settle(PATIENCE, false);
    assert_eq!(settled.len(), ends.len());
    settled.iter().map(first).collect()
}

fn first(request: &LoggedEnds) -> Joined {
    let (_, joined) = request.ends[0].unwrap();
    joined
}

/// When those began at their sockets that were joined.
fn begins(joined: &[Joined]) -> Vec<Option<u64>> {
    let begin = |joined: &Joined| Some(joined.at_socket?.begin_ns);
    joined.iter().map(begin).collect()
}

#[test]
fn one_after_the_other_is_told_by_the_times() {
    // Each takes 100 us, 30 us after the one before.
    let times = |number: u64| [number * 130 * US, number * 130 * US + 100 * US];
    let within = |number: u64| {
        let [begin, end] = times(number);
        [begin + 20 * US, end - 15 * US]
    };
    let numbers = || 100..200;
    let server: Vec<_> = numbers()
        .map(|number| at_socket(SeenBy::Server, times(number), 0))
        .collect();
    let entries: Vec<_> = numbers()
        .map(|number| logged(SeenBy::Server, within(number), number))
        .collect();
    let expected: Vec<_> = numbers().map(|number| Some(times(number)[0])).collect();
    let found = joined(&server, &entries);
    assert_eq!(begins(&found), expected);
    assert!(found.iter().all(|one| !one.is_confirmed));
    // Towards the upstream the entry encloses what the socket has, and both have the id.
    let client: Vec<_> = numbers()
        .map(|number| at_socket(SeenBy::Client, within(number), number))
        .collect();
    let entries: Vec<_> = numbers()
        .map(|number| logged(SeenBy::Client, times(number), number))
        .collect();
    let expected: Vec<_> = numbers().map(|number| Some(within(number)[0])).collect();
    let found = joined(&client, &entries);
    assert_eq!(begins(&found), expected);
    assert!(
        found
            .iter()
            .all(|one| one.is_confirmed && !one.is_contradicted)
    );
    // Those whose own request was not seen are not given another one.
    let seen = &client[50..];
    let found = joined(seen, &entries);
    assert!(begins(&found[..50]).iter().all(Option::is_none));
    assert_eq!(begins(&found[50..]), expected[50..]);
}

#[test]
fn another_id_contradicts_the_times() {
    let (times, later) = ([1_000 * US, 1_200 * US], [2_000 * US, 2_200 * US]);
    let seen = [
        at_socket(SeenBy::Client, times, 1),
        at_socket(SeenBy::Client, later, 2),
    ];
    let found = joined(&seen, &[logged(SeenBy::Client, times, 3)]);
    assert!(found[0].at_socket.is_none() && found[0].is_contradicted);
    // Not even the same id stands against the times.
    let found = joined(&seen, &[logged(SeenBy::Client, times, 2)]);
    assert!(found[0].at_socket.is_none() && found[0].is_contradicted);
    // Envoy may replace what the client gave.
    let seen = [at_socket(SeenBy::Server, times, 1)];
    let found = joined(&seen, &[logged(SeenBy::Server, times, 3)]);
    assert_eq!(begins(&found), [Some(times[0])]);
    assert!(!found[0].is_confirmed && !found[0].is_contradicted);
}

#[test]
fn slow_clients_are_waited_for() {
    let entry = logged(SeenBy::Server, [1_000 * US, 1_200 * US], 0);
    let seen = at_socket(SeenBy::Server, [990 * US, 1_000_000 * US], 0);
    assert_eq!(begins(&joined(&[seen], &[entry])), [Some(990 * US)]);
}

#[test]
fn where_requests_share_a_connection_only_the_id_decides() {
    let times = [[1_000 * US, 1_400 * US], [1_100 * US, 1_300 * US]];
    let seen = [0, 1].map(|index| RequestAtSocket {
        is_multiplexed: true,
        ..at_socket(SeenBy::Client, times[index], index as u64 + 1)
    });
    let entries = [2, 1].map(|id| logged(SeenBy::Client, times[0], id));
    let found = joined(&seen, &entries);
    assert_eq!(begins(&found), [Some(times[1][0]), Some(times[0][0])]);
    // Without an id nothing is joined, well as the times may fit.
    let found = joined(&seen[..1], &[logged(SeenBy::Client, times[0], 0)]);
    assert_eq!(begins(&found), [None]);
    // Nor where two fit.
    let seen = times.map(|times| at_socket(SeenBy::Server, times, 0));
    let end = logged(SeenBy::Server, [1_150 * US, 1_250 * US], 0);
    assert_eq!(begins(&joined(&seen, &[end])), [None]);
    let seen = [1, 2].map(|id| RequestAtSocket {
        request_id: Some(id),
        ..seen[0]
    });
    let end = logged(SeenBy::Server, [1_150 * US, 1_250 * US], 2);
    let found = joined(&seen, &[end]);
    assert_eq!(found[0].at_socket, Some(seen[1]));
}

#[test]
fn what_comes_late_is_waited_for_and_what_is_old_is_forgotten() {
    let times = [1_000 * US, 1_200 * US];
    let mut joins = Joins::default();
    joins.wait(&request(logged(SeenBy::Server, times, 0)), 0);
    for reports in 0..PATIENCE {
        assert!(joins.settle(reports, false).is_empty());
    }
    // By another clock, which is 1 s behind.
    let behind = times.map(|at| at + 1_000_000 * US);
    let seen = vec![at_socket(SeenBy::Server, behind, 0)];
    joins.see(seen, -1_000_000_000, |pid| pid == PID, 3);
    let settled = joins.settle(PATIENCE, false);
    // As its own clock has it.
    assert_eq!(first(&settled[0]).at_socket.unwrap().begin_ns, behind[0]);
    assert_eq!(joins.kept, 0);
    let place = Place::new(PID, SeenBy::Server, client(1));
    let begin_ns = times[0];
    assert_eq!(joins.thread(place, begin_ns), Some(PID + 1));
    joins.see(
        vec![at_socket(SeenBy::Server, times, 0)],
        0,
        |_| false,
        PATIENCE,
    );
    assert_eq!(joins.kept, 0);
    joins.see(
        vec![at_socket(SeenBy::Server, times, 0)],
        0,
        |_| true,
        PATIENCE,
    );
    assert_eq!(joins.kept, 1);
    assert!(joins.settle(2 * PATIENCE + 1, false).is_empty());
    assert_eq!((joins.kept, joins.thread(place, begin_ns)), (0, None));
    // At the end nothing is waited for.
    joins.wait(&request(logged(SeenBy::Server, times, 0)), 20);
    assert_eq!(joins.settle(20, true).len(), 1);
}

#[test]
fn both_ends_are_waited_for() {
    let (inner, outer) = ([1_000 * US, 1_300 * US], [1_100 * US, 1_200 * US]);
    let mut joins = Joins::default();
    let both = LoggedEnds {
        ends: [(SeenBy::Server, inner), (SeenBy::Client, outer)]
            .map(|(seen_by, times)| Some((logged(seen_by, times, 0), Joined::default()))),
        ..request(logged(SeenBy::Server, inner, 0))
    };
    joins.wait(&both, 0);
    let see = |joins: &mut Joins, seen_by, times| {
        joins.see(vec![at_socket(seen_by, times, 0)], 0, |_| true, 1);
    };
    see(&mut joins, SeenBy::Server, inner);
    assert!(joins.settle(1, false).is_empty());
    // What was found is not looked for again.
    assert_eq!(joins.kept, 0);
    see(&mut joins, SeenBy::Client, outer);
    let settled = joins.settle(2, false);
    assert!(settled[0].is_joined());
    // Without room the oldest waits no more, and is looked for a last time.
    see(&mut joins, SeenBy::Server, inner);
    for _ in 0..MAX_WAITING {
        assert!(joins.wait(&both, 2).is_none());
    }
    let oldest = joins.wait(&both, 2).unwrap();
    assert!(first(&oldest).at_socket.is_some() && !oldest.is_joined());
    assert_eq!(joins.waiting.len(), MAX_WAITING);
    // One without an end has nothing to wait for.
    let none = LoggedEnds {
        ends: [None, None],
        ..both
    };
    assert!(joins.wait(&none, 2).is_some());
}

#[test]
fn without_room_at_sockets_the_oldest_go() {
    let mut joins = Joins::default();
    let seen = |begin_ns| at_socket(SeenBy::Server, [begin_ns, begin_ns + 1], 0);
    joins.see(vec![seen(1); MAX_KEPT], 0, |_| true, 1);
    joins.see(vec![seen(2); 2], 0, |_| true, 2);
    assert_eq!(joins.kept, 2);
    joins.see(vec![seen(3); MAX_KEPT], 0, |_| true, 2);
    assert_eq!(joins.kept, MAX_KEPT);
}
