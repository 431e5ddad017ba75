//! The self-contained HTML file.

use std::io::Read;

use base64::{Engine, engine::general_purpose::STANDARD};
use profiler_model::Profile;
use serde_json::Value;

use crate::render::{Format, RenderError, View, render, render_view};

use super::sketch::{empty, odd_names, simple, waits};

const TEMPLATE: &str = "<p id=a>@@ABOUT@@</p><p id=b>@@PROFILE@@</p>";

fn file(profile: &Profile, title: &str) -> String {
    let view = View {
        title,
        template: Some(TEMPLATE),
        ..View::default()
    };
    String::from_utf8(render_view(profile, Format::Html, &view).unwrap()).unwrap()
}

fn part<'a>(file: &'a str, id: &str) -> &'a str {
    let start = file.split_once(&format!("<p id={id}>")).unwrap().1;
    start.split_once("</p>").unwrap().0
}

#[test]
fn the_file_has_the_columns_and_what_they_are() {
    let file = file(&simple(), "Task <7>");
    let about: Value = serde_json::from_slice(&STANDARD.decode(part(&file, "a")).unwrap()).unwrap();
    assert_eq!(about["title"], "Task <7>");
    assert_eq!(about["unit"], "samples");
    let gzip = STANDARD.decode(part(&file, "b")).unwrap();
    let mut columns = Vec::new();
    flate2::read::GzDecoder::new(gzip.as_slice())
        .read_to_end(&mut columns)
        .unwrap();
    assert_eq!(columns, render(&simple(), Format::Flamegraph, "").unwrap());
}

#[test]
fn no_name_leaves_the_element_that_holds_it() {
    for profile in [odd_names(), empty(), waits()] {
        let file = file(&profile, "</script><script>alert(1)</script> @@PROFILE@@");
        for id in ["a", "b"] {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
            assert!(part(&file, id).bytes().all(plain), "{file}");
        }
        assert!(!file.contains("<script") && !file.contains("@@"), "{file}");
    }
}

#[test]
fn without_a_viewer_the_format_says_so() {
    let missing = render(&simple(), Format::Html, "");
    assert!(matches!(missing, Err(RenderError::NoViewer)));
    let view = View {
        template: Some("<p>@@PROFILE@@</p>"),
        ..View::default()
    };
    let broken = render_view(&simple(), Format::Html, &view);
    assert!(matches!(broken, Err(RenderError::Template("@@ABOUT@@"))));
}
