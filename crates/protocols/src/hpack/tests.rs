mod stories;

use super::{
    HpackDecoder, HpackError,
    decoder::integer,
    encoder::{Encoder, Form},
};
use crate::replay::Numbers;

/// Fields as text; `?` stands for what is not known.
fn decode(decoder: &mut HpackDecoder, block: &[u8]) -> Result<Vec<(String, String)>, HpackError> {
    let mut fields = Vec::new();
    let text = |bytes: Option<&[u8]>| {
        bytes.map_or("?".to_owned(), |bytes| {
            String::from_utf8(bytes.to_vec()).expect("text")
        })
    };
    decoder.decode(block, |field| {
        fields.push((text(field.name), text(field.value)));
    })?;
    Ok(fields)
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    let byte = |pair: &[u8]| {
        u8::from_str_radix(std::str::from_utf8(pair).expect("text"), 16).expect("digits")
    };
    digits.chunks(2).map(byte).collect()
}

fn check(decoder: &mut HpackDecoder, block: &str, fields: &[(&str, &str)]) {
    let expected: Vec<(String, String)> = fields
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    assert_eq!(decode(decoder, &hex(block)), Ok(expected), "{block}");
}

/// RFC 7541, appendix C.1: ten, 1337 and 42.
#[test]
fn integers_of_the_rfc() {
    for (bytes, prefix, value) in [
        (&[0x0a][..], 5, 10),
        (&[0xea], 5, 10),
        (&[0x1f, 0x9a, 0x0a], 5, 1337),
        (&[0x2a], 8, 42),
    ] {
        let mut rest = bytes;
        assert_eq!(integer(&mut rest, prefix), Ok(value), "{bytes:?}");
        assert!(rest.is_empty());
        for end in 0..bytes.len() {
            assert_eq!(integer(&mut &bytes[..end], prefix), Err(HpackError::Cut));
        }
    }
}

/// RFC 7541, appendix C.2, with what is in the table behind each.
#[test]
fn single_fields_of_the_rfc() {
    let custom = ("custom-key", "custom-header");
    for (block, field, inserted) in [
        (
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            custom,
            Some(custom),
        ),
        (
            "040c 2f73 616d 706c 652f 7061 7468",
            (":path", "/sample/path"),
            None,
        ),
        (
            "1008 7061 7373 776f 7264 0673 6563 7265 74",
            ("password", "secret"),
            None,
        ),
        ("82", (":method", "GET"), None),
    ] {
        let mut decoder = HpackDecoder::new(false);
        check(&mut decoder, block, &[field]);
        match inserted {
            Some(field) => check(&mut decoder, "be", &[field]),
            None => assert_eq!(decode(&mut decoder, &hex("be")), Err(HpackError::Malformed)),
        }
    }
}

const AUTHORITY: (&str, &str) = (":authority", "www.example.com");
const GET: (&str, &str) = (":method", "GET");

fn check_requests(blocks: [&str; 3]) {
    let mut decoder = HpackDecoder::new(false);
    let http = (":scheme", "http");
    check(
        &mut decoder,
        blocks[0],
        &[GET, http, (":path", "/"), AUTHORITY],
    );
    check(
        &mut decoder,
        blocks[1],
        &[
            GET,
            http,
            (":path", "/"),
            AUTHORITY,
            ("cache-control", "no-cache"),
        ],
    );
    check(
        &mut decoder,
        blocks[2],
        &[
            GET,
            (":scheme", "https"),
            (":path", "/index.html"),
            AUTHORITY,
            ("custom-key", "custom-value"),
        ],
    );
    // The table of appendix C.3.3, newest first.
    check(
        &mut decoder,
        "be bf c0",
        &[
            ("custom-key", "custom-value"),
            ("cache-control", "no-cache"),
            AUTHORITY,
        ],
    );
    assert_eq!(decode(&mut decoder, &hex("c1")), Err(HpackError::Malformed));
}

/// RFC 7541, appendices C.3 and C.4.
#[test]
fn requests_of_the_rfc() {
    check_requests([
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ]);
    check_requests([
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ]);
}

fn check_answers(blocks: [&str; 3]) {
    // The examples have a table of 256 bytes, which makes them evict.
    let mut decoder = HpackDecoder::new(false);
    check(&mut decoder, "3fe101", &[]);
    let cached = ("cache-control", "private");
    let date = ("date", "Mon, 21 Oct 2013 20:13:21 GMT");
    let location = ("location", "https://www.example.com");
    check(
        &mut decoder,
        blocks[0],
        &[(":status", "302"), cached, date, location],
    );
    check(
        &mut decoder,
        blocks[1],
        &[(":status", "307"), cached, date, location],
    );
    check(
        &mut decoder,
        blocks[2],
        &[
            (":status", "200"),
            cached,
            ("date", "Mon, 21 Oct 2013 20:13:22 GMT"),
            location,
            ("content-encoding", "gzip"),
            (
                "set-cookie",
                "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
            ),
        ],
    );
    // The table of appendix C.5.3: what was evicted is gone.
    check(
        &mut decoder,
        "be bf c0",
        &[
            (
                "set-cookie",
                "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
            ),
            ("content-encoding", "gzip"),
            ("date", "Mon, 21 Oct 2013 20:13:22 GMT"),
        ],
    );
    assert_eq!(decode(&mut decoder, &hex("c1")), Err(HpackError::Malformed));
}

