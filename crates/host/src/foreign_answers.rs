//! Bounds what answers of other programs become when they are decoded: an element of two bytes may take hundreds in
//! memory, so a bound on bytes alone bounds little. Elements are counted before anything is made of them.

use bytes::Buf;
use serde::de::DeserializeOwned;

/// Most elements of all lists of an answer together: some for each of the ten thousand clusters of a large mesh.
const MAX_ELEMENTS: usize = 250_000;
/// Most fields of all objects together.
const MAX_FIELDS: usize = 1_000_000;
/// Most fields of a protobuf message and of those in it: some for each container and label of a node.
const MAX_MESSAGE_FIELDS: usize = 400_000;
/// Deepest nesting that is distinguished; the JSON library refuses as much.
const MAX_DEPTH: u32 = 128;

/// Why an answer is not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AnswerError {
    #[error("it has more than {limit} {what}")]
    TooMany { what: &'static str, limit: usize },
    #[error("it is nested too deeply")]
    TooDeep,
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// Decodes JSON whose lists and objects are not too long.
pub(crate) fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, AnswerError> {
    check_json(body, MAX_ELEMENTS, MAX_FIELDS)?;
    Ok(serde_json::from_slice(body)?)
}

/// Counts what stands between brackets. Text that is not JSON passes or fails, and is refused by the decoder.
fn check_json(body: &[u8], elements: usize, fields: usize) -> Result<(), AnswerError> {
    // One bit for each open bracket, the innermost lowest: whether it is a list.
    let mut lists = 0_u128;
    let mut depth = 0;
    let (mut seen_elements, mut seen_fields) = (0, 0);
    let mut bytes = body.iter();
    while let Some(byte) = bytes.next() {
        let begins_one = match byte {
            b'"' => {
                while let Some(byte) = bytes.next() {
                    match byte {
                        b'"' => break,
                        b'\\' => drop(bytes.next()),
                        _ => {}
                    }
                }
                false
            }
            b'[' | b'{' => {
                if depth == MAX_DEPTH {
                    return Err(AnswerError::TooDeep);
                }
                depth += 1;
                lists = lists << 1 | u128::from(*byte == b'[');
                true
            }
            b']' | b'}' => {
                depth = depth.saturating_sub(1);
                lists >>= 1;
                false
            }
            b',' => true,
            _ => false,
        };
        if begins_one {
            let (seen, limit, what) = if lists & 1 == 1 {
                (&mut seen_elements, elements, "elements in its lists")
            } else {
                (&mut seen_fields, fields, "fields in its objects")
            };
            *seen += 1;
            if *seen > limit {
                return Err(AnswerError::TooMany { what, limit });
            }
        }
    }
    Ok(())
}

/// Refuses a protobuf message in which more than [`MAX_MESSAGE_FIELDS`] lie directly, or in those that it holds.
/// A message of lists of messages is bounded by that; what is malformed is left to the decoder.
pub(crate) fn check_protobuf(message: &[u8], levels: u32) -> Result<(), AnswerError> {
    let mut seen = 0;
    count_fields(message, levels, &mut seen)
}

fn count_fields(mut message: &[u8], levels: u32, seen: &mut usize) -> Result<(), AnswerError> {
    const VARINT: u64 = 0;
    const FIXED_64: u64 = 1;
    const BYTES: u64 = 2;
    const FIXED_32: u64 = 5;
    while message.has_remaining() {
        *seen += 1;
        if *seen > MAX_MESSAGE_FIELDS {
            return Err(AnswerError::TooMany {
                what: "fields",
                limit: MAX_MESSAGE_FIELDS,
            });
        }
        let Ok(key) = prost::encoding::decode_varint(&mut message) else {
            return Ok(());
        };
        let skipped = match key & 7 {
            VARINT => prost::encoding::decode_varint(&mut message).map(|_| 0).ok(),
            FIXED_64 => Some(8),
            FIXED_32 => Some(4),
            BYTES => prost::encoding::decode_varint(&mut message).ok(),
            _ => None,
        };
        let Some(length) = skipped.and_then(|length| usize::try_from(length).ok()) else {
            return Ok(());
        };
        let Some((inner, rest)) = message.split_at_checked(length) else {
            return Ok(());
        };
        if key & 7 == BYTES && levels > 0 {
            count_fields(inner, levels - 1, seen)?;
        }
        message = rest;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<(), String> {
        check_json(text.as_bytes(), 3, 4).map_err(|error| error.to_string())
    }

    #[test]
    fn elements_and_fields_are_counted_wherever_they_lie() {
        for fits in [
            "",
            "[1,2,3]",
            r#"{"a":1,"b":2,"c":3,"d":4}"#,
            r#"{"a":[1],"b":[2],"c":[3]}"#,
            r#"["a,b,c,[,{,\",,,",2]"#,
            r#"[{"a":1,"b":2},{"a":1}]"#,
            "]]]}}}",
            "\"never ends, , , , , , ,",
        ] {
            check(fits).unwrap_or_else(|error| panic!("{fits}: {error}"));
        }
        for list in ["[1,2,3,4]", "[[1],[2]]", "[[],[],[],[]]", "[{},{},{},{}]"] {
            assert_eq!(
                check(list).unwrap_err(),
                "it has more than 3 elements in its lists",
                "{list}"
            );
        }
        for object in [
            r#"{"a":1,"b":2,"c":3,"d":4,"e":5}"#,
            r#"{"a":{"b":{"c":{"d":{"e":1}}}}}"#,
        ] {
            assert_eq!(
                check(object).unwrap_err(),
                "it has more than 4 fields in its objects",
                "{object}"
            );
        }
        assert!(matches!(
            check_json("[".repeat(129).as_bytes(), 1000, 1000),
            Err(AnswerError::TooDeep)
        ));
    }

    #[test]
    fn what_is_small_and_becomes_large_is_refused() {
        let empty = format!("[{}{{}}]", "{},".repeat(MAX_ELEMENTS));
        let refused = json::<Vec<std::collections::BTreeMap<String, String>>>(empty.as_bytes());
        assert!(matches!(refused, Err(AnswerError::TooMany { .. })));
        let read: Vec<u32> = json(b"[1, 2]").unwrap();
        assert_eq!(read, [1, 2]);
        assert!(matches!(
            json::<Vec<u32>>(b"[1, 2"),
            Err(AnswerError::Json(_))
        ));
    }

    #[test]
    fn fields_of_messages_are_counted_at_each_level() {
        // Field 1, empty.
        let empty = [0x0a, 0].repeat(MAX_MESSAGE_FIELDS);
        check_protobuf(&empty, 0).unwrap();
        let more = [empty, vec![0x0a, 0]].concat();
        assert!(matches!(
            check_protobuf(&more, 0),
            Err(AnswerError::TooMany { .. })
        ));
        // The same within one field.
        let mut outer = vec![0x0a];
        prost::encoding::encode_varint(more.len() as u64, &mut outer);
        outer.extend(more);
        check_protobuf(&outer, 0).unwrap();
        assert!(check_protobuf(&outer, 1).is_err());
        // Every kind of field, and what is cut off.
        let all = [
            0x08, 0x96, 1, 0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0x1d, 0, 0, 0, 0, 0x0a, 9,
        ];
        check_protobuf(&all, 3).unwrap();
        check_protobuf(&[0xff; 20], 3).unwrap();
    }
}
