//! Folded stacks, SVG and speedscope.

use std::io::Read as _;

use profiler_model::{Profile, printable::is_printable};
use prost::Message as _;
use serde_json::Value;

use crate::render::{self, Format, View, render, render_view};

use super::sketch::{PERIOD_NS, deep, empty, inferred, inlined, odd_names, simple};

fn text(profile: &Profile, format: Format) -> String {
    String::from_utf8(render(profile, format, "Task <7> & \"co\"").unwrap()).unwrap()
}

#[test]
fn the_numbers_of_waits_are_their_times_or_their_count() {
    let waits = super::sketch::waits();
    let folded = |value| {
        let view = View {
            value,
            ..View::default()
        };
        let bytes = render_view(&waits, Format::Folded, &view).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    let times = "work;main;lock;futex_wait_[k];__schedule_[k] 3540000\n";
    assert_eq!(folded(None), times);
    assert_eq!(folded(Some(render::Value::Duration)), times);
    assert_eq!(
        folded(Some(render::Value::Count)),
        "work;main;lock;futex_wait_[k];__schedule_[k] 5\n"
    );
}

#[test]
fn folded_stacks_in_the_style_of_perf() {
    let expected = "\
envoy (200);main;hot 10
envoy (300);hot 7
work;[stack lost] 1
work;[unknown]+0x7fff00001234 1
work;main;LazyCompile:~render app.js:12 2
work;main;cold 30
work;main;cold;ksys_write_[k] 5
work;main;hot 60
work;main;libstripped.so.1+0x4f0 1
";
    assert_eq!(text(&simple(), Format::Folded), expected);
    let expected = "\
work;main;run;add<u64>_[i] 4
work;main;run;sum_[i];add<u64>_[i] 8
work;main;sum 2
";
    assert_eq!(text(&inlined(), Format::Folded), expected);
    assert_eq!(text(&empty(), Format::Folded), "");
}

#[test]
fn inferred_names_are_marked() {
    let expected = "work;source/router.cc_[inferred];Router [vslot 7]_[inferred] 3\n";
    assert_eq!(text(&inferred(), Format::Folded), expected);
    let speedscope = text(&inferred(), Format::Speedscope);
    assert!(
        speedscope.contains("\"Router [vslot 7] [inferred]\""),
        "{speedscope}"
    );
}

#[test]
fn odd_names_break_no_line_and_no_count() {
    let folded = text(&odd_names(), Format::Folded);
    let mut total = 0;
    for line in folded.lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        total += count.parse::<u64>().unwrap();
        assert_eq!(stack.split(';').count(), 2, "{line:?}");
        assert!(
            stack
                .rsplit_once(' ')
                .is_none_or(|(_, last)| last.parse::<f64>().is_err())
        );
    }
    assert_eq!(folded.lines().count(), 8);
    assert_eq!(total, odd_names().total_count());
    assert!(folded.contains("<&:\">;a:b:c_3.5 6\n"));
    let visible = "<&:\">;a\\x0ab\\x09c\\x00d\\x1b[31m\\x7f\\u{85} 4\n";
    assert!(folded.contains(visible), "{folded:?}");
}

/// What `go tool pprof` and other readers write to a terminal as it is.
#[test]
fn no_name_in_an_export_steers_a_terminal() {
    let hostile: String = (0..0x20)
        .chain(0x7f..0xa0)
        .chain([0x61c, 0x200b, 0x200e, 0x202e, 0x2028, 0x2066, 0xfeff])
        .filter_map(char::from_u32)
        .collect();
    let hostile = format!("a{hostile}b");
    let mut profile = inlined();
    // The first one is the empty text.
    for text in profile.strings.iter_mut().skip(1) {
        text.push_str(&hostile);
    }
    for format in [
        Format::Folded,
        Format::Svg,
        Format::Speedscope,
        Format::Pprof,
    ] {
        let bytes = render(&profile, format, &hostile).unwrap();
        let texts = if format == Format::Pprof {
            pprof_texts(&bytes)
        } else {
            vec![String::from_utf8(bytes).unwrap()]
        };
        let mut seen = 0;
        for text in texts {
            // Lines of the format; names have none, as the number of stacks shows elsewhere.
            let lines = text.replace(['\n', '\r', '\t'], "");
            assert!(is_printable(&lines), "{format:?}: {lines:?}");
            seen += text.matches("\\x1b").count();
        }
        assert!(seen > 0, "{format:?}: the names are not in it");
    }
}