/// RFC 7541, appendices C.5 and C.6.
#[test]
fn answers_of_the_rfc() {
    check_answers([
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a
         3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04
         677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49
         553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
    ]);
    check_answers([
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e
         919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7
         821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed
         4ee5 b106 3d50 07",
    ]);
}

#[test]
fn what_was_said_before_joining_is_unknown() {
    let mut encoder = Encoder::new();
    encoder.block(&[("x-old", "1")]);
    let mut decoder = HpackDecoder::new(true);
    let block = encoder.block(&[
        (":method", "GET"),
        ("x-old", "1"),
        ("x-old", "2"),
        ("x-new", "3"),
    ]);
    let known = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        decode(&mut decoder, &block),
        Ok(vec![
            known(":method", "GET"),
            known("?", "?"),
            known("?", "2"),
            known("x-new", "3")
        ])
    );
    let block = encoder.block(&[("x-new", "3"), ("x-old", "2"), ("x-old", "1")]);
    assert_eq!(
        decode(&mut decoder, &block),
        Ok(vec![known("x-new", "3"), known("?", "2"), known("?", "?")])
    );
}

#[test]
fn malformed_blocks_lose_the_table() {
    for (block, error) in [
        ("80", HpackError::Malformed),
        ("be", HpackError::Malformed),
        ("7f", HpackError::Cut),
        ("ffffffffffff7f", HpackError::Malformed),
        ("3fffffff7f", HpackError::Malformed),
        ("400a6375", HpackError::Cut),
        ("4081ff00", HpackError::Malformed),
    ] {
        let mut decoder = HpackDecoder::new(false);
        assert_eq!(decode(&mut decoder, &hex(block)), Err(error), "{block}");
        // Nothing that was not said since is taken for known.
        let unknown = ("?".to_owned(), "?".to_owned());
        assert_eq!(decode(&mut decoder, &hex("be")), Ok(vec![unknown]));
    }
}

const NAMES: [&str; 12] = [
    ":method",
    ":path",
    ":status",
    ":authority",
    "content-type",
    "x-request-id",
    "x-a",
    "x-b",
    "grpc-status",
    "user-agent",
    "cookie",
    "x-long-name-of-a-header-that-nobody-knows",
];

/// Joined at any block, or with a block lost: what is said is right.
#[test]
fn joined_late_nothing_is_wrong() {
    let mut known = [0; 2];
    for seed in 1..400 {
        let mut numbers = Numbers::new(seed);
        let mut encoder = Encoder::new();
        let joined = numbers.below(20);
        let mut decoder = None;
        for number in 0..60 {
            let mut block = Vec::new();
            if numbers.below(12) == 0 {
                let sizes = [0, 64, 100, 256, 4096, 20_000];
                encoder.resize(sizes[numbers.below(sizes.len())], &mut block);
            }
            encoder.uses_huffman = numbers.below(2) == 0;
            let mut sent = Vec::new();
            for _ in 0..numbers.below(8) {
                let name = NAMES[numbers.below(NAMES.len())];
                let length = [1, 2, 40, 300][numbers.below(4)];
                let letter = ["v", "w", "é"][numbers.below(3)];
                let value = letter.repeat(length);
                let form = [Form::Best, Form::Best, Form::Leave, Form::Never][numbers.below(4)];
                encoder.field(name, &value, form, &mut block);
                sent.push((name.to_owned(), value));
            }
            if number < joined {
                continue;
            }
            let decoder = decoder.get_or_insert_with(|| HpackDecoder::new(joined > 0));
            if numbers.below(25) == 0 {
                // The block was not captured whole: what its beginning says is right all the same.
                let cut = numbers.below(block.len() + 1);
                let mut found = Vec::new();
                let result = decoder.decode(&block[..cut], |field| {
                    found.push((
                        field.name.map(<[u8]>::to_vec),
                        field.value.map(<[u8]>::to_vec),
                    ));
                });
                assert!(result != Err(HpackError::Malformed), "{seed} {number}");
                for ((name, value), sent) in found.iter().zip(&sent) {
                    assert!(name.as_deref().is_none_or(|name| name == sent.0.as_bytes()));
                    assert!(
                        value
                            .as_deref()
                            .is_none_or(|value| value == sent.1.as_bytes())
                    );
                }
                decoder.lose();
                continue;
            }
            let found = decode(decoder, &block).expect("a sound block");
            assert_eq!(found.len(), sent.len());
            for (found, sent) in found.iter().zip(&sent) {
                for (found, sent) in [(&found.0, &sent.0), (&found.1, &sent.1)] {
                    assert!(
                        found == sent || found == "?",
                        "{seed} {number} {found} {sent}"
                    );
                    known[usize::from(found == sent)] += 1;
                }
            }
        }
    }
    let [unknown, known] = known;
    assert!(
        unknown > 1000 && known > 20 * unknown / 10,
        "{known} of {unknown}"
    );
}
