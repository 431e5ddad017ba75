use super::{ROUTE_BYTES, fold_grpc_path, fold_path, fold_segment, is_plain, mask_query};

fn check(path: &str, route: &str) {
    assert_eq!(fold_path(path), route, "{path}");
}

#[test]
fn numbers_are_folded() {
    check("/users/42", "/users/{n}");
    check("/users/42/orders/7", "/users/{n}/orders/{n}");
    check("/reports/2024-01-31", "/reports/{n}");
    check("/order-12345/item", "/order-{n}/item");
    check("/image_2023.png", "/image_{n}.png");
}

#[test]
fn names_with_few_digits_stay() {
    for path in [
        "/",
        "/api/v1/users",
        "/oauth2/token",
        "/s3/bucket",
        "/static/app.js",
        "*",
        "/list-all-customer-accounts-by-region",
        "/getCustomerAccountDetails",
        "/helloworld.Greeter/SayHello",
        "/users/",
    ] {
        check(path, path);
    }
}

#[test]
fn ids_are_folded() {
    check("/u/123e4567-e89b-12d3-a456-426614174000/x", "/u/{uuid}/x");
    check("/commit/deadbeef01", "/commit/{hex}");
    check("/commit/DEADBEEFDEADBEEF", "/commit/{hex}");
    check("/d/abcdef", "/d/abcdef");
    check("/t/eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9", "/t/{id}");
    check("/t/1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms", "/t/{id}");
    check("/m/ann@example.com", "/m/{mail}");
    check("/m/ann%40example.com", "/m/{mail}");
    check(&format!("/x/{}", "é".repeat(50)), "/x/{id}");
}

#[test]
fn what_follows_the_path_is_dropped() {
    check("/a?b=c&d=e/f", "/a");
    check("/a#b", "/a");
    check("/a;jsessionid=1234/b", "/a/b");
    check("?secret", "");
}

#[test]
fn absolute_targets_are_those_of_their_path() {
    check("http://user:word@host:80/a/1?x", "/a/{n}");
    check("https://host", "/");
    check("https://host?x=y", "");
    assert_eq!(mask_query("http://user:word@host/a?b=c", 99), "/a?b=?");
}

#[test]
fn routes_are_bounded_and_printable() {
    let long = fold_path(&"/ab".repeat(1000));
    assert!(
        long.len() <= ROUTE_BYTES && long.ends_with("/{rest}"),
        "{long}"
    );
    assert!(fold_path(&"/abcdefghij".repeat(20)).len() <= ROUTE_BYTES);
    check("/a\u{1b}[31m\n", "/a\u{fffd}[31m\u{fffd}");
}

#[test]
fn grpc_paths_stay() {
    for path in ["/acme.v1.Orders/Get", "/acme.v2024.Orders/Get1234"] {
        assert_eq!(fold_grpc_path(path), path);
    }
    assert_eq!(fold_grpc_path("/a/b/123"), "/a/b/{n}");
    assert_eq!(fold_grpc_path("/a.B/C?x=y"), "/a.B/C");
}

#[test]
fn values_of_queries_are_masked() {
    let check = |path: &str, masked: &str| assert_eq!(mask_query(path, 512), masked, "{path}");
    check("/users/42", "/users/42");
    check("/a?b=secret&c=&d=x=y", "/a?b=?&c=?&d=?");
    check("/a?secret", "/a??");
    check("/a?secret&b=c", "/a??&b=?");
    check("/a?c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0==", "/a??");
    check("/a;token=secret/b", "/a;?/b");
    check("/a?b=c#secret", "/a?b=?");
    assert_eq!(mask_query("/ééé", 4), "/é");
}

#[test]
fn a_query_that_was_encoded_once_more_is_one() {
    for path in [
        "/a.html%3Ftok=secret",
        "/a.html%3ftok=secret",
        "/a.html%3Ftok=secret?x=secret",
    ] {
        assert_eq!(fold_path(path), "/a.html", "{path}");
        let masked = mask_query(path, 100);
        assert!(
            masked.starts_with("/a.html?") && !masked.contains("secret"),
            "{masked}"
        );
    }
}

#[test]
fn secrets_that_look_like_words_are_known_by_their_place() {
    check(
        "/bot123456:AABBccddEEff-gghhIIjjKKll/sendMessage",
        "/bot{n}:{id}/sendMessage",
    );
    check("/bot123456:Abc/getMe", "/bot{n}:{id}/getMe");
    check("/invite/CANARYxY9k", "/invite/{id}");
    check("/Reset/CANARY/done", "/Reset/{id}/done");
    check("/hooks/a,c2VjcmV0LXNlY3JldC1z", "/hooks/a,{id}");
    for path in [
        "/v1/projects/x:batchGetEffectiveIamPolicies",
        "/oauth2/token",
        "/token/",
        "/a:b,c",
    ] {
        check(path, path);
    }
    let masked = |path: &str| mask_query(path, 512);
    assert_eq!(masked("/invite/CANARY/x?a=b"), "/invite/?/x?a=?");
    assert_eq!(masked("/bot1:CANARY/getMe"), "/bot1:{id}/getMe");
    assert_eq!(masked("/a:b/42"), "/a:b/42");
}

#[test]
fn a_plain_segment_is_one_that_stays() {
    let letters = *b"aZf09-_.~:,;%@$ \x7f";
    let (mut number, mut plain) = (7_u64, 0);
    for _ in 0..200_000 {
        let mut next = |below: usize| {
            number = number.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(11);
            usize::try_from(number >> 33).unwrap() % below
        };
        // Most are of the first letters, and short.
        let kinds = 1 + next(letters.len());
        let length = next(24);
        let segment: String = (0..length)
            .map(|_| char::from(letters[next(kinds)]))
            .collect();
        if is_plain(&segment) {
            plain += 1;
            assert_eq!(fold_segment(&segment), segment);
        }
    }
    assert!(plain > 10_000, "{plain}");
}
