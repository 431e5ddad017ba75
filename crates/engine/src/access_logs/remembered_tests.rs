use std::iter;

use profiler_model::{
    Endpoint,
    sockets::{Listing, Tracked},
};

use super::*;
use crate::access_logs::{ends::NOWHERE, peers};

const SERVER: &str = "10.0.0.1:80";
const CLIENT: &str = "10.0.0.7:40000";
const SECOND: u64 = 1_000_000_000;

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn socket(inode: u64, local: &str, remote: &str) -> DiagSocket {
    DiagSocket {
        rtt_us: 70,
        ..peers::tests::socket(inode, local, remote)
    }
}

fn process(pid: u32) -> OtherEnd {
    OtherEnd {
        process: Endpoint {
            pid: Some(pid),
            start_ticks: Some(1),
            comm: "client".to_owned(),
            container: None,
            address: NOWHERE,
        },
        may_report: false,
    }
}

fn sought(end: &str, envoy: &str, namespace: u64) -> Sought {
    Sought {
        end: address(end),
        other: address(envoy),
        namespace: Some(namespace),
        may_listen: false,
    }
}

/// Looks at sockets second by second.
struct Play {
    remembered: Remembered,
    begin: Instant,
    alive: HashSet<ProcessKey>,
}

impl Play {
    /// Envoys are asked at these addresses.
    fn new(served: &[&str]) -> Self {
        let begin = Instant::now();
        let mut remembered = Remembered::default();
        let look = Look {
            at: begin,
            wall_ns: 0,
        };
        let served = served.iter().map(|at| address(at));
        remembered.learn(served, iter::empty(), look);
        let alive = (0..100).map(|pid| ProcessKey {
            pid,
            start_ticks: 1,
        });
        Self {
            remembered,
            begin,
            alive: alive.collect(),
        }
    }

    /// Sees what is there, each with its namespace, and finds `pid` at each that is looked for; the number of them.
    fn see(&mut self, second: u64, there: &[(u32, DiagSocket)], pid: u32) -> usize {
        let listings: Listings = there
            .iter()
            .map(|(namespace, socket)| {
                let listing = Listing {
                    sockets: vec![socket.clone()],
                    addresses: Vec::new(),
                    tracked: Ok(Tracked::default()),
                    without_diag: None,
                };
                (*namespace, listing)
            })
            .collect();
        let look = Look {
            at: self.begin + Duration::from_secs(second),
            wall_ns: second * SECOND,
        };
        let fresh = self.remembered.see(&listings, look, &self.alive);
        for one in &fresh {
            self.remembered.found(one, Some(process(pid)));
        }
        fresh.len()
    }

    /// The pid when a request was made that took a tenth of a second, or why it is not known.
    fn holder(&self, end: &Sought, begin_ns: u64) -> Result<u32, &'static str> {
        match self
            .remembered
            .holder(end, &(begin_ns..=begin_ns + SECOND / 10))
        {
            Held::By(holder) => Ok(holder.process.pid.unwrap()),
            Held::Unseen => Err("unseen"),
            Held::Unclear => Err("unclear"),
        }
    }
}

#[test]
fn a_connection_is_known_for_a_minute_after_its_end() {
    let mut play = Play::new(&[SERVER]);
    let there = [
        (1, socket(5, CLIENT, SERVER)),
        (1, socket(6, "10.0.0.7:40001", "10.0.0.1:81")),
    ];
    assert_eq!(play.see(1, &there, 9), 1);
    // What is known is not looked for again.
    assert_eq!(play.see(2, &there, 8), 0);
    let asked = sought(CLIENT, SERVER, 4);
    for (second, expected) in [(3, Ok(9)), (61, Ok(9)), (62, Err("unseen"))] {
        assert_eq!(play.see(second, &[], 8), 0);
        assert_eq!(play.holder(&asked, 2 * SECOND), expected, "{second} s");
    }
    let other = sought("10.0.0.7:40001", "10.0.0.1:81", 1);
    assert_eq!(play.holder(&other, 2 * SECOND), Err("unseen"));
}

