//! Packets of an answer up to its end: results of several kinds, one after the other.

use super::{
    super::{frames::Frame, reader::Reader, sql::sqlstate},
    HEADER, MOST_PACKET,
    command::Command,
    packet, variable,
};

/// What the next packet of an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    First,
    /// Descriptions of columns still to come.
    Columns(u64),
    /// The end of descriptions, where the ends have not agreed to leave it out; else a row.
    EndOfColumns,
    Rows,
    /// Descriptions behind a prepared statement: parameters, then columns.
    Prepared {
        parameters: u64,
        columns: u64,
    },
    /// The client sends a file.
    File,
}

/// What a packet did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    More,
    /// The answer is whole.
    Done(Ending),
    /// It is none of an answer to this command.
    Strange,
    /// Its description of what follows was not captured.
    Unread,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Fine,
    /// With the number of a statement that the client may refer to.
    Prepared(u32),
    Failed {
        code: u16,
        state: Option<String>,
    },
    /// How was not captured.
    Unread,
}

/// The state of an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) next: Next,
    command: Command,
    optional_metadata: bool,
    /// The number of the statement that is being prepared.
    prepared: u32,
    /// The packet goes on in the next one.
    continues: bool,
}

const MORE_RESULTS: u16 = 0x0008;
const CURSOR_EXISTS: u16 = 0x0040;
/// Bytes of the payload of the old end of a list.
const END_BYTES: u32 = 5;

impl Answer {
    pub(super) fn new(command: Command, optional_metadata: bool) -> Self {
        let next = match command {
            // Rows or descriptions come at once.
            Command::Fetch | Command::FieldList => Next::Rows,
            _ => Next::First,
        };
        Self {
            next,
            command,
            optional_metadata,
            prepared: 0,
            continues: false,
        }
    }

    pub(super) fn take(&mut self, frame: &Frame<'_>) -> Effect {
        let Some((length, _)) = packet(frame.head) else {
            return Effect::Strange;
        };
        let continued = std::mem::replace(&mut self.continues, length == MOST_PACKET);
        if continued {
            return Effect::More;
        }
        let payload = frame.head.get(HEADER..).unwrap_or_default();
        let Some(kind) = payload.first().copied() else {
            return if length == 0 {
                Effect::Strange
            } else {
                Effect::Unread
            };
        };
        if kind == 0xff && length < MOST_PACKET {
            return Effect::Done(failure(payload));
        }
        match self.next {
            Next::First => self.first(kind, length, payload),
            Next::Columns(left) => {
                self.next = if left > 1 {
                    Next::Columns(left - 1)
                } else {
                    Next::EndOfColumns
                };
                Effect::More
            }
            Next::EndOfColumns if kind == 0xfe && length == END_BYTES => {
                let Some(status) = status_of_end(payload) else {
                    return Effect::Unread;
                };
                let has_cursor = status & CURSOR_EXISTS != 0;
                self.next = Next::Rows;
                // The rows are fetched by further commands.
                if has_cursor && matches!(self.command, Command::Execute) {
                    return Effect::Done(Ending::Fine);
                }
                Effect::More
            }
            Next::EndOfColumns | Next::Rows => {
                self.next = Next::Rows;
                if kind != 0xfe || length == MOST_PACKET {
                    return Effect::More;
                }
                let status = if length == END_BYTES {
                    status_of_end(payload)
                } else {
                    status_of_ok(payload)
                };
                self.end_result(status)
            }
            Next::Prepared {
                parameters,
                columns,
            } => self.described(kind, length, parameters, columns),
            // The server waits for the client.
            Next::File => self.first(kind, length, payload),
        }
    }

    fn first(&mut self, kind: u8, length: u32, payload: &[u8]) -> Effect {
        match (self.command, kind) {
            (Command::Statistics, _) => Effect::Done(Ending::Fine),
            (Command::Prepare, 0) => self.prepared(payload),
            (_, 0) => self.end_result(status_of_ok(payload)),
            (_, 0xfe) if length < 9 => Effect::Done(Ending::Fine),
            (Command::Query, 0xfb) => {
                self.next = Next::File;
                Effect::More
            }
            (
                Command::Query | Command::Execute | Command::BulkExecute | Command::ProcessInfo,
                _,
            ) => match self.columns(payload) {
                Some(effect) => effect,
                None if (payload.len() as u64) < u64::from(length) => Effect::Unread,
                None => Effect::Strange,
            },
            _ => Effect::Strange,
        }
    }

