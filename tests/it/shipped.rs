//! The image of what is shipped, with the options of deploy/compose.yaml. `cargo xtask test shipped` makes it.

use profiler_tests::docker::{Image, docker};
use serde_json::json;

use crate::{
    capabilities,
    containers::Profiler,
    targets::{START, Targets, assert_built_shares, burn},
};

fn image() -> Image {
    let name = std::env::var("PROFILER_IMAGE");
    Image::existing(&name.expect("PROFILER_IMAGE: run this step by `cargo xtask test`"))
}

#[test]
fn the_image_runs_with_the_options_of_the_manifest_and_profiles() {
    let image = image();
    let version = docker(&["run", "--rm", "--network=none", image.name(), "--version"]).unwrap();
    for part in ["eBPF programs: embedded", "web UI: embedded"] {
        assert!(version.lines().any(|line| line == part), "{version}");
    }
    // Without a shell: nothing else is in it.
    let layers = docker(&[
        "inspect",
        "--format",
        "{{len .RootFS.Layers}}",
        image.name(),
    ]);
    assert_eq!(layers.unwrap().trim(), "1");

    let profiler = Profiler::of(&image);
    capabilities::check_threads(profiler.container.pid().unwrap(), &profiler.capabilities);
    let url = format!("--url=http://{}", profiler.api.address);
    let healthy = profiler
        .container
        .exec(&["/profiler-agent", "health", "--ready", &url]);
    assert_eq!(healthy.unwrap(), "ready\n");
    let page = profiler.api.with_token(None).get("/").unwrap();
    assert_eq!(page.status, 200);
    let page = page.text();
    let script = page.split("<script").nth(1).expect("the page has a script");
    let script = script.split("src=\"").nth(1).unwrap();
    let script = script.split('"').next().unwrap();
    let path = script.trim_start_matches('.');
    assert_eq!(profiler.api.with_token(None).get(path).unwrap().status, 200);

    let targets = Targets::new();
    let target = targets.busy("shares-shipped");
    let id = profiler.start_task(&json!({
        "kind": "on_cpu", "target": { "pids": [target.pid()] }, "duration_s": 60, "frequency_hz": 499,
    }));
    profiler.api.wait_sampling(&id, START).unwrap();
    burn(&target, std::time::Duration::from_secs(2));
    profiler.stop(&id);
    let folded = profiler.api.folded(&id, "").unwrap();
    assert_built_shares(&folded, 6.0, "the image that is shipped");
}
