use profiler_protocols::Protocol;

use super::*;

/// `GET /users/*` that took 7 ms, moved 300 bytes and was answered with 404.
fn request() -> Exchange {
    Exchange {
        method: Some("GET".to_owned()),
        route: Some("/users/*".to_owned()),
        status: Some(Status::Http(404)),
        end_ns: 7_000_000,
        request_bytes: 100,
        response_bytes: 200,
        ..Exchange::new(Protocol::Http1, 0)
    }
}

fn rule() -> SampleRule {
    SampleRule::default()
}

#[track_caller]
fn check(rule: SampleRule, exchange: &Exchange, expected: bool) {
    let rules = Rules::compile(std::slice::from_ref(&rule)).unwrap();
    let found = rules.first_of(exchange);
    assert_eq!(found, expected.then_some(SampleReason::Rule(0)), "{rule:?}");
}

#[test]
fn each_condition_is_asked() {
    let operation = |text: &str| SampleRule {
        operation: Some(text.to_owned()),
        ..rule()
    };
    check(operation("^GET /users"), &request(), true);
    check(operation("^POST"), &request(), false);
    let slower = |min_duration_ns| SampleRule {
        min_duration_ns,
        ..rule()
    };
    check(slower(7_000_000), &request(), true);
    check(slower(7_000_001), &request(), false);
    let larger = |min_bytes| SampleRule {
        min_bytes,
        ..rule()
    };
    check(larger(300), &request(), true);
    check(larger(301), &request(), false);
    let class = |class| SampleRule {
        statuses: vec![class],
        ..rule()
    };
    check(class(StatusClass::ClientError), &request(), true);
    check(class(StatusClass::ServerError), &request(), false);
}

#[test]
fn all_conditions_of_a_rule_have_to_hold() {
    let both = SampleRule {
        operation: Some("users".to_owned()),
        min_duration_ns: 8_000_000,
        ..rule()
    };
    check(both, &request(), false);
}

#[test]
fn grpc_statuses_are_numbers() {
    let unavailable = Exchange {
        status: Some(Status::Grpc(14)),
        ..request()
    };
    let numbers = |grpc_statuses| SampleRule {
        grpc_statuses,
        ..rule()
    };
    check(numbers(vec![13, 14]), &unavailable, true);
    check(numbers(vec![13]), &unavailable, false);
    check(numbers(vec![14]), &request(), false);
}

#[test]
fn what_is_not_known_fits_no_condition_about_it() {
    let unknown = Exchange::new(Protocol::Http2, 0);
    let named = SampleRule {
        operation: Some("GET".to_owned()),
        ..rule()
    };
    check(named, &unknown, false);
    let failing = SampleRule {
        statuses: vec![StatusClass::ServerError],
        ..rule()
    };
    check(failing, &unknown, false);
}

#[test]
fn the_path_is_searched_where_it_is_kept() {
    let with_path = Exchange {
        path: Some("/users/17?q=_".to_owned()),
        ..request()
    };
    let exact = SampleRule {
        operation: Some("/users/17".to_owned()),
        ..rule()
    };
    check(exact.clone(), &with_path, true);
    check(exact, &request(), false);
}

#[test]
fn rules_that_cannot_be_used_say_why() {
    let error = |rules: &[SampleRule]| Rules::compile(rules).unwrap_err();
    assert_eq!(error(&[rule()]), RuleError::Empty(0));
    let named = |text: &str| SampleRule {
        operation: Some(text.to_owned()),
        ..rule()
    };
    assert_eq!(error(&vec![named("a"); 17]), RuleError::TooMany(17));
    assert!(matches!(
        error(&[named("a"), named("(")]),
        RuleError::Expression { number: 1, .. }
    ));
    let long = "a".repeat(513);
    assert_eq!(
        error(&[named(&long)]),
        RuleError::TooLong {
            number: 0,
            bytes: 513
        }
    );
    let huge = named("(a{1000}){1000}");
    assert!(matches!(
        error(&[huge]),
        RuleError::Expression { number: 0, .. }
    ));
}

#[test]
fn the_first_rule_that_holds_is_reported() {
    let named = |text: &str| SampleRule {
        operation: Some(text.to_owned()),
        ..rule()
    };
    let rules = Rules::compile(&[named("POST"), named("GET"), named("users")]).unwrap();
    assert_eq!(rules.first_of(&request()), Some(SampleReason::Rule(1)));
}
