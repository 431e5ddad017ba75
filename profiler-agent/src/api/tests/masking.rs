//! Arguments of processes stay inside the agent.

use std::process::{Child, Command, Stdio};

use super::{Api, Setup, text};
use crate::{api::Origin, config::ArgumentPolicy};

/// Any word that no other output has.
const SECRET: &str = "planted-secret-5c1d";

/// A process that carries a secret in its arguments and waits.
struct Planted(Child);

impl Planted {
    fn start(secret: &str) -> Self {
        // `cat` reads its standard input, which stays open until this is dropped.
        let child = Command::new("sh")
            .args(["-c", "read -r line", "--", &format!("--password={secret}")])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        Self(child)
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

async fn id_of(api: &Api, pid: u32) -> String {
    let list = api.get_json("/api/v1/processes").await;
    let items = list["items"].as_array().unwrap();
    let process = items
        .iter()
        .find(|item| item["pid"] == pid)
        .expect("the process is listed");
    process["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn no_answer_shows_an_argument() {
    let api = Api::new();
    let planted = Planted::start(SECRET);
    let id = id_of(&api, planted.pid()).await;
    let task = api.running_task().await;
    let mut paths: Vec<String> = [
        "processes",
        "containers",
        "tasks",
        "meta",
        "self",
        "probes",
        "pods",
        "features",
        "config",
        "self/kernel",
        "openapi.json",
        "processes?sort=pid&kernel=true",
    ]
    .iter()
    .map(|path| format!("/api/v1/{path}"))
    .collect();
    paths.push("/metrics".into());
    paths.push(format!("/api/v1/processes/{id}"));
    paths.push(format!("/api/v1/processes?q={}", planted.pid()));
    for path in [
        "",
        "/threads",
        "/timeline",
        "/profile?format=folded",
        "/profile?format=svg",
    ] {
        paths.push(format!("/api/v1/tasks/{task}{path}"));
    }
    for path in paths {
        let response = api.get(&path).await;
        assert_eq!(response.status(), 200, "{path}");
        assert!(!text(response).await.contains(SECRET), "{path}");
    }
    let shown = api.get_json(&format!("/api/v1/processes/{id}")).await;
    assert_eq!(
        shown["arguments"],
        serde_json::json!(["sh", "***", "***", "***", "***"])
    );
    // A search that finds by what is hidden would tell it letter by letter.
    let found = api.get_json(&format!("/api/v1/processes?q={SECRET}")).await;
    assert_eq!(found["total"], 0);
}

#[tokio::test]
async fn arguments_are_shown_when_asked_for() {
    // Found by it, as no process of another test is.
    const SECRET: &str = "planted-word-7e3a";
    let setup = Setup {
        arguments: ArgumentPolicy::Shown,
        ..Setup::default()
    };
    let api = Api::with(
        setup,
        Origin {
            address: ([127, 0, 0, 1], 7117).into(),
            tls: false,
        },
    );
    let planted = Planted::start(SECRET);
    let id = id_of(&api, planted.pid()).await;
    let shown = api.get_json(&format!("/api/v1/processes/{id}")).await;
    assert_eq!(shown["arguments"][4], format!("--password={SECRET}"));
    let found = api.get_json(&format!("/api/v1/processes?q={SECRET}")).await;
    assert_eq!(found["total"], 1);
}