    /// The number of columns, and perhaps whether they are described.
    fn columns(&mut self, payload: &[u8]) -> Option<Effect> {
        let mut reader = Reader::new(payload);
        let described = if self.optional_metadata {
            Some(reader.u8()?)
        } else {
            None
        };
        let count = variable(&mut reader)?;
        // MariaDB has the byte behind the count.
        let described = described.or_else(|| reader.u8()).unwrap_or(1) != 0;
        if count == 0 || count > 0xffff || !reader.rest().is_empty() {
            return None;
        }
        self.next = if described {
            Next::Columns(count)
        } else {
            Next::EndOfColumns
        };
        Some(Effect::More)
    }

    fn prepared(&mut self, payload: &[u8]) -> Effect {
        let mut reader = Reader::new(payload);
        reader.take(1);
        let (Some(statement), Some(columns), Some(parameters)) =
            (reader.u32_le(), reader.u16_le(), reader.u16_le())
        else {
            return Effect::Unread;
        };
        self.prepared = statement;
        self.next = Next::Prepared {
            parameters: u64::from(parameters),
            columns: u64::from(columns),
        };
        if parameters == 0 && columns == 0 {
            return Effect::Done(Ending::Prepared(statement));
        }
        Effect::More
    }

    /// A description behind a prepared statement. Whether an end follows the last one is known only
    /// after it: the session passes over one that comes then.
    fn described(&mut self, kind: u8, length: u32, parameters: u64, columns: u64) -> Effect {
        if kind == 0xfe && length == END_BYTES {
            return Effect::More;
        }
        let (parameters, columns) = if parameters > 0 {
            (parameters - 1, columns)
        } else {
            (0, columns.saturating_sub(1))
        };
        self.next = Next::Prepared {
            parameters,
            columns,
        };
        if parameters == 0 && columns == 0 {
            return Effect::Done(Ending::Prepared(self.prepared));
        }
        Effect::More
    }

    /// The statement whose descriptions are still to come.
    pub(super) fn prepared_statement(&self) -> Option<Ending> {
        let is_prepared = matches!(self.next, Next::Prepared { .. });
        is_prepared.then_some(Ending::Prepared(self.prepared))
    }

    fn end_result(&mut self, status: Option<u16>) -> Effect {
        let Some(status) = status else {
            return Effect::Unread;
        };
        if status & MORE_RESULTS != 0 {
            self.next = Next::First;
            return Effect::More;
        }
        Effect::Done(Ending::Fine)
    }
}

/// Behind the kind: warnings, status.
fn status_of_end(payload: &[u8]) -> Option<u16> {
    let mut reader = Reader::new(payload);
    reader.take(3);
    reader.u16_le()
}

/// Behind the kind: affected rows, last id, status.
fn status_of_ok(payload: &[u8]) -> Option<u16> {
    let mut reader = Reader::new(payload);
    reader.take(1);
    variable(&mut reader)
        .and_then(|_| variable(&mut reader))
        .and_then(|_| reader.u16_le())
}

/// Longest last packet of an answer that is looked for.
const MOST_LAST: usize = HEADER + 512;

/// How an answer ended, read from the last packet of a piece that begins anywhere in it. `None`: not known.
pub(super) fn ending(bytes: &[u8]) -> Option<Ending> {
    let last = bytes.get(bytes.len().saturating_sub(MOST_LAST)..)?;
    let mut begins = (0..last.len()).rev();
    begins.find_map(|begin| last.get(begin..).and_then(packet_ending))
}

/// The ending that a packet states, when it is as long as the bytes.
fn packet_ending(bytes: &[u8]) -> Option<Ending> {
    let (length, _) = packet(bytes)?;
    let payload = bytes.get(HEADER..)?;
    if usize::try_from(length).ok()? != payload.len() {
        return None;
    }
    let is_last = |status: Option<u16>| status.is_some_and(|status| status & MORE_RESULTS == 0);
    match payload.first()? {
        0xff => match failure(payload) {
            failed @ Ending::Failed { state: Some(_), .. } => Some(failed),
            Ending::Failed { .. } | Ending::Fine | Ending::Prepared(_) | Ending::Unread => None,
        },
        0xfe if length == END_BYTES => is_last(status_of_end(payload)).then_some(Ending::Fine),
        0xfe if length > END_BYTES + 1 => is_last(status_of_ok(payload)).then_some(Ending::Fine),
        _ => None,
    }
}

/// A number, and since 4.1 an SQLSTATE behind `#`.
pub(super) fn failure(payload: &[u8]) -> Ending {
    let mut reader = Reader::new(payload);
    reader.take(1);
    let Some(code) = reader.u16_le() else {
        return Ending::Unread;
    };
    let marked = reader.u8() == Some(b'#');
    let state = reader.take(5).filter(|_| marked).and_then(sqlstate);
    Ending::Failed { code, state }
}
