//! Symbol files, and what they are needed for.

use profiler_test_programs::{compile, compile_stripped};
use serde_json::json;

use super::{Api, SYMBOL_ROOM, bytes, check_problem, json};

const BUILD_ID: &str = "-Wl,--build-id=0xabcdef";

fn program(flags: &[&str]) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::read(compile(dir.path(), "program", flags)).unwrap()
}

impl Api {
    async fn put(&self, path: &str, body: Vec<u8>) -> http::Response<axum::body::Body> {
        let request = self.request("PUT", path).body(body.into()).unwrap();
        self.send(request).await
    }
}

#[tokio::test]
async fn an_uploaded_file_is_listed_until_it_is_deleted() {
    let api = Api::new();
    let content = program(&[BUILD_ID, "-g"]);
    let size = content.len();
    let response = api.post("/api/v1/symbols", content).await;
    assert_eq!(response.status(), 201);
    assert_eq!(response.headers()["location"], "/api/v1/symbols/abcdef");
    let mut taken = json(response).await;
    assert!(taken["added_at_ns"].as_u64().unwrap() > 0);
    taken.as_object_mut().unwrap().remove("added_at_ns");
    let expected = json!({
        "build_id": "abcdef",
        "bytes": size,
        "origin": "uploaded",
        "has_symbols": true,
        "has_debug_information": true,
    });
    assert_eq!(taken, expected);
    let list = api.get_json("/api/v1/symbols").await;
    assert_eq!(list["total"], 1);
    assert_eq!(list["max_bytes"], SYMBOL_ROOM);
    assert_eq!(list["items"][0]["build_id"], "abcdef");
    let response = api.send_empty("DELETE", "/api/v1/symbols/ABCDEF").await;
    assert_eq!(response.status(), 204);
    assert!(bytes(response).await.is_empty());
    assert_eq!(api.get_json("/api/v1/symbols").await["total"], 0);
    let response = api.send_empty("DELETE", "/api/v1/symbols/abcdef").await;
    let expected = json!({
        "type": "about:blank",
        "title": "Not Found",
        "status": 404,
        "detail": "no symbol file has this build-id",
        "code": "not_found",
    });
    check_problem(response, expected).await;
}

#[tokio::test]
async fn a_file_of_another_build_is_refused() {
    let api = Api::new();
    let response = api
        .put("/api/v1/symbols/001122", program(&[BUILD_ID]))
        .await;
    let expected = json!({
        "type": "about:blank",
        "title": "Conflict",
        "status": 409,
        "detail": "the file has build-id abcdef, but 001122 was asked for: it belongs to another build of the program",
        "code": "build_id_mismatch",
        "hint": "take the debug file from the same build, for example from the image's -debug variant",
    });
    check_problem(response, expected).await;
    assert_eq!(api.get_json("/api/v1/symbols").await["total"], 0);
    let response = api
        .put("/api/v1/symbols/abcdef", program(&[BUILD_ID]))
        .await;
    assert_eq!(response.status(), 201);
}

#[tokio::test]
async fn files_that_name_nothing_are_refused() {
    let api = Api::new();
    let dir = tempfile::tempdir().unwrap();
    let stripped = std::fs::read(compile_stripped(dir.path(), &[BUILD_ID])).unwrap();
    for (content, detail) in [
        (b"text".to_vec(), "the file is not a little-endian ELF file"),
        (Vec::new(), "the file is not a little-endian ELF file"),
        (
            stripped,
            "the file has neither a symbol table nor debug information: give the unstripped program or its debug file",
        ),
        (
            program(&["-Wl,--build-id=none"]),
            "the file has no build-id, so nothing says which program it belongs to; link with -Wl,--build-id",
        ),
    ] {
        let response = api.post("/api/v1/symbols", content).await;
        let expected = json!({
            "type": "about:blank",
            "title": "Unprocessable Entity",
            "status": 422,
            "detail": detail,
            "code": "unusable_symbols",
        });
        check_problem(response, expected).await;
    }
    for id in ["xyz1", "ab", "abc"] {
        let response = api
            .send_empty("DELETE", &format!("/api/v1/symbols/{id}"))
            .await;
        assert_eq!(response.status(), 422);
        assert_eq!(json(response).await["field"], "build_id");
    }
}

#[tokio::test]
async fn uploads_are_bounded_whether_their_length_is_announced_or_not() {
    let api = Api::new();
    let large = vec![0; usize::try_from(SYMBOL_ROOM).unwrap() + 1];
    let announced = api
        .request("POST", "/api/v1/symbols")
        .header("content-length", large.len())
        .body(large.clone().into())
        .unwrap();
    let silent = axum::body::Body::from_stream(futures_util::stream::iter(
        large
            .chunks(1 << 20)
            .map(|piece| Ok::<_, std::io::Error>(piece.to_vec()))
            .collect::<Vec<_>>(),
    ));
    let silent = api.request("POST", "/api/v1/symbols").body(silent).unwrap();
    for request in [announced, silent] {
        let response = api.send(request).await;
        assert_eq!(response.status(), 413);
        assert_eq!(json(response).await["code"], "body_too_large");
    }
    // Other addresses keep their small limit.
    let response = api.post("/api/v1/tasks", vec![b' '; 70_000]).await;
    assert_eq!(response.status(), 413);
    let folder = api.data_dir().join("symbols");
    let left = std::fs::read_dir(folder).map_or(0, Iterator::count);
    assert_eq!(left, 0, "nothing is left of what was refused");
}

#[tokio::test]
async fn the_quality_of_a_result_counts_names_by_samples() {
    let api = Api::new();
    let id = api.running_task().await;
    let quality = api.get_json(&format!("/api/v1/tasks/{id}/quality")).await;
    let expected = json!({ "names": {
        "frames": 8,
        "exact": 8,
        "inferred": 0,
        "interpreter": 0,
        "jit": 0,
        "unnamed": 0,
        "sources": [{ "source": "elf_symbol", "frames": 8 }],
        "samples": 8,
        "samples_with_a_name": 8,
        "modules": [],
        "runtimes": [],
    }});
    assert_eq!(quality, expected);
    let one = api
        .get_json(&format!("/api/v1/tasks/{id}/quality?tid=1"))
        .await;
    assert_eq!(one["names"]["frames"], 3);
    assert_eq!(api.get("/api/v1/tasks/77/quality").await.status(), 404);
}
