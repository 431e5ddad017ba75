use super::{ENOUGH_CALLS, Exchange, Order, Outcome, SILENCE_NS};
use crate::Protocol;

const MOST: usize = 100;

/// An order with what it gave out.
struct Tried {
    order: Order,
    out: Vec<Exchange>,
    at_ns: u64,
}

impl Tried {
    fn new(joined: bool) -> Self {
        Self {
            order: Order::new(joined, MOST),
            out: Vec::new(),
            at_ns: 10,
        }
    }

    fn call(&mut self, open: usize) {
        self.at_ns += 1;
        self.order.call(self.at_ns, open);
        self.order.passed(self.at_ns);
    }

    fn answer(&mut self) -> bool {
        self.at_ns += 1;
        let wrong = self.order.answer(&mut self.out);
        let mut exchange = Exchange::new(Protocol::Redis, self.at_ns);
        exchange.outcome = Outcome::Ok;
        if !wrong {
            self.order.give(exchange, &mut self.out);
        }
        self.order.passed(self.at_ns);
        wrong
    }

    fn lose(&mut self) {
        self.order.lose(&mut self.out);
    }

    fn outcomes(&self) -> Vec<Outcome> {
        self.out.iter().map(|exchange| exchange.outcome).collect()
    }
}

#[test]
fn a_client_that_waits_begins_anew_with_its_next_call() {
    let mut tried = Tried::new(true);
    tried.order.passed(1);
    tried.call(0);
    assert!(!tried.order.is_dirty());
    assert!(!tried.answer());
    tried.lose();
    tried.call(0);
    assert!(!tried.order.is_dirty());
}

#[test]
fn a_client_that_sends_ahead_needs_a_silence() {
    let mut tried = Tried::new(false);
    tried.call(0);
    tried.call(1);
    assert!(!tried.answer());
    tried.lose();
    tried.order.passed(100);
    let mut call = |at_ns| tried.order.call(at_ns, 0);
    call(100 + SILENCE_NS - 1);
    assert!(tried.order.is_dirty());
    let mut call = |at_ns| tried.order.call(at_ns, 0);
    call(100 + SILENCE_NS);
    assert!(tried.order.is_sure());
}

#[test]
fn an_assumption_that_was_wrong_loses_the_order() {
    let mut tried = Tried::new(true);
    tried.order.passed(1);
    tried.call(0);
    tried.call(1);
    assert!(tried.answer());
    assert!(tried.order.is_dirty());
}

#[test]
fn a_missed_answer_makes_no_client_one_that_sends_ahead() {
    let mut tried = Tried::new(false);
    tried.call(0);
    // The answer was missed, which shows with the next one only.
    tried.call(1);
    tried.lose();
    tried.call(0);
    assert!(!tried.order.is_dirty());
}

#[test]
fn answers_are_held_back_until_the_client_has_proved_to_wait() {
    let mut tried = Tried::new(true);
    for round in 0..=ENOUGH_CALLS {
        assert!(tried.out.is_empty() && !tried.order.is_sure(), "{round}");
        tried.call(0);
        tried.answer();
    }
    assert!(tried.order.is_sure());
    assert_eq!(tried.out.len(), usize::from(ENOUGH_CALLS) + 1);
    // From then on one call more is enough.
    tried.lose();
    tried.call(0);
    tried.answer();
    assert!(!tried.order.is_sure());
    tried.call(0);
    assert!(tried.order.is_sure());
    assert!(
        tried
            .outcomes()
            .iter()
            .all(|outcome| *outcome == Outcome::Ok)
    );
}

#[test]
fn what_was_held_back_is_unknown_when_the_order_does_not_hold() {
    for contradiction in [
        |tried: &mut Tried| tried.order.contradict(&mut tried.out),
        |tried: &mut Tried| {
            tried.call(0);
            tried.call(1);
            assert!(tried.answer());
        },
    ] {
        let mut tried = Tried::new(true);
        tried.call(0);
        tried.answer();
        contradiction(&mut tried);
        assert_eq!(tried.outcomes(), [Outcome::Unknown]);
    }
}

#[test]
fn a_silence_proves_what_was_held_back() {
    let mut tried = Tried::new(true);
    tried.call(0);
    tried.answer();
    tried.at_ns += SILENCE_NS;
    tried.call(0);
    // Payload may be missing behind them until the next answer shows that none is.
    assert!(tried.out.is_empty());
    tried.answer();
    assert_eq!(tried.outcomes(), [Outcome::Ok; 2]);
    // So it does when the observation ends.
    for (wait_ns, outcome) in [(SILENCE_NS, Outcome::Ok), (1, Outcome::Unknown)] {
        let mut tried = Tried::new(true);
        tried.call(0);
        tried.answer();
        tried.order.stop(tried.at_ns + wait_ns, 0, &mut tried.out);
        assert_eq!(tried.outcomes(), [outcome]);
    }
}

#[test]
fn what_is_open_at_the_end_is_broken_only_if_no_answer_can_have_been_missed() {
    let open = |begin_ns| [Exchange::new(Protocol::Redis, begin_ns)];
    let mut out = Vec::new();
    Order::new(false, MOST).close(open(5), 9, None, &mut out);
    Order::new(false, MOST).close(open(5), 9, Some(6), &mut out);
    Order::new(true, MOST).close(open(5), 9, Some(6), &mut out);
    Order::new(true, MOST).close(open(5), 9, Some(4), &mut out);
    let outcomes: Vec<Outcome> = out.iter().map(|exchange| exchange.outcome).collect();
    let [broken, unknown] = [Outcome::Broken, Outcome::Unknown];
    assert_eq!(outcomes, [broken, unknown, unknown, broken]);
}

#[test]
fn no_more_is_held_back_than_there_is_room_for() {
    let mut tried = Tried::new(true);
    tried.call(0);
    for _ in 0..MOST + 5 {
        tried.answer();
    }
    assert_eq!(tried.outcomes(), [Outcome::Unknown; 5]);
}

#[test]
fn what_a_call_proved_is_unknown_when_payload_was_missing_before_it() {
    let mut tried = Tried::new(true);
    tried.call(0);
    tried.answer();
    tried.at_ns += SILENCE_NS;
    tried.call(0);
    // An answer too many had gone by unseen, which shows with the next one.
    tried.lose();
    assert_eq!(tried.outcomes(), [Outcome::Unknown]);
}
