use super::{Order, SILENCE_NS};

#[test]
fn a_client_that_waits_begins_anew_with_its_next_call() {
    let mut order = Order::new(true);
    order.passed(1);
    order.call(2, 0);
    assert!(!order.is_dirty());
    assert!(!order.answer());
    order.lose();
    order.call(3, 0);
    assert!(!order.is_dirty());
}

#[test]
fn a_client_that_sends_ahead_needs_a_silence() {
    let mut order = Order::new(false);
    order.call(1, 0);
    order.call(2, 1);
    assert!(!order.answer());
    order.lose();
    order.passed(10);
    order.call(10 + SILENCE_NS - 1, 0);
    assert!(order.is_dirty());
    order.call(10 + SILENCE_NS, 0);
    assert!(!order.is_dirty());
}

#[test]
fn an_assumption_that_was_wrong_loses_the_order() {
    let mut order = Order::new(true);
    order.passed(1);
    order.call(2, 0);
    order.call(3, 1);
    assert!(order.answer());
    assert!(order.is_dirty());
}

#[test]
fn a_missed_answer_makes_no_client_one_that_sends_ahead() {
    let mut order = Order::new(false);
    order.call(1, 0);
    // The answer was missed, which shows with the next one only.
    order.call(2, 1);
    order.lose();
    order.passed(2);
    order.call(3, 0);
    assert!(!order.is_dirty());
}
