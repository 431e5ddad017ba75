//! RESP2 and RESP3 values out of pieces, without what they hold (redis.io, "Redis serialization
//! protocol specification").
//!
//! Of a command only the words are kept that say what it does; of a reply its kind and, of an error,
//! the code. What lies in strings is passed over by its length, captured or not.

use super::super::{Direction, frames::Rest};

/// A whole value at the top.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Value {
    /// Its first byte; `\0`: an inline command.
    pub(super) kind: u8,
    /// Elements of an aggregate, or words of an inline command.
    pub(super) elements: u64,
    /// First elements, upper case: as many as are needed to name the command or the push.
    pub(super) words: Vec<String>,
    /// Code of an error.
    pub(super) error: Option<String>,
    pub(super) bytes: u64,
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
}

/// What a look for the next value found.
#[derive(Debug)]
pub(super) enum NextValue {
    Value(Value),
    Wait,
    Invalid,
    /// Not captured: where the next value begins is unknown. With the words of the value at hand.
    Lost(Option<Value>),
}

const MOST_DEPTH: usize = 32;
/// Longest line that is not an inline command: a type, a number, or an error's text.
const MOST_LINE: u64 = 64 << 10;
/// Bytes of a line that are kept: numbers and codes are shorter.
const KEPT_LINE: usize = 48;
/// Longest name of a command or of a subcommand.
const MOST_WORD: usize = 32;
/// Far above what servers take (`proto-max-bulk-len`, 512 MB by default).
const MOST_STRING: u64 = 1 << 40;
const MOST_ELEMENTS: u64 = 1 << 31;

#[derive(Debug)]
pub(super) struct Values {
    direction: Direction,
    line: Vec<u8>,
    line_bytes: u64,
    /// Bytes of a string, with what ends it, still to come.
    string: u64,
    /// The first bytes of that string are a word.
    word: Option<Vec<u8>>,
    /// Of aggregates that are not whole: elements to come.
    nested: Vec<Nested>,
    value: Option<Value>,
}

#[derive(Clone, Copy, Debug)]
struct Nested {
    left: u64,
    /// Attributes stand before an element and are none.
    is_attribute: bool,
}

impl Values {
    pub(super) fn new(direction: Direction) -> Self {
        Self {
            direction,
            line: Vec::new(),
            line_bytes: 0,
            string: 0,
            word: None,
            nested: Vec::new(),
            value: None,
        }
    }

    /// In the middle of a value.
    pub(super) fn is_inside(&self) -> bool {
        self.value.is_some()
    }

    /// Takes what belongs to the next value.
    pub(super) fn next(&mut self, rest: &mut Rest<'_>) -> NextValue {
        loop {
            if rest.length() == 0 {
                return NextValue::Wait;
            }
            let value = self.value.get_or_insert_with(|| Value {
                kind: 0,
                elements: 0,
                words: Vec::new(),
                error: None,
                bytes: 0,
                begin_ns: rest.at_ns,
                end_ns: rest.at_ns,
            });
            if self.string > 0 {
                let (taken, unseen) = rest.pass(self.string);
                let passed = taken.len() as u64 + unseen;
                value.bytes += passed;
                self.string -= passed;
                if let Some(word) = &mut self.word {
                    let room = MOST_WORD.saturating_sub(word.len());
                    word.extend(taken.iter().take(room));
                    // A word that was not captured whole is none.
                    if unseen > 2 {
                        self.word = None;
                    }
                }
                if self.string > 0 {
                    continue;
                }
                self.end_word();
                if let Some(value) = self.end_element(rest.at_ns) {
                    return NextValue::Value(value);
                }
                continue;
            }
            let Some((&byte, behind)) = rest.bytes.split_first() else {
                return NextValue::Lost(self.abandon());
            };
            rest.bytes = behind;
            value.bytes += 1;
            self.line_bytes += 1;
            if byte != b'\n' {
                if self.line_bytes > MOST_LINE {
                    return NextValue::Invalid;
                }
                if self.line.len() < KEPT_LINE {
                    self.line.push(byte);
                }
                if !self.line_may_be_valid() {
                    return NextValue::Invalid;
                }
                continue;
            }
            let line = std::mem::take(&mut self.line);
            self.line_bytes = 0;
            match self.end_line(&line) {
                Some(true) => {}
                Some(false) => continue,
                None => return NextValue::Invalid,
            }
            if let Some(value) = self.end_element(rest.at_ns) {
                return NextValue::Value(value);
            }
        }
    }

