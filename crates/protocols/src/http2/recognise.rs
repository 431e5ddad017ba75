//! Whether a connection speaks HTTP/2.

use super::{
    fields::Fields,
    frame::{END_HEADERS, FrameHeader, HEADER_BYTES, Kind, UNKNOWN_LIMIT},
    reader::{Frames, PREFACE, frames_of},
};
use crate::{Direction, Opening, Verdict, hpack::HpackDecoder};

/// By what a client sends first, or when joined by frames: some in a row, or one with headers that can
/// be read.
pub(super) fn recognise(opening: &Opening<'_>) -> Verdict {
    let Opening {
        to_server,
        to_client,
        joined,
        server_port: _,
        is_udp,
    } = *opening;
    if is_udp {
        return Verdict::No;
    }
    if joined {
        return match (
            joined_side(to_server, Direction::ToServer),
            joined_side(to_client, Direction::ToClient),
        ) {
            (Verdict::Yes, _) | (_, Verdict::Yes) => Verdict::Yes,
            (Verdict::Undecided, _) | (_, Verdict::Undecided) => Verdict::Undecided,
            (Verdict::No, Verdict::No) => Verdict::No,
        };
    }
    let known = to_server.len().min(PREFACE.len());
    if to_server.get(..known) != PREFACE.get(..known) {
        return Verdict::No;
    }
    if known == PREFACE.len() {
        return Verdict::Yes;
    }
    // A server may speak first, and says what its settings are.
    match FrameHeader::read(to_client) {
        Some(header) if header.kind != Kind::Settings || !header.is_valid(UNKNOWN_LIMIT) => {
            Verdict::No
        }
        Some(_) | None => Verdict::Undecided,
    }
}

fn joined_side(bytes: &[u8], direction: Direction) -> Verdict {
    if bytes.is_empty() {
        return Verdict::Undecided;
    }
    // The call may have moved more bytes than these, so that an end among them proves nothing.
    match frames_of(bytes, u64::MAX, |header| header.is_likely(UNKNOWN_LIMIT)) {
        Frames::Yes => Verdict::Yes,
        Frames::No => Verdict::No,
        Frames::Few if begins_with_control(bytes) || has_headers(bytes, direction) => Verdict::Yes,
        Frames::Few => Verdict::Undecided,
    }
}

/// Whether the first frame is one whose header leaves little room for chance, with another behind it.
fn begins_with_control(bytes: &[u8]) -> bool {
    let Some(header) = FrameHeader::read(bytes) else {
        return false;
    };
    let has_one_size = match header.kind {
        Kind::Ping | Kind::WindowUpdate | Kind::Reset | Kind::Priority => true,
        Kind::Settings => header.length == 0,
        Kind::Data
        | Kind::Headers
        | Kind::PushPromise
        | Kind::GoAway
        | Kind::Continuation
        | Kind::Other(_) => false,
    };
    let next = usize::try_from(header.length).unwrap_or(usize::MAX);
    let next = bytes.get(HEADER_BYTES.saturating_add(next)..);
    has_one_size
        && header.is_likely(UNKNOWN_LIMIT)
        && next
            .and_then(FrameHeader::read)
            .is_some_and(|next| next.is_likely(UNKNOWN_LIMIT))
}

/// Whether one of the frames is a head that can be read.
fn has_headers(bytes: &[u8], direction: Direction) -> bool {
    let mut rest = bytes;
    while let Some(header) = FrameHeader::read(rest) {
        let Some(behind) = rest.get(HEADER_BYTES..) else {
            return false;
        };
        let length = usize::try_from(header.length).unwrap_or(usize::MAX);
        let Some((payload, next)) = behind.split_at_checked(length) else {
            return false;
        };
        if header.kind == Kind::Headers
            && header.has(END_HEADERS)
            && let Some(block) = super::block_of(&header, payload)
            && let Ok(fields) = Fields::read(&mut HpackDecoder::new(true), block, true)
        {
            let is_head = match direction {
                Direction::ToServer => fields.is_request() && !fields.has(":status"),
                Direction::ToClient => fields.has(":status") && !fields.is_request(),
            };
            return is_head && !fields.is_malformed && !fields.has_strange_pseudo();
        }
        rest = next;
    }
    false
}
