//! Paths to routes: what changes from request to request is folded, so that few routes remain.

use std::borrow::Cow;

use super::text::{printable_letter, printable_text};

/// Most bytes of a route.
pub(crate) const ROUTE_BYTES: usize = 256;
/// Segments of a path that are looked at.
const SEGMENTS: usize = 24;
/// Longest segment that is kept.
const SEGMENT_BYTES: usize = 64;
/// Shortest text that looks like a token when it mixes digits and letters.
const TOKEN_BYTES: usize = 20;
/// Shortest text of hexadecimal digits that is an id.
const HEX_BYTES: usize = 8;
/// Shortest one without a decimal digit.
const TWICE_HEX_BYTES: usize = 2 * HEX_BYTES;
/// Digits in a row that are a number even inside of other text; `v1` and `oauth2` stay.
const DIGITS: usize = 3;
const PARAMETERS: usize = 32;

/// Segments behind which a secret stands, however it looks.
const BEFORE_SECRETS: [&str; 17] = [
    "activate",
    "bot",
    "confirm",
    "invitation",
    "invitations",
    "invite",
    "invites",
    "key",
    "magic",
    "otp",
    "password-reset",
    "reset",
    "secret",
    "token",
    "unsubscribe",
    "verify",
    "webhook",
];
/// Shortest text behind a `:` or `,` that is taken for a secret when it is more than letters.
const PART_BYTES: usize = 16;

/// The route of a path: the query, the fragment and path parameters (`;a=b`) are dropped, numbers,
/// UUIDs, hexadecimal ids, tokens and mail addresses replaced by `{n}`, `{uuid}`, `{hex}`, `{id}` and
/// `{mail}`. At most 256 bytes long.
pub fn fold_path(path: &str) -> String {
    let (path, _) = split_query(path_of_target(path));
    let path = path.split('#').next().unwrap_or_default();
    let mut route = String::with_capacity(path.len().min(ROUTE_BYTES));
    let mut before = "";
    for (number, segment) in path.split('/').enumerate() {
        let folded = if is_before_secret(before) && !segment.is_empty() {
            Cow::Borrowed("{id}")
        } else if is_plain(segment) {
            Cow::Borrowed(segment)
        } else {
            Cow::Owned(fold_segment(segment))
        };
        before = segment;
        if number > SEGMENTS || route.len() + folded.len() + "/{rest}/".len() > ROUTE_BYTES {
            route.push_str("/{rest}");
            break;
        }
        if number > 0 {
            route.push('/');
        }
        route.push_str(&folded);
    }
    route
}

/// The route of a gRPC call: `/package.Service/Method` stays as it is; anything else is folded.
pub fn fold_grpc_path(path: &str) -> String {
    let is_name = |text: &str| {
        !text.is_empty()
            && text.len() < ROUTE_BYTES / 2
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
    };
    let mut parts = path.split('/');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(""), Some(service), Some(method), None) if is_name(service) && is_name(method) => {
            path.to_owned()
        }
        _ => fold_path(path),
    }
}

/// A path as it was sent, but with `?` for the values of its query and of its path parameters, and at
/// most `limit` bytes long.
pub fn mask_query(path: &str, limit: usize) -> String {
    let path = path_of_target(path);
    let path = path.split('#').next().unwrap_or_default();
    let (path, query) = split_query(path);
    let mut masked = String::new();
    let mut before = "";
    for (number, segment) in path.split('/').enumerate() {
        if number > 0 {
            masked.push('/');
        }
        let is_secret = is_before_secret(std::mem::replace(&mut before, segment));
        if is_secret && !segment.is_empty() {
            masked.push('?');
            continue;
        }
        if let Some(shown) = without_secret_parts(segment) {
            masked.push_str(&shown);
            continue;
        }
        match segment.split_once(';') {
            Some((name, _)) => {
                push_printable(&mut masked, name);
                masked.push_str(";?");
            }
            None => push_printable(&mut masked, segment),
        }
    }
    if let Some(query) = query {
        masked.push('?');
        for (number, parameter) in query.split(['&', ';']).take(PARAMETERS).enumerate() {
            if number > 0 {
                masked.push('&');
            }
            match parameter.split_once('=') {
                Some((name, _)) if is_parameter_name(name) => {
                    masked.push_str(name);
                    masked.push_str("=?");
                }
                Some(_) | None => masked.push('?'),
            }
        }
    }
    cut(&mut masked, limit);
    masked
}

/// The path, and the query behind its `?`. One that was encoded once more is taken for one as well: what stands
/// behind it may be as secret.
fn split_query(target: &str) -> (&str, Option<&str>) {
    let plain = target.find('?').map(|at| (at, 1));
    let encoded = find_encoded(target, "%3f").map(|at| (at, 3));
    let first = [plain, encoded].into_iter().flatten().min();
    let parts =
        first.and_then(|(at, length)| Some((target.get(..at)?, target.get(at + length..)?)));
    match parts {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    }
}

/// Where an encoded character is, whose `%` is looked for first.
fn find_encoded(text: &str, wanted: &str) -> Option<usize> {
    let percent = text.find('%')?;
    let rest = text.as_bytes().get(percent..)?;
    let mut windows = rest.windows(wanted.len());
    let found = windows.position(|window| window.eq_ignore_ascii_case(wanted.as_bytes()))?;
    Some(percent + found)
}

/// Cuts text to at most `limit` bytes, between characters.
pub(crate) fn cut(text: &mut String, limit: usize) {
    text.truncate(text.floor_char_boundary(limit));
}

