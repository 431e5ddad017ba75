//! Secrets that are planted in payload do not come out.

use super::{Play, facts};
use crate::{
    api::TaskRequests,
    model::TaskState,
    requests::{Keep, TrackerOptions},
    store::{
        Stream,
        codec::{Density, decode, encode},
    },
};

const SECRET: &str = "canary-5ecret";

#[test]
fn no_secret_reaches_the_table_the_store_or_the_api() {
    let mut play = Play::with(TrackerOptions {
        keep: Keep::All,
        ..TrackerOptions::default()
    });
    play.tracker.connection(1, facts(1, true));
    play.ask(1, &format!("AUTH {SECRET}"), "+OK\r\n");
    play.ask(1, &format!("SET {SECRET} {SECRET}"), "+OK\r\n");
    play.ask(1, "GET k", &format!("${}\r\n{SECRET}\r\n", SECRET.len()));
    let table = play.tracker.finish(play.now_ns);
    assert_eq!(table.samples.len(), 3);

    assert!(!format!("{table:?}").contains(SECRET), "{table:?}");
    let blob = encode(&table, Stream::Requests, Density::Fast).unwrap();
    let stored: crate::model::RequestTable = decode(&blob, Stream::Requests).unwrap();
    assert_eq!(stored, table);
    let answer = TaskRequests::new(&TaskState::Finished, Some(&stored));
    let answer = serde_json::to_string(&answer).unwrap();
    assert!(!answer.contains(SECRET), "{answer}");
    assert!(answer.contains("\"AUTH\""), "{answer}");
}