    /// Drops what is there of a value and hands out what is known of it.
    pub(super) fn abandon(&mut self) -> Option<Value> {
        let value = self.value.take().filter(|value| value.bytes > 0);
        *self = Self::new(self.direction);
        value
    }

    /// Bytes are missing. `true`: they were all inside of the string at hand, more of which follows.
    pub(super) fn gap(&mut self, missing: Option<u64>) -> bool {
        let Some(missing) = missing.filter(|missing| *missing < self.string) else {
            return false;
        };
        self.string -= missing;
        self.word = None;
        if let Some(value) = &mut self.value {
            value.bytes += missing;
        }
        true
    }

    /// Whether a line can still be one of this direction.
    fn line_may_be_valid(&self) -> bool {
        let Some((&kind, text)) = self.line.split_first() else {
            return true;
        };
        if text.len() > 1 {
            return true;
        }
        let numbers = |text: &[u8]| {
            text.first()
                .is_none_or(|byte| byte.is_ascii_digit() || *byte == b'-')
        };
        match (self.direction, kind) {
            (Direction::ToServer, b'*') if self.nested.is_empty() => numbers(text),
            (Direction::ToServer, b'$') if !self.nested.is_empty() => numbers(text),
            // An inline command; an empty line is ignored by the server.
            (Direction::ToServer, first) => {
                self.nested.is_empty() && (first.is_ascii_alphabetic() || first == b'\r')
            }
            (Direction::ToClient, b'*' | b'$' | b'%' | b'~' | b'>' | b'|' | b'=' | b'!') => {
                numbers(text)
            }
            (Direction::ToClient, b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(') => true,
            (Direction::ToClient, _) => false,
        }
    }

    /// Takes a line in. `Some(true)`: it is an element by itself; `None`: it is none.
    fn end_line(&mut self, line: &[u8]) -> Option<bool> {
        let is_top = self.nested.is_empty();
        let line = match line.split_last() {
            Some((b'\r', line)) => line,
            // Longer than what is kept.
            _ if line.len() == KEPT_LINE => line,
            // Only interactive users leave the CR out.
            _ if self.direction == Direction::ToServer && is_top => line,
            _ => return None,
        };
        let (&kind, text) = match line.split_first() {
            Some(parts) => parts,
            None if self.direction == Direction::ToServer && is_top => {
                // Not a command: it is ignored.
                self.value = None;
                return Some(false);
            }
            None => return None,
        };
        if self.direction == Direction::ToServer && is_top && kind != b'*' {
            self.inline(line);
            return Some(true);
        }
        if is_top {
            self.value.as_mut()?.kind = kind;
        }
        match kind {
            b'*' | b'%' | b'~' | b'>' | b'|' => {
                let Some(count) = count(text, MOST_ELEMENTS)? else {
                    return Some(true);
                };
                let elements = if matches!(kind, b'%' | b'|') {
                    count * 2
                } else {
                    count
                };
                if is_top {
                    self.value.as_mut()?.elements = elements;
                }
                if self.nested.len() >= MOST_DEPTH {
                    return None;
                }
                let is_attribute = kind == b'|';
                if elements == 0 {
                    return Some(!is_attribute);
                }
                self.nested.push(Nested {
                    left: elements,
                    is_attribute,
                });
                Some(false)
            }
            b'$' | b'=' | b'!' => {
                let Some(length) = count(text, MOST_STRING)? else {
                    return Some(true);
                };
                self.string = length + 2;
                self.word = self.wants_word(kind, length).then(Vec::new);
                Some(false)
            }
            b'-' => {
                if is_top {
                    self.value.as_mut()?.error = Some(error_code(text));
                }
                Some(true)
            }
            b'+' => {
                if self.wants_word(kind, text.len() as u64) {
                    self.word = Some(text.to_vec());
                    self.end_word();
                }
                Some(true)
            }
            b':' | b'_' | b'#' | b',' | b'(' => Some(true),
            _ => None,
        }
    }

    fn inline(&mut self, line: &[u8]) {
        let Some(value) = &mut self.value else {
            return;
        };
        let mut words = line
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        let shown = usize::from(wanted_words(None));
        value
            .words
            .extend(words.clone().take(shown).filter_map(word));
        value.elements = words.by_ref().count() as u64;
    }

    /// The names of commands, subcommands and pushes are at the beginning of aggregates at the top,
    /// and a string at the top may be an error.
    fn wants_word(&self, kind: u8, length: u64) -> bool {
        let Some(value) = &self.value else {
            return false;
        };
        if self.nested.is_empty() {
            return kind == b'!' || (kind == b'+' && length <= MOST_WORD as u64);
        }
        let [Nested { left, .. }] = self.nested.as_slice() else {
            return false;
        };
        let place = value.elements.saturating_sub(*left);
        let known = value.words.len() as u64;
        let wanted = match self.direction {
            Direction::ToServer => wanted_words(value.words.first().map(String::as_str)),
            Direction::ToClient => 1,
        };
        matches!(value.kind, b'*' | b'>')
            && place == known
            && place < u64::from(wanted)
            && length <= MOST_WORD as u64
    }

    fn end_word(&mut self) {
        let Some(mut bytes) = self.word.take() else {
            return;
        };
        let Some(value) = &mut self.value else {
            return;
        };
        if value.kind == b'!' && self.nested.is_empty() {
            value.error = Some(error_code(&bytes));
            return;
        }
        while bytes
            .last()
            .is_some_and(|byte| matches!(byte, b'\r' | b'\n'))
        {
            bytes.pop();
        }
        value.words.extend(word(&bytes));
    }

    /// An element has ended, and with it perhaps those around it.
    fn end_element(&mut self, at_ns: u64) -> Option<Value> {
        while let Some(around) = self.nested.last_mut() {
            around.left = around.left.saturating_sub(1);
            if around.left > 0 {
                return None;
            }
            let ended = self.nested.pop();
            if ended.is_some_and(|ended| ended.is_attribute) {
                return None;
            }
        }
        let mut value = self.value.take()?;
        value.end_ns = at_ns;
        Some(value)
    }
}

/// A number of a line: `None`: none, `Some(None)`: of something that is not there.
#[expect(clippy::option_option, reason = "invalid and absent are different")]
fn count(text: &[u8], most: u64) -> Option<Option<u64>> {
    if text == b"-1" {
        return Some(None);
    }
    let digits = text.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(text).ok().filter(|_| digits)?;
    let number: u64 = number.parse().ok()?;
    (number <= most).then_some(Some(number))
}

/// The first word of an error in upper case, as errors have since they have codes; else `ERR`.
fn error_code(text: &[u8]) -> String {
    let first = text
        .split(|byte| matches!(byte, b' ' | b'\r'))
        .next()
        .unwrap_or_default();
    let upper = first
        .iter()
        .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    let code = super::super::text::code(first).filter(|_| upper);
    code.unwrap_or_else(|| "ERR".to_owned())
}

/// Words that could be names: letters, digits, `.`, `-`, `_`, `|`.
fn word(bytes: &[u8]) -> Option<String> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b".-_|".contains(byte);
    let fits = (1..=MOST_WORD).contains(&bytes.len()) && bytes.iter().all(plain);
    fits.then(|| String::from_utf8_lossy(bytes).to_ascii_uppercase())
}

/// First words of a command that may be looked at.
fn wanted_words(command: Option<&str>) -> u8 {
    match command {
        None => 1,
        // `CLIENT REPLY OFF` changes which clients get answers.
        Some("CLIENT") => 3,
        Some(command) => u8::from(super::commands::has_subcommands(command)) + 1,
    }
}
