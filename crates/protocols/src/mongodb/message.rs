//! Messages: what a request asks for and what a reply reports about itself.

use super::{
    super::{
        reader::Reader,
        text::{code, printable},
    },
    bson::{Elements, Value},
};

/// Bytes of the header: length, id, the id that is answered, operation.
pub(super) const HEADER: usize = 16;
/// A header and four bytes more.
const LEAST_MESSAGE: u32 = 20;
/// `maxMessageSizeBytes`.
const MOST_MESSAGE: u32 = 48_000_000;

const OP_REPLY: u32 = 1;
const OP_QUERY: u32 = 2004;
const OP_COMPRESSED: u32 = 2012;
const OP_MSG: u32 = 2013;

pub(super) fn is_length(length: u32) -> bool {
    (LEAST_MESSAGE..=MOST_MESSAGE).contains(&length)
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) length: u32,
    pub(super) request_id: u32,
    pub(super) response_to: u32,
    operation: u32,
}

impl Header {
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let header = Self {
            length: reader.u32_le()?,
            request_id: reader.u32_le()?,
            response_to: reader.u32_le()?,
            operation: reader.u32_le()?,
        };
        // 2001 to 2007: operations of before 5.1 that get no reply, but for queries.
        let known = matches!(
            header.operation,
            OP_REPLY | 2001 | 2002 | OP_QUERY | 2005..=2007 | OP_COMPRESSED | OP_MSG
        );
        let fits = is_length(header.length);
        (known && fits).then_some(header)
    }
}

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    Command {
        /// `None`: not captured.
        name: Option<String>,
        collection: Option<String>,
        /// The client wants no reply.
        is_silent: bool,
    },
    Reply(Reply),
    /// Compressed: either.
    Opaque,
    /// An old operation without a reply.
    Silent,
}

/// How a command went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Fine,
    /// Not all of it was captured, but it has what only replies without an error have.
    ProbablyFine,
    Failed {
        code: Option<i64>,
        name: Option<String>,
    },
    NotCaptured,
}

/// Reads what is behind a header. `None`: it is none of the protocol.
pub(super) fn read(header: &Header, body: &[u8]) -> Option<Message> {
    match header.operation {
        OP_MSG => {
            let mut reader = Reader::new(body);
            let flags = reader.u32_le()?;
            // Bits that a reader must know, and the three that are (OP_MSG, "Flag Bits").
            if flags & 0xffff & !0b11 != 0 {
                return None;
            }
            let document = document(reader)?;
            if header.response_to != 0 {
                return Some(Message::Reply(reply(document)));
            }
            Some(command(document, flags & 0b10 != 0))
        }
        OP_QUERY => {
            let mut reader = Reader::new(body);
            reader.take(4)?;
            let Some(collection) = reader.until_nul() else {
                return Some(command(&[], false));
            };
            reader.take(8);
            if collection.ends_with(b".$cmd") {
                return Some(command(reader.rest(), false));
            }
            let name = collection.iter().position(|byte| *byte == b'.');
            let name = name
                .and_then(|dot| collection.get(dot + 1..))
                .and_then(collection_name);
            Some(Message::Command {
                name: Some("query".to_owned()),
                collection: name,
                is_silent: false,
            })
        }
        OP_REPLY => {
            let mut reader = Reader::new(body);
            let flags = reader.u32_le()?;
            reader.take(16)?;
            // CursorNotFound, QueryFailure.
            if flags & 0b11 != 0 {
                let failed = reply(reader.rest());
                let unnamed = Reply::Failed {
                    code: None,
                    name: None,
                };
                let known = matches!(failed, Reply::Failed { .. });
                return Some(Message::Reply(if known { failed } else { unnamed }));
            }
            Some(Message::Reply(reply(reader.rest())))
        }
        OP_COMPRESSED => Some(Message::Opaque),
        _ => Some(Message::Silent),
    }
}

/// The body of a message: the section of kind 0, before which others may stand. Empty: not captured.
fn document(mut reader: Reader<'_>) -> Option<&[u8]> {
    loop {
        match reader.u8() {
            None => return Some(&[]),
            Some(0) => return Some(reader.rest()),
            Some(1) => {
                let mut ahead = reader;
                let Some(length) = ahead.u32_le() else {
                    return Some(&[]);
                };
                let length = usize::try_from(length).ok().filter(|length| *length >= 5)?;
                if reader.take(length).is_none() {
                    return Some(&[]);
                }
            }
            Some(_) => return None,
        }
    }
}

/// The first element of a command is its name, and its value often the collection.
fn command(document: &[u8], is_silent: bool) -> Message {
    let mut name = None;
    let mut collection = None;
    let elements = Elements::of(document);
    for (number, (key, value)) in elements.into_iter().flatten().enumerate() {
        if number == 0 {
            name = code(key);
            if !name.as_deref().is_some_and(names_collection) {
                break;
            }
            if let Value::Text(text) = value {
                collection = collection_name(text);
                break;
            }
        } else if key == b"collection"
            && let Value::Text(text) = value
        {
            // `getMore` has the cursor first.
            collection = collection_name(text);
            break;
        }
    }
    Message::Command {
        name,
        collection,
        is_silent,
    }
}

fn collection_name(bytes: &[u8]) -> Option<String> {
    (!bytes.is_empty()).then(|| printable(bytes, 120))
}

/// Commands whose first value is a collection. With others it is a user, a database, an index.
fn names_collection(command: &str) -> bool {
    matches!(
        command,
        "aggregate"
            | "collMod"
            | "collStats"
            | "compact"
            | "count"
            | "create"
            | "createIndexes"
            | "delete"
            | "distinct"
            | "drop"
            | "dropIndexes"
            | "find"
            | "findAndModify"
            | "findandmodify"
            | "getMore"
            | "insert"
            | "killCursors"
            | "listIndexes"
            | "mapReduce"
            | "reIndex"
            | "update"
            | "validate"
    )
}

fn reply(document: &[u8]) -> Reply {
    let Some(mut elements) = Elements::of(document) else {
        return Reply::NotCaptured;
    };
    let (mut ok, mut number, mut name, mut has_cursor) = (None, None, None, false);
    let mut write_error = None;
    for (key, value) in elements.by_ref() {
        match (key, value) {
            (b"ok", Value::Double(value)) => ok = Some(value >= 0.5),
            (b"ok", Value::Integer(value)) => ok = Some(value != 0),
            (b"ok", Value::Boolean(value)) => ok = Some(value),
            (b"code", Value::Integer(value)) => number = Some(value),
            (b"codeName", Value::Text(text)) => name = code(text),
            (b"cursor", Value::Nested(_)) => has_cursor = true,
            (b"writeErrors", Value::Nested(errors)) => write_error = first_code(errors),
            _ => {}
        }
    }
    match ok {
        Some(false) => Reply::Failed { code: number, name },
        _ if write_error.is_some() => Reply::Failed {
            code: write_error,
            name: None,
        },
        Some(true) => Reply::Fine,
        None if has_cursor => Reply::ProbablyFine,
        // The first reply of old servers, or a document that is not a reply.
        None if elements.is_whole() => Reply::Fine,
        None => Reply::NotCaptured,
    }
}

/// `code` of the first document of an array.
fn first_code(array: &[u8]) -> Option<i64> {
    let (_, Value::Nested(first)) = Elements::of(array)?.next()? else {
        return None;
    };
    Elements::of(first)?.find_map(|(key, value)| match value {
        Value::Integer(number) if key == b"code" => Some(number),
        _ => None,
    })
}
