use crate::{
    Candidate, Connection, ConnectionFacts, Decoder, Direction, Exchange, Options, Piece, Protocol,
    Trouble, Verdict, WrongProtocol,
    testing::{Driver, WHOLE, facts, to_client, to_server},
};

const PING: &str = "*1\r\n$4\r\nPING\r\n";
const PONG: &str = "+PONG\r\n";

/// Takes every connection for its own and learns at the second answer that it is not.
#[derive(Debug)]
struct Mistaken(u32);

impl Decoder for Mistaken {
    fn protocol(&self) -> Protocol {
        Protocol::Kafka
    }

    fn feed(&mut self, piece: &Piece<'_>, out: &mut Vec<Exchange>) -> Result<(), WrongProtocol> {
        if piece.direction == Direction::ToServer {
            out.push(Exchange::new(Protocol::Kafka, piece.at_ns));
            return Ok(());
        }
        self.0 += 1;
        if self.0 > LATE.with(std::cell::Cell::get) {
            Err(WrongProtocol)
        } else {
            Ok(())
        }
    }

    fn gap(&mut self, _direction: Direction, _missing: Option<u64>, _out: &mut Vec<Exchange>) {}

    fn close(&mut self, _at_ns: u64, _out: &mut Vec<Exchange>) {}
}

