use super::*;
use crate::truth::SETTINGS;

const REQUESTS: u64 = 1000;

fn measured(us_per_request: u64, cells: &[(&str, f64)], findings: &[&str]) -> Measured {
    Measured {
        cpu_ns: us_per_request * 1000 * REQUESTS,
        requests: REQUESTS,
        samples: 1000,
        cells: cells
            .iter()
            .map(|(cell, share)| ((*cell).to_owned(), *share))
            .collect(),
        findings: findings.iter().map(|id| (*id).to_owned()).collect(),
    }
}

fn window(setting: &str, group: u32, client: Measured) -> Window {
    let server = client.clone();
    Window {
        setting: setting.to_owned(),
        group,
        client,
        server,
    }
}

fn setting(name: &str) -> &'static Setting {
    SETTINGS
        .iter()
        .find(|setting| setting.name == name)
        .unwrap()
}

/// Two rounds: 50 us without, 100 us with, of which `share` percent are attributed to tracing.
fn zipkin(share: f64) -> Row {
    let base = || {
        measured(
            50,
            &[("http_codec/parse", 60.0), ("event_loop/syscall", 40.0)],
            &[],
        )
    };
    let on = || {
        measured(
            100,
            &[
                ("tracing/allocation", share),
                ("http_codec/parse", 30.0),
                ("event_loop/syscall", 70.0 - share),
            ],
            &["tracing", "stats_record"],
        )
    };
    let windows: Vec<Window> = (0..2)
        .flat_map(|round| [window(BASE, round, base()), window("zipkin", round, on())])
        .collect();
    compare(setting("zipkin"), &windows).unwrap()
}

#[test]
fn what_is_attributed_fits_what_is_saved() {
    let row = zipkin(48.0);
    assert!((row.saved_us.mean - 50.0).abs() < 1e-9);
    assert!((row.attributed_us.unwrap() - 48.0).abs() < 1e-9);
    // 20 % of 50 us; equal rounds leave no uncertainty.
    assert!((row.allowed_us - 10.0).abs() < 1e-9);
    assert_eq!(row.within, Some(true));
    assert_eq!((row.found, row.first, row.found_enough), (2, 2, Some(true)));
}

#[test]
fn too_little_is_not_within_and_the_rest_is_shown_by_cell() {
    let row = zipkin(30.0);
    assert_eq!(row.within, Some(false));
    // The finding says that the connection to the collector is there, too: 20 us more than without.
    assert_eq!(row.within_with_rest, Some(true));
    // 40 of 100 us with, 20 of 50 us without.
    assert_eq!(row.elsewhere.len(), 1);
    assert_eq!(row.elsewhere[0].0, "event_loop/syscall");
    assert!((row.elsewhere[0].1 - 20.0).abs() < 1e-9);
}

#[test]
fn features_that_are_always_there_count_by_their_growth() {
    let base = measured(50, &[("stats_record/other", 10.0)], &[]);
    let on = measured(60, &[("stats_record/other", 20.0)], &[]);
    let windows = [
        window(BASE, 0, base.clone()),
        window("statistics", 0, on.clone()),
        window(BASE, 1, base),
        window("statistics", 1, on),
    ];
    let row = compare(setting("statistics"), &windows).unwrap();
    // 12 us with, 5 us without.
    assert!((row.attributed_us.unwrap() - 7.0).abs() < 1e-9);
    assert_eq!(row.found_enough, None);
}

#[test]
fn rounds_without_a_base_do_not_count() {
    let on = measured(60, &[], &[]);
    let windows = [window("lua", 0, on.clone()), window("lua", 1, on)];
    assert!(compare(setting("lua"), &windows).is_none());
}

#[test]
fn findings_about_what_is_off_are_wrong() {
    let windows = [
        window(
            BASE,
            0,
            measured(50, &[], &["stats_record", "http1_upstream"]),
        ),
        window(BASE, 1, measured(50, &[], &["tracing"])),
        window("zipkin", 1, measured(50, &[], &["tracing"])),
    ];
    let (count, wrong) = wrong_findings(&windows);
    assert_eq!(count, 2);
    // Of both sidecars.
    assert_eq!(wrong, ["tracing", "tracing"]);
}