fn pprof_texts(bytes: &[u8]) -> Vec<String> {
    let mut message = Vec::new();
    flate2::read::GzDecoder::new(bytes)
        .read_to_end(&mut message)
        .unwrap();
    let profile = render::pprof::message::Profile::decode(message.as_slice()).unwrap();
    let texts = profile.string_table;
    assert!(texts.iter().all(|text| !text.contains(['\n', '\r', '\t'])));
    texts
}

#[test]
fn the_svg_names_its_title_and_functions_and_nothing_foreign() {
    let svg = text(&simple(), Format::Svg);
    assert!(svg.contains("Task &lt;7&gt; &amp;"), "title");
    assert!(
        svg.contains("hot (77 samples") || svg.contains("hot (60 samples"),
        "function"
    );
    for outside in [
        "href=\"http",
        "src=",
        "url(http",
        "@import",
        "@font-face",
        "<image",
    ] {
        assert!(
            !svg.contains(outside),
            "the picture refers to something outside: {outside}"
        );
    }
    assert_eq!(svg, text(&simple(), Format::Svg), "not deterministic");
}

#[test]
fn the_svg_escapes_names_and_draws_unusual_profiles() {
    let svg = text(&odd_names(), Format::Svg);
    assert!(svg.contains("&lt;script&gt;alert("));
    assert!(!svg.contains("<script>alert("));
    let forbidden = |character: char| character.is_control() && !"\n\t\r".contains(character);
    assert!(
        !svg.contains(forbidden),
        "control characters are not valid XML"
    );
    assert!(text(&deep(), Format::Svg).contains("level_1"));
    let none = text(&empty(), Format::Svg);
    assert!(none.contains("no samples") && none.contains("Task &lt;7&gt; &amp; &quot;co&quot;"));
}

#[test]
fn speedscope_has_one_profile_for_each_thread() {
    let file: Value = serde_json::from_str(&text(&simple(), Format::Speedscope)).unwrap();
    assert_eq!(
        file["$schema"],
        "https://www.speedscope.app/file-format-schema.json"
    );
    assert_eq!(file["name"], "Task <7> & \"co\"");
    let frames = file["shared"]["frames"].as_array().unwrap();
    let mut total = 0;
    let mut names = Vec::new();
    for profile in file["profiles"].as_array().unwrap() {
        names.push(profile["name"].as_str().unwrap());
        assert_eq!(
            (profile["type"].as_str(), profile["unit"].as_str()),
            (Some("sampled"), Some("nanoseconds"))
        );
        let samples = profile["samples"].as_array().unwrap();
        let weights = profile["weights"].as_array().unwrap();
        assert_eq!(samples.len(), weights.len());
        for index in samples.iter().flat_map(|stack| stack.as_array().unwrap()) {
            assert!(usize::try_from(index.as_u64().unwrap()).unwrap() < frames.len());
        }
        let weight: u64 = weights.iter().map(|weight| weight.as_u64().unwrap()).sum();
        assert_eq!(profile["endValue"].as_u64(), Some(weight));
        total += weight;
    }
    assert_eq!(total, 117 * PERIOD_NS);
    assert_eq!(
        names,
        [
            "work / work (tid 100)",
            "envoy (200) / wrk:worker_0 (tid 201)",
            "envoy (300) / wrk:worker_0 (tid 301)"
        ]
    );
    let root = file["profiles"][0]["samples"][0][0].as_u64().unwrap();
    assert_eq!(frames[usize::try_from(root).unwrap()]["name"], "main");
}

#[test]
fn speedscope_keeps_inlined_functions_with_their_lines() {
    let file: Value = serde_json::from_str(&text(&inlined(), Format::Speedscope)).unwrap();
    let stack: Vec<(&str, u64)> = file["profiles"][0]["samples"][0]
        .as_array()
        .unwrap()
        .iter()
        .map(|index| &file["shared"]["frames"][usize::try_from(index.as_u64().unwrap()).unwrap()])
        .map(|frame| {
            (
                frame["name"].as_str().unwrap(),
                frame["line"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        stack,
        [("main", 10), ("run", 40), ("sum", 7), ("add<u64>", 3)]
    );
}
