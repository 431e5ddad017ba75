use std::{
    sync::mpsc::{Receiver, channel},
    time::Instant,
};

use profiler_model::overview::OverviewRow;

use super::*;

/// A watch that reads often, with its overviews.
fn started(table: &ProcessTable) -> (OverviewWatch, Receiver<Arc<Overview>>) {
    let (tell, told) = channel();
    let config = OverviewConfig {
        period: Duration::from_millis(300),
        first: Duration::from_secs(2),
        asks_envoys: true,
    };
    let watch = OverviewWatch::start(table.clone(), config, move |overview| {
        drop(tell.send(Arc::clone(overview)));
    });
    (watch.unwrap(), told)
}

/// The row that a process is in.
fn row_of(overview: &Overview, pid: u32) -> &OverviewRow {
    let found = overview.rows.iter().find(|row| row.pids.contains(&pid));
    found.unwrap_or_else(|| panic!("{pid} is in no row: {overview:#?}"))
}

#[test]
fn what_a_process_burns_is_on_its_row() {
    let mut child = std::process::Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .spawn()
        .unwrap();
    let table = ProcessTable::new();
    let (watch, told) = started(&table);
    let first = told.recv().unwrap();
    let began = Instant::now();
    let second = told.recv().unwrap();
    let third = told.recv().unwrap();
    let newest = watch.newest().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(began.elapsed() < Duration::from_mins(1));
    assert_eq!(row_of(&first, child.id()).window_s, None);
    assert_eq!(row_of(&first, child.id()).cpu.cores, None);
    assert!(second.read_ns > first.read_ns);
    for overview in [&second, &third] {
        let row = row_of(overview, child.id());
        let (cores, waiting) = (row.cpu.cores.unwrap(), row.cpu.waiting.unwrap_or(0.0));
        // Runs or waits all the time, but for what a clock tick hides; others may be on the row.
        assert!(cores > 0.0 && cores + waiting > 0.5, "{row:#?}");
        assert!(row.requests_unknown.is_some() && row.answered.is_none());
    }
    assert!(row_of(&third, child.id()).history.len() >= 2);
    assert!(third.cost_percent.unwrap() > 0.0);
    assert!(newest.read_ns >= third.read_ns);
}

#[test]
fn the_thread_ends_with_its_last_handle() {
    let (watch, told) = started(&ProcessTable::new());
    told.recv().unwrap();
    drop(watch);
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        match told.recv_timeout(Duration::from_millis(100)) {
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return,
            Ok(_) | Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
        }
        assert!(Instant::now() < end, "it still reads");
    }
}

#[test]
fn without_a_thread_there_is_nothing_or_what_was_recorded() {
    assert_eq!(OverviewWatch::off().newest(), None);
    let recorded = Overview {
        summary: "as it was".into(),
        ..Overview::default()
    };
    let watch = OverviewWatch::recorded(recorded.clone());
    assert_eq!(*watch.newest().unwrap(), recorded);
}
