//! Two results compared: a workload whose change is known, by the API and on the page.

use std::{path::Path, time::Duration};

use profiler_tests::{
    agent::{Agent, run},
    assert_measured, paths,
    process::{Launch, Running},
    workload::Workload,
};
use serde_json::{Value, json};

use crate::targets::{Targets, on_cpu};

const BROWSER: Duration = Duration::from_mins(3);
const TASK: Duration = Duration::from_mins(1);
const SECONDS: u64 = 6;

/// Profiles `target` and returns the task.
fn profiled(agent: &Agent, target: &Running) -> String {
    let specification = on_cpu(json!({ "pids": [target.pid()] }), SECONDS, 499);
    let id = agent.api.create_task(&specification).unwrap();
    agent.api.wait_task(&id, &["finished"], TASK).unwrap();
    id
}

/// One thread spends 60, 30 and 10 % in its functions; the second thread of two has 10, 60 and 30.
fn before_and_after(agent: &Agent, targets: &Targets) -> (String, String, u64) {
    let name = "shares-compared";
    let before = {
        let target = targets.shares(Workload::SharesC, name, &[]);
        profiled(agent, &target)
    };
    let target = targets.shares(Workload::SharesC, name, &["--threads", "2"]);
    let after = profiled(agent, &target);
    let threads = agent
        .api
        .get_json(&format!("/api/v1/tasks/{after}/threads"))
        .unwrap();
    let changed = threads["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|thread| thread["name"] == "hot-1")
        .unwrap_or_else(|| panic!("no thread hot-1 in {threads}"));
    (before, after, changed["tid"].as_u64().unwrap())
}

fn function<'a>(diff: &'a Value, name: &str) -> &'a Value {
    let functions = diff["functions"].as_array().unwrap();
    functions
        .iter()
        .find(|function| function["name"] == name)
        .unwrap_or_else(|| panic!("no {name} in {diff}"))
}

#[test]
fn the_function_that_changed_most_comes_first() {
    let agent = Agent::start().unwrap();
    let targets = Targets::new();
    let (before, after, tid) = before_and_after(&agent, &targets);

    let path = format!("/api/v1/diff?a={before}&b={after}&b_tid={tid}");
    let diff = agent.api.get_json(&path).unwrap();
    assert_measured!(diff["functions"][0]["name"] == "hot_sixty", "{diff}");
    let samples = |side: &str| diff[side]["total"].as_f64().unwrap();
    for (name, before, after) in [
        ("hot_sixty", 0.6, 0.1),
        ("hot_thirty", 0.3, 0.6),
        ("hot_ten", 0.1, 0.3),
    ] {
        let found = function(&diff, name);
        let measured = found["change"].as_f64().unwrap();
        // Four standard errors of the samples there are, and what the rest of the program takes.
        let spread = |share: f64, samples: f64| share * (1.0 - share) / samples;
        let error = (spread(before, samples("a")) + spread(after, samples("b"))).sqrt();
        assert_measured!(
            (measured - (after - before)).abs() < 4.0 * error + 0.02,
            "{name} changed by {measured} instead of {before} to {after}: {diff}"
        );
        assert_measured!(found["verdict"] == "significant", "{found}");
    }
    // Both sides are what the profiles are.
    for (side, id, more) in [
        ("a", &before, String::new()),
        ("b", &after, format!("&tid={tid}")),
    ] {
        let folded = agent.api.folded(id, &more).unwrap();
        assert_eq!(diff[side]["total"].as_u64().unwrap(), folded.total());
    }

    // The command line asks the same.
    let token = agent.data_dir.join("token");
    let address = format!("http://{}", agent.api.address);
    let (status, output, errors) = run(
        &[
            "diff",
            &before,
            &after,
            "--tid",
            &tid.to_string(),
            "--url",
            &address,
            "--token-file",
            token.to_str().unwrap(),
        ],
        TASK,
    )
    .unwrap();
    assert!(status.success(), "{errors}");
    let first = output.lines().nth(3).unwrap_or_default();
    assert!(
        first.ends_with("hot_sixty") && first.contains("significant, q"),
        "{output}"
    );

    // The same task against itself: nothing may be found.
    let same = agent
        .api
        .get_json(&format!("/api/v1/diff?a={before}&b={before}&norm=rate"))
        .unwrap();
    assert_eq!(same["significant"], 0, "{same}");

    let web = paths::workspace().join("web");
    let url = format!(
        "http://{}/#token={}",
        agent.api.address,
        agent.api.token.as_deref().unwrap()
    );
    let mut browser = Launch::new(Path::new("node"), "compare", &targets.folder)
        .args([web.join("e2e/real_diff.mjs").as_os_str()])
        .env("AGENT_URL", &url)
        .env("BASE", &before)
        .env("TASK", &after)
        .env("THREAD", &tid.to_string())
        .current_dir(&web)
        .start()
        .unwrap();
    let ended = browser.wait(BROWSER);
    let good = ended.is_ok_and(|status| status.success());
    assert!(good, "{}\n{}", browser.output(), browser.errors());
}
