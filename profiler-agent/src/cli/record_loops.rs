//! What `record --event-loop-stalls` says.

use std::time::Duration;

use profiler_analysis::render::event_loop::explained;
use profiler_model::{EventLoop, EventLoopTable, LoopTurn, Profile, Stall};

use crate::terminal::Text;

/// Stalls that are printed.
const SHOWN: usize = 10;
/// Functions of a stack that are printed, from the leaf on.
const FUNCTIONS: usize = 12;

/// Lines about a recording's event loops; names come from the target.
pub(super) fn lines(table: Option<EventLoopTable>, profile: &Profile) -> Text {
    let mut text = Text::default();
    let Some(table) = table else {
        text.line(format_args!(
            "event loops: no thread has returned from epoll"
        ));
        return text;
    };
    let EventLoop {
        threshold_ms,
        threads,
        stalls,
        stall_count,
        lost,
    } = explained(table, profile, SHOWN);
    let turns: u64 = threads.iter().map(|thread| thread.turns).sum();
    let longest = threads.iter().filter_map(|thread| thread.longest_ns).max();
    let longest = longest.map_or("none is over".to_owned(), |ns| {
        format!("the longest {}", milliseconds(ns))
    });
    text.line(format_args!(
        "event loops: {turns} turns of {} threads, {longest}; {stall_count} of {threshold_ms} ms or \
         longer",
        threads.len()
    ));
    for stall in &stalls {
        text.line(format_args!("stall: {}", line(stall)));
    }
    if lost > 0 {
        text.line(format_args!(
            "note: {lost} of the event loops' records are missing"
        ));
    }
    text
}

fn line(stall: &Stall) -> String {
    let Stall {
        turn,
        hold,
        stack,
        samples,
    } = stall;
    let LoopTurn {
        pid,
        tid,
        name,
        start_ns: _,
        duration_ns,
        open,
    } = turn;
    let open = if *open { " and longer" } else { "" };
    let functions: Vec<&str> = stack.iter().take(FUNCTIONS).map(String::as_str).collect();
    let stack = if functions.is_empty() {
        "nothing recorded".to_owned()
    } else {
        functions.join(" <- ")
    };
    format!(
        "{}{open}, {name} (process {pid}, thread {tid}), {}, {samples} samples: {stack}",
        milliseconds(*duration_ns),
        hold.name(),
    )
}

fn milliseconds(ns: u64) -> String {
    format!("{:.1} ms", Duration::from_nanos(ns).as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use profiler_model::{Clock, LoopThread, ProfileBuilder};

    use super::*;

    #[test]
    fn stalls_are_told_with_printable_names_also_where_nothing_was_recorded() {
        let profile = ProfileBuilder::new(0, 1, Clock::CpuClock).finish();
        let table = EventLoopTable {
            threshold_ms: 20,
            threads: vec![LoopThread {
                turns: 3,
                longest_ns: Some(61_500_000),
                ..LoopThread::default()
            }],
            stalls: vec![LoopTurn {
                pid: 7,
                tid: 8,
                name: "wo\x1b[31mrker".to_owned(),
                duration_ns: 61_500_000,
                ..LoopTurn::default()
            }],
            stall_count: 1,
            lost: 2,
        };
        assert_eq!(
            &*lines(Some(table), &profile),
            "event loops: 3 turns of 1 threads, the longest 61.5 ms; 1 of 20 ms or longer\n\
             stall: 61.5 ms, wo\\x1b[31mrker (process 7, thread 8), unknown, 0 samples: nothing recorded\n\
             note: 2 of the event loops' records are missing\n"
        );
    }
}
