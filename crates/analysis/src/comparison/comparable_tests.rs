use super::*;

fn process(exe: &str, share_percent: f64) -> SideProcess {
    let set = if exe.contains("envoy") {
        "envoy"
    } else {
        "generic"
    };
    SideProcess::named("comm", exe, set, share_percent)
}

fn side(processes: &[(&str, f64)]) -> Side {
    Side {
        samples: 1000,
        processes: processes
            .iter()
            .map(|(exe, share)| process(exe, *share))
            .collect(),
        not_measured: Some(vec![Measurement::Latency]),
        ..Side::default()
    }
}

fn check(a: &[(&str, f64)], b: &[(&str, f64)]) -> Result<(), NotComparable> {
    check_sides(&side(a), &side(b))
}

#[test]
fn a_process_of_one_side_alone_is_named() {
    let before = [
        ("/bin/envoy", 60.0),
        ("/bin/server", 28.0),
        ("/bin/zipkin-sink", 12.0),
    ];
    let error = check(&before, &before[..2]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the check-ups are of different processes: zipkin-sink: 1 before (12.0 % of the CPU samples), 0 \
         after (0.0 %)"
    );
    assert!(check(&before[..2], &before).is_err());
}

#[test]
fn the_same_programs_after_a_restart_are_the_same_set() {
    let before = [
        ("/bin/envoy", 90.0),
        ("/bin/server", 9.5),
        ("/bin/curl", 0.5),
    ];
    let after = [("/bin/envoy (deleted)", 80.0), ("/bin/server", 20.0)];
    assert_eq!(check(&before, &after), Ok(()));
    assert_eq!(check(&after, &before), Ok(()));
}

#[test]
fn envoys_are_counted_and_processes_of_a_server_that_forks_are_not() {
    let one = [("/bin/envoy", 100.0)];
    let two = [("/bin/envoy", 50.0), ("/bin/envoy", 50.0)];
    assert!(check(&one, &two).is_err() && check(&two, &one).is_err());
    let forked = [("/bin/postgres", 60.0), ("/bin/postgres", 40.0)];
    assert_eq!(check(&forked[..1], &forked), Ok(()));
}

#[test]
fn what_was_measured_on_one_side_alone_is_not_compared() {
    let a = side(&[]);
    let mut b = side(&[]);
    b.not_measured = Some(vec![Measurement::Latency, Measurement::Waits]);
    let error = check_sides(&a, &b).unwrap_err().to_string();
    assert_eq!(error, "waits were measured in the earlier check-up alone");
    let error = check_sides(&b, &a).unwrap_err().to_string();
    assert_eq!(error, "waits were measured in the later check-up alone");
    assert_eq!(check_sides(&b, &b), Ok(()));
    // Documents of earlier versions do not say it.
    b.not_measured = None;
    assert_eq!(check_sides(&a, &b), Ok(()));
}

#[test]
fn few_samples_are_not_compared() {
    let mut few = side(&[]);
    few.samples = FEWEST - 1;
    let error = have_samples(&side(&[]), &few).unwrap_err();
    assert_eq!(
        error,
        NotComparable::FewSamples {
            which: Which::Later,
            samples: 99
        }
    );
    assert_eq!(check_samples(Which::Later, &few), Err(error));
    few.samples = FEWEST;
    assert_eq!(have_samples(&side(&[]), &few), Ok(()));
    assert_eq!(check_samples(Which::Later, &few), Ok(()));
}
