use super::*;

fn redirect(setting: &str, location: &str) -> Result<String, RedirectError> {
    let server: DebuginfodServer = setting.parse().unwrap();
    server.redirect(&server.debug_file("abcd"), location)
}

#[test]
fn redirects_lead_to_the_server_itself_and_to_listed_hosts() {
    let same = "https://debug.example:8443";
    for (setting, location, expected) in [
        (same, "/x?y=1#z", "https://debug.example:8443/x?y=1"),
        (
            same,
            "other",
            "https://debug.example:8443/buildid/abcd/other",
        ),
        (
            same,
            "https://DEBUG.example:8443/x",
            "https://DEBUG.example:8443/x",
        ),
        (
            "https://debug.example",
            "https://debug.example:443/x",
            "https://debug.example:443/x",
        ),
        // Addresses: they are not resolved.
        (
            "https://debug.example,192.0.2.1",
            "//192.0.2.1/x",
            "https://192.0.2.1/x",
        ),
        (
            "http://debug.example,192.0.2.1:81",
            "http://192.0.2.1:81/x",
            "http://192.0.2.1:81/x",
        ),
        (
            "http://debug.example,[::1]:81",
            "http://[::1]:81/x",
            "http://[::1]:81/x",
        ),
        (
            "http://debug.example, localhost",
            "http://localhost/x",
            "http://localhost/x",
        ),
        (
            "http://debug.example,192.0.2.1",
            "https://192.0.2.1/x",
            "https://192.0.2.1/x",
        ),
    ] {
        assert_eq!(
            redirect(setting, location).as_deref(),
            Ok(expected),
            "{location}"
        );
    }
}

#[test]
fn redirects_elsewhere_are_refused_with_what_to_do() {
    for (setting, location, host) in [
        (
            "http://debug.example",
            "http://127.0.0.1:7596/latest/meta-data",
            "127.0.0.1:7596",
        ),
        (
            "http://debug.example",
            "http://169.254.169.254/",
            "169.254.169.254",
        ),
        ("http://debug.example", "//other.example/", "other.example"),
        (
            "http://debug.example",
            "http://debug.example:81/",
            "debug.example:81",
        ),
        (
            "http://debug.example",
            "https://debug.example/",
            "debug.example",
        ),
        (
            "http://debug.example",
            "http://debug.example@other.example/",
            "other.example",
        ),
        (
            "http://debug.example",
            "http://debug.example.other.example/",
            "debug.example.other.example",
        ),
        // Another port than the listed one.
        (
            "http://debug.example,192.0.2.1",
            "http://192.0.2.1:22/",
            "192.0.2.1:22",
        ),
        (
            "http://debug.example,192.0.2.1:81",
            "http://192.0.2.1/",
            "192.0.2.1",
        ),
        ("http://debug.example,192.0.2.1", "http://127.1/", "127.1"),
    ] {
        let error = redirect(setting, location).unwrap_err();
        assert_eq!(
            error,
            RedirectError::Unlisted(host.to_owned()),
            "{location}"
        );
        assert!(
            error
                .to_string()
                .ends_with(&format!("--debuginfod URL,{host}")),
            "{error}"
        );
    }
}

#[test]
fn a_name_that_stands_for_this_host_is_not_followed_and_https_stays() {
    let server: DebuginfodServer = "http://debug.example,mirror.example".parse().unwrap();
    let follow = |look_up| {
        let location = "http://mirror.example/x";
        server.checked("http://debug.example/", location, look_up)
    };
    assert_eq!(
        follow(|_, _| None).as_deref(),
        Ok("http://mirror.example/x")
    );
    let error = follow(|_, _| local_address("localhost", 80)).unwrap_err();
    assert!(
        matches!(&error, RedirectError::Local { address, .. } if address.is_loopback()),
        "{error:?}"
    );
    let error = redirect("https://debug.example,192.0.2.1", "http://192.0.2.1/x");
    assert_eq!(
        error,
        Err(RedirectError::Unencrypted("192.0.2.1".to_owned()))
    );
    for local in [
        "127.0.0.2",
        "169.254.169.254",
        "0.0.0.0",
        "::1",
        "fe80::1",
        "::ffff:127.0.0.1",
    ] {
        assert!(is_local(local.parse().unwrap()), "{local}");
    }
    for other in ["192.0.2.1", "10.0.0.1", "2001:db8::1", "::ffff:192.0.2.1"] {
        assert!(!is_local(other.parse().unwrap()), "{other}");
    }
}

#[test]
fn addresses_that_cannot_be_read_are_refused() {
    let long = format!("http://{}.example/", "a".repeat(1000));
    for location in [
        "",
        "#x",
        "ftp://debug.example/",
        "http://",
        "http://:80/",
        "http://a b/",
        &long,
    ] {
        let error = redirect("http://debug.example", location).unwrap_err();
        assert!(
            matches!(
                error,
                RedirectError::Unreadable | RedirectError::Unlisted(_)
            ),
            "{location}: {error}"
        );
    }
    assert_eq!(
        redirect("http://debug.example", &long),
        Err(RedirectError::Unreadable)
    );
}

#[test]
fn a_setting_is_printed_as_it_is_read() {
    for setting in [
        "https://debuginfod.debian.net",
        "http://u:p@debug.example:8002/a/,objects.example,192.0.2.1:81,[::1]:82",
    ] {
        let server: DebuginfodServer = setting.parse().unwrap();
        assert_eq!(server.to_string(), setting);
    }
    for wrong in ["debug.example", "ftp://a", "https://", "https://a?b"] {
        let problem = DebuginfodServer::from_str(wrong).unwrap_err();
        assert!(problem.starts_with("is not a server"), "{wrong}: {problem}");
    }
    for wrong in ["", " ", "http://b", "b/c", "u@b", "b:x", ":80", "b?c"] {
        let problem = DebuginfodServer::from_str(&format!("https://a,{wrong}")).unwrap_err();
        assert!(
            problem.starts_with("does not list hosts"),
            "{wrong:?}: {problem}"
        );
    }
}
