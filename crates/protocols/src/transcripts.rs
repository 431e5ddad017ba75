//! Conversations of real peers (nginx with curl and h2load, nghttpd with nghttp and curl), whole and in
//! random pieces.

use crate::{
    Candidate, Direction, Exchange, HTTP1, HTTP2, Outcome, Status,
    replay::{CLIENT, Cuts, Numbers, SERVER, play, play_cut},
};

/// Records of a file: the direction, the length in four bytes, the bytes.
fn records(file: &[u8]) -> Vec<(Direction, Vec<u8>)> {
    let mut records = Vec::new();
    let mut rest = file;
    while let [side, behind @ ..] = rest {
        let (length, behind) = behind.split_first_chunk().expect("a length");
        let length = usize::try_from(u32::from_be_bytes(*length)).expect("a size");
        let (bytes, behind) = behind.split_at(length);
        records.push((if *side == 0 { CLIENT } else { SERVER }, bytes.to_vec()));
        rest = behind;
    }
    records
}

/// One exchange without its times, `?` for what is not known.
fn line(found: &Exchange) -> String {
    let status = match &found.status {
        Some(Status::Http(status)) => status.to_string(),
        _ => "?".to_owned(),
    };
    let size = |bytes: u64, is_known| {
        if is_known {
            bytes.to_string()
        } else {
            "?".to_owned()
        }
    };
    let sizes = match (found.request_size_known, found.response_size_known) {
        (false, false) => "?".to_owned(),
        (request, response) => format!(
            "{}+{}",
            size(found.request_bytes, request),
            size(found.response_bytes, response)
        ),
    };
    format!(
        "{} {} {status} {sizes}",
        found.method.as_deref().unwrap_or("?"),
        found.route.as_deref().unwrap_or("?"),
    )
}

/// Whether what was found is what was sent, as far as it is known.
fn agrees(found: &str, sent: &str) -> bool {
    let parts = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let (found, sent) = (parts(found), parts(sent));
    let fits = |(found, sent): (&str, &str)| found == sent || found == "?";
    let mut pairs = found.iter().zip(&sent);
    pairs.all(
        |(found, sent)| match (found.split_once('+'), sent.split_once('+')) {
            // The sizes of both directions.
            (Some(found), Some(sent)) => fits((found.0, sent.0)) && fits((found.1, sent.1)),
            _ => fits((found, sent)),
        },
    )
}

fn check(candidate: &Candidate, file: &[u8], sent: &[&str]) {
    let records = records(file);
    let said: Vec<(Direction, &[u8])> = records
        .iter()
        .map(|(direction, bytes)| (*direction, bytes.as_slice()))
        .collect();
    let whole = play(candidate, &said);
    assert!(!format!("{whole:?}").contains("canary"));
    let mut lines: Vec<String> = whole.iter().map(line).collect();
    lines.sort();
    let mut expected = sent.to_vec();
    expected.sort_unstable();
    assert_eq!(lines, expected);
    let mut numbers = Numbers::new(3);
    let mut known = 0;
    for seed in 0..300 {
        let longest = 1 + numbers.below(2000);
        let captured = if seed % 3 == 0 {
            usize::MAX
        } else {
            20 + numbers.below(1500)
        };
        let cuts = Cuts {
            seed,
            longest,
            captured,
        };
        let found = play_cut(candidate, &said, cuts);
        if captured >= longest {
            let mut lines: Vec<String> = found.iter().map(line).collect();
            lines.sort();
            assert_eq!(lines, expected, "{cuts:?}");
        }
        for found in &found {
            let same = |sent: &&&str| agrees(&line(found), sent);
            assert!(
                expected.iter().find(same).is_some(),
                "{found:?} of {cuts:?}"
            );
            known += usize::from(found.outcome != Outcome::Unknown);
        }
    }
    assert!(known > 100 * sent.len(), "{known}");
}

#[test]
fn curl_and_nginx_over_http1() {
    check(
        &HTTP1,
        include_bytes!("../../../tests/fixtures/protocols/curl_http1.bin"),
        &[
            "GET /index.html 200 0+6",
            "GET /big.txt 200 0+49",
            "HEAD /big.txt 200 0+0",
            "POST /made 201 3000+5",
            "GET /missing/{n} 404 0+153",
            "GET /none 204 0+0",
            "GET /fail 503 0+197",
        ],
    );
}

#[test]
fn curl_and_nghttpd_over_http2() {
    check(
        &HTTP2,
        include_bytes!("../../../tests/fixtures/protocols/curl_http2.bin"),
        &["GET /index.html 200 0+6"],
    );
}

#[test]
fn nghttp_and_nghttpd() {
    check(
        &HTTP2,
        include_bytes!("../../../tests/fixtures/protocols/nghttp.bin"),
        &[
            "GET /index.html 200 0+6",
            "GET /index.html 200 0+6",
            "GET /index.html 200 0+6",
            "GET /index.html 200 0+6",
            "GET /index.html 200 0+6",
            "GET /index.html 200 0+6",
            "GET /big.txt 200 0+3000",
            "GET /big.txt 200 0+3000",
            "GET /big.txt 200 0+3000",
            "GET /missing/{n} 404 0+148",
            "GET /missing/{n} 404 0+148",
            "GET /missing/{n} 404 0+148",
        ],
    );
}

#[test]
fn h2load_and_nginx() {
    check(
        &HTTP2,
        include_bytes!("../../../tests/fixtures/protocols/h2load.bin"),
        &["GET /index.html 200 0+6"; 24],
    );
}