#[test]
fn a_request_lies_in_the_life_of_its_connection() {
    let mut play = Play::new(&[SERVER]);
    for (second, is_there) in [(1, false), (2, false), (3, true), (4, true), (5, false)] {
        let there = [(1, socket(5, CLIENT, SERVER))];
        play.see(second, if is_there { &there } else { &[] }, 9);
    }
    for (second, expected) in [
        (1, Err("unclear")),
        (2, Ok(9)),
        (3, Ok(9)),
        (4, Ok(9)),
        (5, Err("unclear")),
        (9, Err("unclear")),
    ] {
        let begin_ns = second * SECOND + SECOND / 4;
        let found = play.holder(&sought(CLIENT, SERVER, 1), begin_ns);
        assert_eq!(found, expected, "{second} s");
    }
}

#[test]
fn another_connection_from_the_same_port_is_another_one() {
    let mut play = Play::new(&[SERVER]);
    play.see(1, &[(1, socket(5, CLIENT, SERVER))], 9);
    play.see(2, &[(1, socket(6, CLIENT, SERVER))], 8);
    for (begin_ns, expected) in [
        (SECOND, Err("unclear")),
        (SECOND * 3 / 2, Err("unclear")),
        (SECOND * 5 / 2, Ok(8)),
    ] {
        let found = play.holder(&sought(CLIENT, SERVER, 1), begin_ns);
        assert_eq!(found, expected, "{begin_ns}");
    }
}

#[test]
fn the_same_addresses_in_two_namespaces_are_nobody_s_but_for_loopback() {
    let here = ["127.0.0.1:40000", "127.0.0.1:80"];
    let mut play = Play::new(&[SERVER, here[1]]);
    let there = [
        (1, socket(5, CLIENT, SERVER)),
        (1, socket(7, here[0], here[1])),
    ];
    assert_eq!(play.see(1, &there, 9), 2);
    let there = [
        (2, socket(6, CLIENT, SERVER)),
        (2, socket(8, here[0], here[1])),
    ];
    assert_eq!(play.see(2, &there, 8), 2);
    for (ends, namespace, expected) in [
        ([CLIENT, SERVER], 1, Err("unclear")),
        (here, 1, Ok(9)),
        (here, 2, Ok(8)),
        (here, 3, Err("unseen")),
    ] {
        let found = play.holder(&sought(ends[0], ends[1], namespace), SECOND * 3 / 2);
        assert_eq!(found, expected, "{ends:?} in {namespace}");
    }
}

#[test]
fn who_is_not_found_is_looked_for_some_times_and_who_has_ended_again() {
    let mut play = Play::new(&[SERVER]);
    let there = [(1, socket(5, CLIENT, SERVER))];
    assert_eq!(play.see(1, &there, 200), 1);
    // That one is no process that is alive: it has passed its socket on.
    assert_eq!(play.see(2, &there, 9), 1);
    assert_eq!(play.see(3, &there, 9), 0);
    let mut play = Play::new(&[SERVER]);
    let asked = (1..10).map(|second| {
        let look = Look {
            at: play.begin + Duration::from_secs(second),
            wall_ns: second * SECOND,
        };
        let listing = Listing {
            sockets: vec![socket(5, CLIENT, SERVER)],
            addresses: Vec::new(),
            tracked: Ok(Tracked::default()),
            without_diag: None,
        };
        let fresh = play.remembered.see(&vec![(1, listing)], look, &play.alive);
        fresh.len()
    });
    assert_eq!(asked.sum::<usize>(), usize::from(TRIES));
}

#[test]
fn a_socket_of_an_envoy_keeps_its_first_and_last_values() {
    let mut play = Play::new(&[]);
    let look = Look {
        at: play.begin,
        wall_ns: 0,
    };
    let upstreams = [address(SERVER)].into_iter();
    play.remembered.learn(iter::empty(), upstreams, look);
    for (second, retransmits) in [(1, 2), (2, 3), (3, 7)] {
        let there = DiagSocket {
            retransmits,
            ..socket(5, CLIENT, SERVER)
        };
        // Nobody asks for the process at this end.
        assert_eq!(play.see(second, &[(1, there)], 9), 0);
    }
    play.see(4, &[], 9);
    let socket = |remote| {
        let ends = (address(CLIENT), address(remote));
        play.remembered.socket(ends, Some(1))
    };
    assert_eq!(socket(SERVER).unwrap().map(|one| one.retransmits), [2, 7]);
    assert_eq!(socket("10.0.0.1:81"), None);
}

