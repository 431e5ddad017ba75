//! Fields at the beginning of bodies.

use super::{
    super::{reader::Reader, text::printable},
    apis::{Api, ErrorPlace, FETCH, METADATA, PRODUCE},
};

/// Longest name of a topic (org.apache.kafka.common.internals.Topic).
const MOST_TOPIC: usize = 249;

/// A varint of at most 32 bits.
fn unsigned(reader: &mut Reader<'_>) -> Option<u32> {
    let mut number = 0_u32;
    for shift in [0, 7, 14, 21, 28] {
        let byte = reader.u8()?;
        number |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Passes over tagged fields.
pub(super) fn skip_tags(reader: &mut Reader<'_>) -> Option<()> {
    let count = unsigned(reader)?;
    for _ in 0..count {
        unsigned(reader)?;
        let length = unsigned(reader)?;
        reader.take(usize::try_from(length).ok()?)?;
    }
    Some(())
}

/// A string; one that is absent is empty.
fn string<'a>(reader: &mut Reader<'a>, flexible: bool) -> Option<&'a [u8]> {
    let length = if flexible {
        i64::from(unsigned(reader)?) - 1
    } else {
        i64::from(reader.i16_be()?)
    };
    match usize::try_from(length) {
        Ok(length) => reader.take(length),
        Err(_) => Some(&[]),
    }
}

/// The length of an array; absent ones have none.
fn array(reader: &mut Reader<'_>, flexible: bool) -> Option<u32> {
    if flexible {
        return Some(unsigned(reader)?.saturating_sub(1));
    }
    let length = reader.i32_be()?;
    Some(u32::try_from(length).unwrap_or(0))
}

/// What a request reports about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Subject {
    /// The topic, where there is one and the version names it.
    pub(super) topic: Option<String>,
    /// The client wants no answer.
    pub(super) is_silent: bool,
}

/// Reads the beginning of the body of a request.
pub(super) fn subject(api: Api, version: i16, reader: &mut Reader<'_>) -> Subject {
    let mut subject = Subject::default();
    let flexible = api.is_flexible(version);
    let topic = match api.key {
        PRODUCE => produce(version, flexible, reader, &mut subject),
        FETCH => fetch(version, flexible, reader),
        METADATA => metadata(version, flexible, reader),
        _ => None,
    };
    let valid = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    let topic = topic.filter(|topic| !topic.is_empty() && topic.len() <= MOST_TOPIC);
    let topic = topic.filter(|topic| topic.iter().all(valid));
    subject.topic = topic.map(|topic| printable(topic, MOST_TOPIC));
    subject
}

fn produce<'a>(
    version: i16,
    flexible: bool,
    reader: &mut Reader<'a>,
    subject: &mut Subject,
) -> Option<&'a [u8]> {
    if version >= 3 {
        string(reader, flexible)?;
    }
    subject.is_silent = reader.i16_be()? == 0;
    reader.take(4)?;
    // From version 13 on topics are named by ids.
    only_topic(reader, flexible).filter(|_| version < 13)
}

fn fetch<'a>(version: i16, flexible: bool, reader: &mut Reader<'a>) -> Option<&'a [u8]> {
    if version >= 13 {
        return None;
    }
    // Replica, wait, least bytes; most bytes; isolation; session.
    reader.take(12)?;
    reader.take(if version >= 3 { 4 } else { 0 })?;
    reader.take(usize::from(version >= 4))?;
    reader.take(if version >= 7 { 8 } else { 0 })?;
    only_topic(reader, flexible)
}

fn metadata<'a>(version: i16, flexible: bool, reader: &mut Reader<'a>) -> Option<&'a [u8]> {
    if array(reader, flexible)? != 1 {
        return None;
    }
    if version >= 10 {
        reader.take(16)?;
    }
    string(reader, flexible)
}

/// The name of the first topic, when it is the only one.
fn only_topic<'a>(reader: &mut Reader<'a>, flexible: bool) -> Option<&'a [u8]> {
    if array(reader, flexible)? != 1 {
        return None;
    }
    string(reader, flexible)
}

/// What an answer reports about how it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Code(i16),
    /// Nothing for the whole of it.
    Nothing,
    NotCaptured,
}

/// Reads how it went from an answer, behind its header.
pub(super) fn error(api: Api, version: i16, reader: &mut Reader<'_>) -> Told {
    let throttled = match api.error {
        ErrorPlace::None => return Told::Nothing,
        ErrorPlace::From(from) if version < from => return Told::Nothing,
        ErrorPlace::Produce => {
            let flexible = api.is_flexible(version);
            return produced(flexible, version, reader).unwrap_or(Told::NotCaptured);
        }
        ErrorPlace::First => false,
        ErrorPlace::BehindThrottle(from) => version >= from,
        ErrorPlace::From(_) => true,
    };
    let behind = reader.take(if throttled { 4 } else { 0 });
    behind
        .and_then(|_| reader.i16_be())
        .map_or(Told::NotCaptured, Told::Code)
}

/// The error of the first partition; with several of them only when it is one. `None`: not captured.
fn produced(flexible: bool, version: i16, reader: &mut Reader<'_>) -> Option<Told> {
    let topics = array(reader, flexible)?;
    if version >= 13 {
        reader.take(16)?;
    } else {
        string(reader, flexible)?;
    }
    let partitions = array(reader, flexible)?;
    reader.take(4)?;
    let code = reader.i16_be()?;
    let is_told = (topics, partitions) == (1, 1) || code != 0;
    Some(if is_told {
        Told::Code(code)
    } else {
        Told::Nothing
    })
}
