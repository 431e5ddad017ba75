//! The frame around the pages, with a pod: two programs in a network namespace of their own.

use std::{os::unix::fs::MetadataExt as _, path::Path, time::Duration};

use profiler_tests::{agent, netns::Netns, paths, process::Launch, workload::Workload};

use crate::targets::Targets;

const BROWSER: Duration = Duration::from_mins(4);
const COMMAND: Duration = Duration::from_secs(30);

#[test]
fn pods_check_up_and_node_work_in_a_browser() {
    let agent = agent::Agent::start().unwrap();
    let targets = Targets::new();
    let pod = Netns::create("pod").unwrap();
    let spin = |name: &str| {
        targets
            .launch(&Workload::SharesC.build(name).unwrap(), name)
            .netns(&pod)
            .start()
            .unwrap()
    };
    let (sidecar, app) = (spin("envoy"), spin("shares-app"));
    let namespace = std::fs::metadata(pod.path()).unwrap().ino();
    let token = agent.api.token.clone().unwrap();
    let address = agent.api.address;
    let web = paths::workspace().join("web");
    let mut browser = Launch::new(Path::new("node"), "browser", &targets.folder)
        .args([web.join("e2e/shell_real.mjs")])
        .env("AGENT_URL", &format!("http://{address}/#token={token}"))
        .env("SIDECAR_PID", &sidecar.pid().to_string())
        .env("APP_PID", &app.pid().to_string())
        .env("NAMESPACE", &namespace.to_string())
        .current_dir(&web)
        .start()
        .unwrap();
    let ended = browser.wait(BROWSER);
    let good = ended.is_ok_and(|status| status.success());
    assert!(good, "{}\n{}", browser.output(), browser.errors());
    the_command_saves_the_same_bundle(&targets, &format!("http://{address}"), &token);
}

/// Without the token, wherever it may have been.
fn the_command_saves_the_same_bundle(targets: &Targets, url: &str, token: &str) {
    let (token_file, output) = (
        targets.folder.join("token"),
        targets.folder.join("bundle.tar.gz"),
    );
    std::fs::write(&token_file, format!("{token}\n")).unwrap();
    let run = |token_file: &Path| {
        let arguments = [
            "support-bundle",
            "--url",
            url,
            "--token-file",
            token_file.to_str().unwrap(),
            "--output",
            output.to_str().unwrap(),
        ];
        agent::run(&arguments, COMMAND).unwrap()
    };
    let (status, said, errors) = run(&token_file);
    assert!(status.success(), "{said}{errors}");
    let text = Launch::new(Path::new("tar"), "tar", &targets.folder)
        .args(["-xzOf", output.to_str().unwrap()])
        .start()
        .and_then(|mut tar| {
            tar.wait(COMMAND)?;
            Ok(tar.output())
        })
        .unwrap();
    for part in [
        "\"kernel\":",
        "\"stack_tables\"",
        "data_dir =",
        "\"group\": \"checkup-",
        "started",
    ] {
        assert!(text.contains(part), "no {part} in the bundle");
    }
    assert!(!text.contains(token), "the token is in the bundle");
    let wrong = targets.folder.join("wrong");
    std::fs::write(&wrong, "0".repeat(64)).unwrap();
    let (status, _, errors) = run(&wrong);
    assert!(
        !status.success() && errors.contains("the token is not the one of this agent"),
        "{errors}"
    );
}