#[test]
fn there_is_room_for_what_is_new() {
    let mut play = Play::new(&[SERVER]);
    let place = |number: usize| {
        let [high, low] = u16::try_from(number).unwrap().to_be_bytes();
        format!("10.1.{high}.{low}:40000")
    };
    let numbers: Vec<usize> = (0..MOST + 100).collect();
    for (second, numbers) in (1..).zip(numbers.chunks(1000)) {
        let there = numbers
            .iter()
            .map(|number| socket(5, &place(*number), SERVER));
        let there: Vec<_> = there.map(|socket| (1, socket)).collect();
        play.see(second, &there, 9);
    }
    let newest = play.remembered.kept.keys();
    let newest = newest.filter(|(local, _)| *local == address(&place(MOST + 99)));
    assert_eq!(newest.count(), 1);
    assert!(play.remembered.kept.len() <= MOST);
    // What was forgotten for that may be open: it did not begin between these looks.
    play.see(30, &[(1, socket(5, CLIENT, SERVER))], 9);
    let end = sought(CLIENT, SERVER, 1);
    assert_eq!(play.holder(&end, 16 * SECOND), Ok(9));
    // No pod takes it all.
    let mut play = Play::new(&[SERVER]);
    let sockets = (0..MOST).map(|number| socket(5, &place(number), SERVER));
    let listing = Listing {
        sockets: sockets.collect(),
        addresses: Vec::new(),
        tracked: Ok(Tracked::default()),
        without_diag: None,
    };
    let look = Look {
        at: play.begin,
        wall_ns: 0,
    };
    play.remembered.see(&vec![(1, listing)], look, &play.alive);
    assert_eq!(play.remembered.kept.len(), MOST_OF_NAMESPACE);
    assert_eq!(play.remembered.held, MOST_OF_NAMESPACE);
    assert!(play.remembered.cut.contains(&1));
}

/// What had no room at one look was there already when it has some at the next.
#[test]
fn what_was_cut_may_have_begun_at_any_time() {
    let mut play = Play::new(&[SERVER]);
    play.see(1, &[], 9);
    play.remembered.cut.insert(1);
    play.see(2, &[(1, socket(5, CLIENT, SERVER))], 9);
    assert_eq!(play.holder(&sought(CLIENT, SERVER, 1), SECOND / 2), Ok(9));
}

#[test]
fn the_same_addresses_of_loopback_have_a_bound() {
    let here = ["127.0.0.1:40000", "127.0.0.1:80"];
    let mut play = Play::new(&here[1..]);
    let sockets = (0..1000).map(|namespace| (namespace, socket(5, here[0], here[1])));
    let sockets: Vec<_> = sockets.collect();
    assert_eq!(play.see(1, &sockets, 9), MOST_ALIKE);
    assert_eq!(play.remembered.held, MOST_ALIKE);
}

#[test]
fn addresses_that_are_used_stay() {
    let mut play = Play::new(&[SERVER]);
    for number in 0..2 * MOST_ADDRESSES {
        let look = Look {
            at: play.begin + Duration::from_millis(number as u64),
            wall_ns: 0,
        };
        let port = u16::try_from(number + 1).unwrap();
        let made_up = SocketAddr::new(address("10.9.9.9:1").ip(), port);
        play.remembered.served.meet(address(SERVER), look.at);
        play.remembered.served.learn(made_up, look);
    }
    assert!(play.remembered.served.0.len() <= MOST_ADDRESSES);
    assert_eq!(play.see(20, &[(1, socket(5, CLIENT, SERVER))], 9), 1);
}
