//! Every way to write and read a TCP socket: what is counted, against what the program did and what
//! its sockets report about themselves.

use std::str::FromStr;

use profiler_tests::workload::Workload;
use serde_json::{Value, json};

use crate::edges::{edge_to, number, transfer, watch_program};

/// What a program did with one end of a connection, and what its socket says. `None`: the kernel
/// chose the number of calls.
#[derive(Debug)]
struct End {
    write_calls: Option<u64>,
    written: u64,
    read_calls: Option<u64>,
    read: u64,
    sent: u64,
    received: u64,
    retransmits: u64,
}

/// One case of `tests/workloads/sockets.c`.
#[derive(Debug)]
struct Case {
    name: String,
    port: u16,
    client: End,
    server: End,
}

impl FromStr for Case {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, Self::Err> {
        let (name, rest) = line.split_once(' ').ok_or("no name")?;
        let numbers: Result<Vec<i64>, _> = rest.split(' ').map(str::parse).collect();
        let numbers = numbers.map_err(|error| format!("{line}: {error}"))?;
        let known = |number: i64| u64::try_from(number).ok();
        let count = |number: i64| known(number).ok_or_else(|| line.to_owned());
        let end = |numbers: &[i64]| match *numbers {
            [
                write_calls,
                written,
                read_calls,
                read,
                sent,
                received,
                retransmits,
            ] => Ok(End {
                write_calls: known(write_calls),
                written: count(written)?,
                read_calls: known(read_calls),
                read: count(read)?,
                sent: count(sent)?,
                received: count(received)?,
                retransmits: count(retransmits)?,
            }),
            _ => Err(line.to_owned()),
        };
        let (port, ends) = numbers.split_first().ok_or("no port")?;
        let (client, server) = ends.split_at_checked(7).ok_or("too short")?;
        Ok(Self {
            name: name.to_owned(),
            port: u16::try_from(*port).map_err(|error| error.to_string())?,
            client: end(client)?,
            server: end(server)?,
        })
    }
}

/// Compares one end with what was measured.
fn check(case: &Case, what: &str, end: &End, side: &Value) {
    let about = format!("{what} of {case:?}: {side:#}");
    let (calls, bytes) = transfer(side, "write");
    assert_eq!(bytes, end.written, "written by {about}");
    if let Some(expected) = end.write_calls {
        assert_eq!(calls, expected, "calls that write by {about}");
    }
    let (calls, bytes) = transfer(side, "read");
    assert_eq!(bytes, end.read, "read by {about}");
    if let Some(expected) = end.read_calls {
        assert_eq!(calls, expected, "calls that read by {about}");
    }
    assert_eq!(
        number(&side["retransmit"]["count"]),
        end.retransmits,
        "{about}"
    );
    // The socket's own account, reconciled. The end of a stream counts as one byte.
    let socket = &side["socket"];
    assert_eq!(number(&socket["written_bytes"]), end.written, "{about}");
    assert_eq!(number(&socket["read_bytes"]), end.read, "{about}");
    assert_eq!(number(&socket["sent_bytes"]), end.sent, "{about}");
    let received = number(&socket["received_bytes"]);
    assert!(
        (end.received..=end.received + 1).contains(&received),
        "{about}"
    );
    assert_eq!(
        side["connections"],
        json!({ "count": 1, "open": 0 }),
        "{about}"
    );
}

#[test]
fn every_way_to_write_and_read_is_counted_once() {
    let (table, output) = watch_program(Workload::Sockets, "sockets");
    let cases: Vec<Case> = output
        .lines()
        .filter(|line| line.contains(' '))
        .map(|line| line.parse().unwrap())
        .collect();
    assert!(cases.len() > 25, "{output}");
    for case in &cases {
        let edge = edge_to(&table, case.port);
        for end in ["client", "server"] {
            assert_eq!(edge[end]["address"], "127.0.0.1", "{case:?}");
            assert_eq!(edge[end]["comm"], "sockets", "{case:?}");
        }
        let metrics = &edge["metrics"];
        check(case, "client", &case.client, &metrics["client"]);
        assert_eq!(
            metrics["client"]["connect"]["count"], 1,
            "{case:?}: {edge:#}"
        );
        assert_eq!(
            metrics["client"]["connect"]["failed"], 0,
            "{case:?}: {edge:#}"
        );
        // One socket cannot be both ends of an edge.
        if case.name == "to_itself" {
            assert_eq!(metrics["server"], Value::Null, "{edge:#}");
        } else {
            check(case, "server", &case.server, &metrics["server"]);
        }
    }
    // What splice reads from a socket is seen by the socket only, and shown as the difference.
    let spliced = cases.iter().find(|case| case.name == "splice_from_socket");
    let edge = edge_to(&table, spliced.unwrap().port);
    let socket = &edge["metrics"]["server"]["socket"];
    assert_eq!(number(&socket["read_bytes"]), 0, "{socket}");
    assert!(number(&socket["received_bytes"]) >= 4000, "{socket}");
    assert_eq!(table["lost"], json!({ "events": 0, "bytes": 0 }));
}
