//! The page in a real browser: created by clicking, watched to its end, zoomed and searched.

use std::{path::Path, time::Duration};

use profiler_tests::{
    agent::{Agent, ServeOptions},
    paths,
    process::Launch,
};

use crate::targets::Targets;

const BROWSER: Duration = Duration::from_mins(3);

#[test]
fn the_page_works_in_a_browser() {
    let options = ServeOptions::with_arguments(["--network", "always"]);
    let agent = Agent::start_with(options).unwrap();
    let targets = Targets::new();
    let target = targets.busy("shares-page");
    let web = paths::workspace().join("web");
    let script = web.join("e2e/real.mjs");
    assert!(script.is_file(), "no {}", script.display());
    assert!(
        web.join("node_modules").is_dir(),
        "the page's tools are missing: run `cargo xtask setup`"
    );
    let shots = paths::workspace().join("target/e2e-shots");
    std::fs::create_dir_all(&shots).unwrap();
    let url = format!(
        "http://{}/#token={}",
        agent.api.address,
        agent.api.token.as_deref().unwrap()
    );
    let mut browser = Launch::new(Path::new("node"), "browser", &targets.folder)
        .args([script.as_os_str()])
        .env("AGENT_URL", &url)
        .env("TARGET_PID", &target.pid().to_string())
        .env("SHOTS", shots.to_str().unwrap())
        .current_dir(&web)
        .start()
        .unwrap();
    let ended = browser.wait(BROWSER);
    let good = ended.is_ok_and(|status| status.success());
    assert!(good, "{}\n{}", browser.output(), browser.errors());
}