/// The path of a request target in absolute form (`http://host/path`), or the target.
fn path_of_target(target: &str) -> &str {
    if target.starts_with('/') {
        return target;
    }
    let Some((scheme, rest)) = target.split_once("://") else {
        return target;
    };
    if scheme.is_empty() || !scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return target;
    }
    rest.find(['/', '?', '#'])
        .and_then(|at| rest.get(at..))
        .unwrap_or("/")
}

fn is_before_secret(segment: &str) -> bool {
    let segment = segment.split(';').next().unwrap_or_default();
    BEFORE_SECRETS
        .iter()
        .any(|word| segment.eq_ignore_ascii_case(word))
}

/// A segment of parts, as `bot12345:TOKEN`, with `{id}` for those that are secrets; none where none is.
fn without_secret_parts(segment: &str) -> Option<String> {
    let segment = segment.split(';').next().unwrap_or_default();
    let (first, _) = segment.split_once([':', ','])?;
    let of_bot = first.strip_prefix("bot").is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    let is_secret = |part: &str| {
        let bytes = part.as_bytes();
        let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
        // The method of a resource (`/v1/things:batchGet`) is of letters.
        let more = bytes.iter().any(|byte| !byte.is_ascii_alphabetic());
        of_bot
            || is_token(bytes, digits)
            || more && digits < bytes.len() && bytes.len() >= PART_BYTES
    };
    let mut shown = fold_digits(first);
    let mut found = false;
    let mut rest = segment.get(first.len()..).unwrap_or_default();
    while let Some(separator) = rest.chars().next() {
        let behind = rest.get(separator.len_utf8()..).unwrap_or_default();
        let end = behind.find([':', ',']).unwrap_or(behind.len());
        let (part, next) = behind.split_at(end);
        shown.push(separator);
        if is_secret(part) {
            found = true;
            shown.push_str("{id}");
        } else {
            shown.push_str(&fold_digits(part));
        }
        rest = next;
    }
    found.then_some(shown)
}

/// Whether a segment is a word that [`fold_segment`] leaves as it is, as most are: too short for a token or an id, without
/// separators, and with digits only where they are few between letters.
fn is_plain(segment: &str) -> bool {
    let (mut letters, mut digits) = (0, 0);
    for byte in segment.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => letters += 1,
            b'0'..=b'9' => digits += 1,
            b'-' | b'_' | b'.' => {}
            _ => return false,
        }
    }
    match segment.len() {
        0..HEX_BYTES => digits == 0 || digits < DIGITS && letters > 0,
        HEX_BYTES..TWICE_HEX_BYTES => digits == 0,
        _ => false,
    }
}

fn fold_segment(segment: &str) -> String {
    let segment = segment.split(';').next().unwrap_or_default();
    let bytes = segment.as_bytes();
    if bytes.is_empty() {
        return String::new();
    }
    if segment.contains('@') || find_encoded(segment, "%40").is_some() {
        return "{mail}".to_owned();
    }
    let digits = bytes.iter().filter(|byte| byte.is_ascii_digit()).count();
    if digits > 0
        && bytes
            .iter()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | b':' | b'_' | b','))
    {
        return "{n}".to_owned();
    }
    if is_uuid(bytes) {
        return "{uuid}".to_owned();
    }
    let is_hex = bytes.iter().all(u8::is_ascii_hexdigit);
    if is_hex && (bytes.len() >= HEX_BYTES && digits > 0 || bytes.len() >= TWICE_HEX_BYTES) {
        return "{hex}".to_owned();
    }
    if bytes.len() > SEGMENT_BYTES || is_token(bytes, digits) {
        return "{id}".to_owned();
    }
    without_secret_parts(segment).unwrap_or_else(|| fold_digits(segment))
}

/// 8-4-4-4-12 hexadecimal digits (RFC 9562, section 4).
fn is_uuid(bytes: &[u8]) -> bool {
    bytes.len() == 36
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Text like that of base64 or base62: long, of its letters, and with digits between the letters or
/// both cases mixed at random.
fn is_token(bytes: &[u8], digits: usize) -> bool {
    if bytes.len() < TOKEN_BYTES
        || !bytes.iter().all(|byte| {
            byte.is_ascii_alphanumeric()
                || matches!(byte, b'-' | b'_' | b'=' | b'+' | b'.' | b'~' | b'%')
        })
    {
        return false;
    }
    let kind = |byte: &u8| match byte {
        b'0'..=b'9' => 0,
        b'A'..=b'Z' => 1,
        b'a'..=b'z' => 2,
        _ => 3,
    };
    // Words change the kind of letter once per word; tokens every other letter.
    let changes = bytes
        .iter()
        .zip(bytes.iter().skip(1))
        .filter(|(one, next)| kind(one) != kind(next))
        .count();
    changes * 3 >= bytes.len() || digits * 4 >= bytes.len()
}

/// Long rows of digits to `{n}`; what cannot be printed is replaced.
fn fold_digits(segment: &str) -> String {
    let mut folded = String::with_capacity(segment.len());
    let mut digits = String::new();
    for letter in segment.chars() {
        if letter.is_ascii_digit() {
            digits.push(letter);
            continue;
        }
        push_digits(&mut folded, &mut digits);
        folded.push(printable_letter(letter));
    }
    push_digits(&mut folded, &mut digits);
    folded
}

fn push_digits(folded: &mut String, digits: &mut String) {
    if digits.len() >= DIGITS {
        folded.push_str("{n}");
    } else {
        folded.push_str(digits);
    }
    digits.clear();
}

fn push_printable(text: &mut String, more: &str) {
    text.push_str(&printable_text(more));
}

/// Whether text before a `=` is a name, and not a secret that holds a `=`.
fn is_parameter_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 32
        && name.bytes().all(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'[' | b']')
        })
}

#[cfg(test)]
mod tests;
