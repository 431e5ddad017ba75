//! The diagnosis against what switching a setting of Envoy off saves, on the stripped binary.

use profiler_tests::{
    agent::Agent,
    assert_measured,
    truth::{
        BASE, FELL_BEHIND, Load, Row, Setting, Window, compare, diagnose, rounds,
        verdict::wrong_findings,
    },
};

const ROUNDS: u32 = 4;
const SETTINGS: [&str; 3] = ["zipkin", "lua", "log-text"];

/// Parts of the usual load, tried in turn until the machine keeps up.
const SLOWER: [u32; 3] = [1, 2, 3];

/// Share of the samples that must be attributed to something.
const ATTRIBUTED: f64 = 60.0;

#[test]
fn settings_cost_what_switching_them_off_saves_and_their_findings_come_and_go() {
    let agent = Agent::start().unwrap();
    let settings = SETTINGS.map(|name| Setting::named(name).unwrap());
    let mut windows = Vec::new();
    let is_behind = |error: &anyhow::Error| format!("{error:#}").contains(FELL_BEHIND);
    let mut run = Ok(());
    // What a setting costs is said for each request: a slow machine has fewer of them.
    for slower in SLOWER {
        let load = Load {
            requests_per_second: Load::default().requests_per_second / slower,
            ..Load::default()
        };
        windows.clear();
        run = rounds::run(&agent, &settings, ROUNDS, 0, &load, |recorded| {
            for window in &recorded {
                windows.push(diagnose(&agent, window)?);
            }
            Ok(())
        });
        if !run.as_ref().is_err_and(is_behind) {
            break;
        }
        println!("{run:?}");
    }
    assert_measured!(!run.as_ref().is_err_and(is_behind), "{run:?}");
    run.unwrap_or_else(|error| panic!("{error:#}\nagent log:\n{}", agent.log()));
    let [zipkin, lua, log] = settings.map(|setting| compare(setting, &windows).unwrap());
    for row in [&zipkin, &lua, &log] {
        println!("{row:#?}");
    }

    // What is off is not found, and what is on is: in every run, or in nearly every run of the log.
    let (bases, wrong) = wrong_findings(&windows);
    assert_measured!(bases >= 4 && wrong.is_empty(), "{bases} windows: {wrong:?}");
    for row in [&zipkin, &lua, &log] {
        assert_measured!(row.found_enough == Some(true), "{row:#?}");
        assert_measured!(
            row.within == Some(true) || row.within_with_rest == Some(true),
            "{row:#?}"
        );
        // Never more than what is saved, and most of it.
        let attributed = row.attributed_us.unwrap();
        assert_measured!(attributed <= row.saved_us.mean + row.allowed_us, "{row:#?}");
        let most = row.saved_us.mean / 2.0 - row.saved_us.half_width;
        assert_measured!(attributed > 0.0 && attributed >= most, "{row:#?}");
    }
    // Nothing costs as much as tracing everything.
    assert_measured!(zipkin.first == zipkin.pairs, "{zipkin:#?}");
    assert_measured!(really_costs(&zipkin), "{zipkin:#?}");
    assert_measured!(lua.saved_us.mean > 0.0, "{lua:#?}");

    // The parts of the log: text is made on the worker, and another thread writes it.
    for feature in ["access_log_format", "access_log_write"] {
        assert_measured!(
            average(&windows, "log-text", &[feature]) > 0.0,
            "no {feature}: {log:#?}"
        );
        assert!(
            average(&windows, BASE, &[feature]) < 1e-9,
            "{feature} without a log"
        );
    }
    for feature in ["tracing", "lua"] {
        assert!(
            average(&windows, BASE, &[feature]) < 1e-9,
            "{feature} that is off"
        );
    }
    let unattributed = average(&windows, BASE, &["unattributed", "no_symbols"]);
    let whole = zipkin.without_us;
    assert_measured!(
        unattributed < whole * (100.0 - ATTRIBUTED) / 100.0,
        "{unattributed:.1} us of {whole:.1} have no feature"
    );
}

/// Whether more than nothing is saved, beyond doubt.
fn really_costs(row: &Row) -> bool {
    row.saved_us.mean > row.saved_us.half_width
}

/// Microseconds of a request that features have in the windows of a setting, in the client's sidecar.
#[expect(clippy::cast_precision_loss, reason = "there are few windows")]
fn average(windows: &[Window], setting: &str, features: &[&str]) -> f64 {
    let of: Vec<f64> = windows
        .iter()
        .filter(|window| window.setting == setting)
        .map(|window| window.client.features_us(features))
        .collect();
    of.iter().sum::<f64>() / of.len().max(1) as f64
}
