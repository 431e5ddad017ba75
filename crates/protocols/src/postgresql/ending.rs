//! How an answer ended, read from the last bytes of a piece that begins anywhere in it.

use super::{
    super::{
        Direction, Exchange, Outcome, Piece, Status, frames::begins_with_frames, reader::Reader,
        sql::sqlstate,
    },
    HEADER, message,
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Fine,
    /// With the SQLSTATE.
    Failed(String),
}

/// An `ErrorResponse`: its SQLSTATE, `None` where that was not captured.
pub(super) type Failure = Option<String>;

/// What went by of an answer behind its captured bytes.
#[derive(Debug)]
pub(super) struct Tail {
    pub(super) end_ns: u64,
    /// How the answer ended, if its last piece shows it.
    pub(super) ending: Option<Ending>,
}

/// Type, length and state of the transaction.
const READY_BYTES: usize = HEADER + 1;
/// Longest message before `ReadyForQuery` that is looked for.
const MOST_LAST: usize = 1024;

/// Reads the message before `ReadyForQuery`, which both must be the end of the bytes. After an error nothing
/// else is run, so that it holds for the whole answer. `None`: not known.
pub(super) fn ending(bytes: &[u8]) -> Option<Ending> {
    let (rest, ready) = bytes.split_at_checked(bytes.len().checked_sub(READY_BYTES)?)?;
    let [b'Z', 0, 0, 0, 5, b'I' | b'T' | b'E'] = ready else {
        return None;
    };
    let last = rest.get(rest.len().saturating_sub(MOST_LAST)..)?;
    let mut begins = (0..last.len()).rev();
    begins.find_map(|begin| last.get(begin..).and_then(message_ending))
}

/// The ending that a message states, when it is as long as the bytes.
fn message_ending(bytes: &[u8]) -> Option<Ending> {
    let mut reader = Reader::new(bytes);
    let (kind, length) = (reader.u8()?, reader.u32_be()?);
    if usize::try_from(length).ok()? + 1 != bytes.len() {
        return None;
    }
    match kind {
        b'C' => {
            let (end, tag) = reader.rest().split_last()?;
            let plain =
                |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b' ';
            let is_tag = *end == 0 && !tag.is_empty() && tag.iter().all(plain);
            is_tag.then_some(Ending::Fine)
        }
        // A portal that has more rows.
        b's' => (length == 4).then_some(Ending::Fine),
        b'E' => {
            let fields = reader.rest();
            let is_error = fields.first() == Some(&b'S') && fields.ends_with(&[0, 0]);
            let state = error_state(fields).filter(|_| is_error);
            state.map(Ending::Failed)
        }
        _ => None,
    }
}

/// Whether a piece has nothing but what the server may say at any time.
pub(super) fn is_notice(piece: &Piece<'_>) -> bool {
    let measure = |header: &[u8]| {
        let is_notice = header.first().is_some_and(|kind| b"NAS".contains(kind));
        message(Direction::ToClient, header, 0).filter(|_| is_notice)
    };
    piece.uncaptured() == 0 && begins_with_frames(piece, HEADER, measure) && is_whole(piece.bytes)
}

/// Whether the last message ends with the bytes.
fn is_whole(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while !rest.is_empty() {
        let behind = message(Direction::ToClient, rest, 0)
            .and_then(|extent| usize::try_from(extent.length).ok())
            .and_then(|length| rest.get(length..));
        match behind {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    true
}

/// The field `C` of an error: its SQLSTATE.
pub(super) fn error_state(fields: &[u8]) -> Option<String> {
    let mut reader = Reader::new(fields);
    while let Some(kind) = reader.u8().filter(|kind| *kind != 0) {
        let text = reader.until_nul()?;
        if kind == b'C' {
            return sqlstate(text);
        }
    }
    None
}

/// Puts down how a request went.
pub(super) fn tell(exchange: &mut Exchange, failure: Option<Failure>) {
    (exchange.status, exchange.outcome) = match failure {
        None => (Some(Status::Fine), Outcome::Ok),
        Some(Some(state)) => {
            let outcome = outcome_of(&state);
            (Some(Status::Code(state)), outcome)
        }
        Some(None) => (None, Outcome::Unknown),
    };
    exchange.is_timed = exchange.outcome == Outcome::Unknown;
}

/// Classes of errors (PostgreSQL documentation, appendix "Error Codes") that are the server's.
fn outcome_of(state: &str) -> Outcome {
    match state.get(..2) {
        Some("08" | "40" | "53" | "57" | "58" | "F0" | "XX") => Outcome::ServerError,
        _ => Outcome::ClientError,
    }
}