std::thread_local! {
    /// Answers that the mistaken decoder takes.
    static LATE: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

const MISTAKEN: &[Candidate] = &[
    Candidate {
        protocol: Protocol::Kafka,
        recognise: |_| Verdict::Yes,
        start: |_, _| Box::new(Mistaken(0)),
    },
    crate::redis::REDIS,
];

fn feed(
    connection: &mut Connection,
    direction: Direction,
    text: &str,
    at: &mut [u64; 2],
) -> Vec<Exchange> {
    let offset = &mut at[usize::from(direction == Direction::ToClient)];
    let piece = Piece {
        direction,
        at_ns: 7 + *offset,
        length: text.len() as u64,
        bytes: text.as_bytes(),
    };
    let mut out = Vec::new();
    connection.feed(&piece, *offset, &mut out);
    *offset += text.len() as u64;
    out
}

#[test]
fn a_wrong_guess_is_replayed_to_the_next() {
    LATE.set(0);
    let mut connection = Connection::among(MISTAKEN, Options::default(), facts(1));
    let mut at = [0; 2];
    assert!(feed(&mut connection, Direction::ToServer, PING, &mut at).is_empty());
    assert_eq!(connection.protocol(), Some(Protocol::Kafka));
    let out = feed(&mut connection, Direction::ToClient, PONG, &mut at);
    assert_eq!(out.len(), 1);
    assert_eq!((out[0].protocol, out[0].begin_ns), (Protocol::Redis, 7));
    assert_eq!(connection.trouble().withdrawn_guesses, 1);
    assert_eq!(connection.trouble().withdrawn_exchanges, 1);
}

#[test]
fn a_guess_withdrawn_late_begins_anew() {
    LATE.set(1);
    let mut connection = Connection::among(MISTAKEN, Options::default(), facts(1));
    let mut at = [0; 2];
    for _ in 0..2 {
        feed(&mut connection, Direction::ToServer, PING, &mut at);
        feed(&mut connection, Direction::ToClient, PONG, &mut at);
    }
    let mut out = feed(&mut connection, Direction::ToServer, PING, &mut at);
    out.extend(feed(&mut connection, Direction::ToClient, PONG, &mut at));
    connection.stop(u64::MAX, &mut out);
    assert_eq!(
        out.last().map(|exchange| exchange.protocol),
        Some(Protocol::Redis)
    );
    assert_eq!(connection.trouble().withdrawn_guesses, 1);
}

#[test]
fn nobodys_connection_is_unknown_and_counted() {
    let mut driver = Driver::new(facts(1));
    for _ in 0..100 {
        driver
            .call(&to_server([0xf7; 200]), WHOLE)
            .call(&to_client([0xf7; 100]), WHOLE);
    }
    assert!(driver.connection.is_unknown());
    let not_understood = driver.connection.trouble().not_understood;
    assert_eq!(
        (not_understood.to_server, not_understood.to_client),
        (20_000, 10_000)
    );
}

#[test]
fn an_unknown_connection_is_looked_at_again_after_a_gap_a_few_times() {
    let mut driver = Driver::new(facts(1));
    let noise = to_server([0xf7; 200]);
    driver.call(&noise, WHOLE);
    assert!(driver.connection.is_unknown());
    driver.miss(&noise);
    driver
        .call(&to_server(PING), WHOLE)
        .call(&to_client(PONG), WHOLE);
    assert_eq!(driver.take(), ["PING => fine"]);
    assert_eq!(driver.connection.trouble().missing.to_server, 200);

    let mut hopeless = Driver::new(facts(1));
    for _ in 0..200 {
        hopeless.call(&noise, WHOLE).miss(&noise);
    }
    // Each look takes some KiB before it gives up.
    let noise = to_server([0xf7; 5000]);
    for _ in 0..300 {
        hopeless.call(&noise, WHOLE);
    }
    assert!(hopeless.connection.is_unknown());
}

#[test]
fn an_end_while_nobody_knows_is_counted() {
    let mut driver = Driver::new(facts(1));
    driver.call(&to_server("*1\r"), WHOLE).close();
    assert_eq!(driver.connection.trouble().not_understood.to_server, 3);
    assert!(driver.out.is_empty());
}

#[test]
fn pieces_that_come_again_are_left_out() {
    let mut connection = Connection::new(Options::default(), facts(1));
    let mut at = [0; 2];
    feed(&mut connection, Direction::ToServer, PING, &mut at);
    assert!(feed(&mut connection, Direction::ToServer, PING, &mut [0; 2]).is_empty());
    assert_eq!(
        feed(&mut connection, Direction::ToClient, PONG, &mut at).len(),
        1
    );
    assert_eq!(
        connection.trouble().not_understood.to_server,
        PING.len() as u64
    );
}

#[test]
fn a_first_piece_that_is_none_joins() {
    let mut connection = Connection::new(Options::default(), facts(1));
    let mut at = [100, 0];
    feed(&mut connection, Direction::ToServer, PING, &mut at);
    let mut out = feed(&mut connection, Direction::ToClient, PONG, &mut at);
    connection.stop(u64::MAX, &mut out);
    assert_eq!(out.len(), 1);
    assert_eq!(connection.trouble().gaps, 1);
    assert_eq!(connection.trouble().missing.to_server, 100);
}

#[test]
fn loss_without_an_offset_is_a_gap() {
    let mut driver = Driver::new(facts(1));
    driver
        .call(&to_server(PING), WHOLE)
        .call(&to_client(PONG), WHOLE);
    driver.call(&to_server(PING), WHOLE);
    driver.connection.gap(Direction::ToClient, &mut driver.out);
    assert!(driver.connection.is_dirty());
    assert_eq!(driver.take(), ["PING => fine", "PING => - unknown"]);
}

#[test]
fn a_joined_connection_waits_for_a_call_that_begins_with_a_message() {
    let mut driver = Driver::new(ConnectionFacts {
        joined: true,
        ..facts(1)
    });
    for _ in 0..10 {
        driver.call(&to_client("tail of an answer\r\n"), WHOLE);
    }
    driver
        .call(&to_server(PING), WHOLE)
        .call(&to_client(PONG), WHOLE);
    assert_eq!(driver.take(), ["PING => fine"]);
    assert_eq!(driver.connection.trouble().withdrawn_guesses, 0);
    assert_ne!(driver.connection.trouble(), Trouble::default());
}

#[test]
fn a_connection_whose_offsets_begin_anew_goes_on_behind_a_gap() {
    let mut connection = Connection::new(Options::default(), facts(6379));
    let mut at = [0; 2];
    for _ in 0..3 {
        feed(&mut connection, Direction::ToServer, PING, &mut at);
        let out = feed(&mut connection, Direction::ToClient, PONG, &mut at);
        assert_eq!(out.len(), 1);
    }
    connection.restart();
    let mut at = [0; 2];
    for gaps in [2, 2] {
        feed(&mut connection, Direction::ToServer, PING, &mut at);
        let mut out = feed(&mut connection, Direction::ToClient, PONG, &mut at);
        connection.stop(u64::MAX, &mut out);
        assert_eq!(out.len(), 1);
        assert_eq!(connection.trouble().gaps, gaps);
    }
}

#[test]
fn offsets_that_do_not_begin_anew_after_all_are_no_gap() {
    let mut connection = Connection::new(Options::default(), facts(6379));
    let mut at = [0; 2];
    for _ in 0..2 {
        feed(&mut connection, Direction::ToServer, PING, &mut at);
        let out = feed(&mut connection, Direction::ToClient, PONG, &mut at);
        assert_eq!(out.len(), 1);
        connection.restart();
    }
    assert_eq!(connection.trouble().gaps, 0);
}
