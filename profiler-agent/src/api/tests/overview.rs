//! The overview over the API.

use std::time::Duration;

use profiler_engine::overview::{OverviewConfig, OverviewWatch};
use profiler_host::process::ProcessTable;
use serde_json::{Value, json};

use super::{Api, Setup};
use crate::api::Origin;

const PATH: &str = "/api/v1/overview";

fn started() -> Api {
    let config = OverviewConfig {
        period: Duration::from_millis(200),
        first: Duration::from_millis(200),
        asks_envoys: false,
    };
    let overview = OverviewWatch::start(ProcessTable::new(), config, |_| {}).unwrap();
    let setup = Setup {
        overview,
        ..Setup::default()
    };
    let origin = Origin {
        address: ([127, 0, 0, 1], 7117).into(),
        tls: false,
    };
    Api::with(setup, origin)
}

/// The answer once it is as wanted.
async fn answer_that(api: &Api, is_wanted: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..600 {
        let answer = api.get_json(PATH).await;
        if is_wanted(&answer) {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{:#}", api.get_json(PATH).await);
}

fn own_row(answer: &Value) -> Option<&Value> {
    let pid = json!(std::process::id());
    let mut rows = answer["rows"].as_array()?.iter();
    rows.find(|row| row["pids"].as_array().unwrap().contains(&pid))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_without_an_overview_says_so() {
    let answer = Api::new().get_json(PATH).await;
    assert_eq!(answer["is_on"], false);
    assert_eq!(answer["rows"], json!([]));
    assert_eq!(answer["checkups"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_has_its_last_check_up_and_what_it_found() {
    let api = started();
    let checkup = api.ended_checkup(199).await;
    let answer = answer_that(&api, |answer| {
        own_row(answer).is_some_and(|row| row["cpu"]["cores"].is_number())
            && answer["checkups"][0]["verdict"].is_string()
    })
    .await;
    assert_eq!(answer["is_on"], true);
    let row = own_row(&answer).unwrap();
    let [found] = answer["checkups"].as_array().unwrap().as_slice() else {
        panic!("{answer:#}");
    };
    assert_eq!(found["row"], row["id"]);
    assert_eq!(found["id"], checkup["id"]);
    assert_eq!(found["state"], "finished");
    let diagnosis = format!(
        "/api/v1/checkups/{}/diagnosis",
        checkup["id"].as_str().unwrap()
    );
    assert_eq!(found["verdict"], api.get_json(&diagnosis).await["verdict"]);
    assert!(
        row["requests_unknown"]
            .as_str()
            .unwrap()
            .contains("no Envoy")
    );
}
