//! Which headers of a message are kept, and which never show their value.

use super::{
    Privacy,
    route::{cut, mask_query},
    text::printable_text,
};

/// What stands for a value that must not be seen.
pub const REDACTED: &str = "[redacted]";
/// Most bytes of a value.
const VALUE_BYTES: usize = 256;
/// Most bytes of a name that is asked for.
const NAME_BYTES: usize = 64;

/// What becomes of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Treatment {
    /// It is not looked at further.
    Drop,
    Keep,
    /// Its name is kept; its value is [`REDACTED`].
    Redact,
    /// It holds an address: kept with the values of its query masked.
    MaskQuery,
}

/// Headers that say how a message is to be read or which way it took, and hold no secret.
const KEPT: [&str; 23] = [
    "accept-ranges",
    "age",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "grpc-encoding",
    "grpc-previous-rpc-attempts",
    "grpc-status",
    "grpc-timeout",
    "retry-after",
    "server",
    "te",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
    "x-cache",
    "x-envoy-attempt-count",
    "x-envoy-expected-rq-timeout-ms",
    "x-envoy-overloaded",
    "x-envoy-upstream-service-time",
    "x-powered-by",
];

/// Headers that most messages have and that hold no secret; with [`KEPT`] they are told without a look at the parts of their names.
const USUAL: [&str; 12] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "connection",
    "date",
    "etag",
    "host",
    "last-modified",
    "x-envoy-decorator-operation",
    "x-forwarded-proto",
    "x-request-id",
];

/// Parts of names that tell of a secret: `x-auth-token`, `set-cookie`, `x-forwarded-client-cert`.
const SECRET_WORDS: [&str; 27] = [
    "apikey",
    "auth",
    "authentication",
    "authorization",
    "bearer",
    "cert",
    "certificate",
    "cookie",
    "cookie2",
    "credential",
    "credentials",
    "csrf",
    "csrftoken",
    "jwt",
    "key",
    "pass",
    "passwd",
    "password",
    "secret",
    "session",
    "sessionid",
    "sid",
    "signature",
    "token",
    "tokens",
    "xfcc",
    "xsrf",
];

/// Names that hold a secret without a word that says so.
const SECRET_NAMES: [&str; 4] = [
    "authority-token",
    "x-amz-content-sha256",
    "x-goog-iap-jwt-assertion",
    "x-ms-client-principal",
];

/// Headers whose value is an address.
const ADDRESSES: [&str; 8] = [
    "content-location",
    "link",
    "location",
    "origin",
    "referer",
    "x-envoy-original-path",
    "x-original-uri",
    "x-original-url",
];

/// What becomes of the header of a name in lower case. A secret stays one, whatever users ask for.
pub(crate) fn treatment(name: &str, privacy: &Privacy) -> Treatment {
    let is = |listed: &String| listed.eq_ignore_ascii_case(name);
    let is_kept = KEPT.binary_search(&name).is_ok();
    let is_known = is_kept || USUAL.binary_search(&name).is_ok();
    if (!is_known && is_secret(name)) || privacy.redacted_headers.iter().any(is) {
        return Treatment::Redact;
    }
    if is_kept {
        return Treatment::Keep;
    }
    if name.len() > NAME_BYTES || !privacy.kept_headers.iter().any(is) {
        return Treatment::Drop;
    }
    if ADDRESSES.contains(&name) {
        Treatment::MaskQuery
    } else {
        Treatment::Keep
    }
}

/// The header as it may leave a decoder: `name` in lower case, values bounded, printable, and redacted
/// where they must be.
pub(crate) fn keep(name: &str, value: &str, privacy: &Privacy) -> Option<(String, String)> {
    let value = match treatment(name, privacy) {
        Treatment::Drop => return None,
        Treatment::Redact => {
            // An unknown name is untrusted text.
            let mut name = name.to_owned();
            cut(&mut name, NAME_BYTES);
            return Some((name, REDACTED.to_owned()));
        }
        Treatment::MaskQuery => mask_query(value, VALUE_BYTES),
        Treatment::Keep => {
            let mut text = printable_text(value.trim_ascii());
            cut(&mut text, VALUE_BYTES);
            text
        }
    };
    Some((name.to_owned(), value))
}

fn is_secret(name: &str) -> bool {
    SECRET_NAMES.contains(&name)
        || name
            .split(['-', '_', '.'])
            .any(|word| SECRET_WORDS.binary_search(&word).is_ok())
        || ["token", "password", "secret", "cookie", "apikey"]
            .iter()
            .any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::{KEPT, REDACTED, SECRET_WORDS, USUAL, is_secret, keep};
    use crate::Privacy;

    fn check(name: &str, value: &str, kept: Option<&str>) {
        let found = keep(name, value, &asked());
        assert_eq!(found.map(|(_, value)| value).as_deref(), kept, "{name}");
    }

    #[test]
    fn useful_headers_are_kept() {
        check("content-type", " text/html ", Some("text/html"));
        check("user-agent", "curl/7", Some("curl/7"));
        check("accept-language", "de", None);
        check("x-tenant", "blue", Some("blue"));
    }

    #[test]
    fn secrets_are_redacted_whatever_is_asked_for() {
        for name in [
            "authorization",
            "proxy-authorization",
            "cookie",
            "set-cookie",
            "x-api-key",
            "x-auth-token",
            "x-access-token",
            "x-csrftoken",
            "x-forwarded-client-cert",
            "x-amz-security-token",
            "x-internal",
            "sec-websocket-key",
        ] {
            check(name, "canary", Some(REDACTED));
        }
    }

    #[test]
    fn addresses_are_masked() {
        check("location", "https://host/a?code=canary", Some("/a?code=?"));
        check("referer", "/a?code=canary", None);
    }

    #[test]
    fn values_are_bounded_and_printable() {
        check("server", "a\u{1b}b", Some("a\u{fffd}b"));
        check("server", &"é".repeat(500), Some(&"é".repeat(128)));
    }

    #[test]
    fn lists_are_sorted() {
        assert!(KEPT.is_sorted() && USUAL.is_sorted() && SECRET_WORDS.is_sorted());
    }

    #[test]
    fn no_known_header_is_a_secret() {
        for name in KEPT.iter().chain(&USUAL) {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn known_headers_are_redacted_where_that_is_asked_for() {
        let privacy = Privacy {
            redacted_headers: vec!["Server".to_owned(), "host".to_owned()],
            ..asked()
        };
        for name in ["server", "host"] {
            let kept = keep(name, "canary", &privacy).map(|(_, value)| value);
            assert_eq!(kept.as_deref(), Some(REDACTED), "{name}");
        }
    }

    fn asked() -> Privacy {
        let names = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect();
        Privacy {
            body_bytes: 0,
            raw_paths: false,
            redacted_headers: names(&["X-Internal"]),
            kept_headers: names(&["x-tenant", "authorization", "location"]),
        }
    }
}
