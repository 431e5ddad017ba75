//! Statements without what they say: literals become `?`, lists of them one, comments go.
//!
//! Which quotes and escapes are in force is a setting of the server that is not visible here. Where two
//! settings would read a statement differently, the rest of it is left out: what is a literal under any
//! setting is never kept. The same holds for statements whose end is missing.

use super::text::{code, printable};

/// Whose rules a statement follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `"` quotes names, `$tag$` quotes literals, `#` is an operator.
    PostgreSql,
    /// `"` quotes literals, `` ` `` quotes names, `#` begins a comment.
    MySql,
}

/// What is kept of a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Folded {
    /// Its first word, in upper case, when that is one of SQL.
    pub(crate) method: Option<String>,
    pub(crate) text: String,
}

/// Behind a statement that is not there to its end.
const CUT: &str = "...";

/// Folds a statement to at most `limit` bytes. Of one that is not `whole`, `bytes` are the beginning.
pub(crate) fn fold(bytes: &[u8], whole: bool, dialect: Dialect, limit: usize) -> Folded {
    let mut folder = Folder {
        rest: bytes,
        out: Vec::new(),
        dialect,
        space: false,
        most: limit.saturating_sub(CUT.len()),
        part: Part::Start,
    };
    let end = folder.run();
    let mut out = folder.out;
    while out.last().is_some_and(|byte| matches!(byte, b';' | b' ')) {
        out.pop();
    }
    let mut text = printable(&out, limit.saturating_sub(CUT.len()));
    if end == End::Cut || !whole {
        text.push_str(CUT);
    }
    let first = text.trim_start_matches(['(', ' ']);
    let first = first
        .split(|letter: char| !letter.is_ascii_alphabetic())
        .next();
    let method = first.map(str::to_ascii_uppercase);
    let method = method.filter(|word| is_known(word));
    Folded { method, text }
}

/// A whole statement as it is shown: without literals, comments and values of settings, at most 4 KiB of it.
pub fn fold_statement(statement: &[u8], dialect: Dialect) -> String {
    const MOST_BYTES: usize = 4096;
    fold(statement, true, dialect, MOST_BYTES).text
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Reached,
    /// The rest was left out.
    Cut,
}

struct Folder<'a> {
    rest: &'a [u8],
    out: Vec<u8>,
    dialect: Dialect,
    /// White space or a comment stands before the next token.
    space: bool,
    most: usize,
    part: Part,
}

/// Where in a statement the folder is, as far as settings go: their values need no quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Before its first word.
    Start,
    /// In a definition that `SET` may be a part of.
    Definition,
    /// Behind the `SET` that names a setting.
    Setting,
    /// Behind the `=` or `TO` of a setting.
    Value,
    Other,
}

impl Folder<'_> {
    fn run(&mut self) -> End {
        while let Some(&first) = self.rest.first() {
            if self.out.len() > self.most {
                return End::Cut;
            }
            let second = self.rest.get(1).copied();
            match first {
                0..=b' ' | 0x7f => {
                    self.pass(1);
                    self.space = true;
                }
                b'-' if second == Some(b'-') => match self.is_line_comment() {
                    Some(true) => self.line_comment(),
                    Some(false) => {
                        self.pass(1);
                        self.punctuation(first);
                    }
                    None => return End::Cut,
                },
                b'#' if self.dialect == Dialect::MySql => self.line_comment(),
                b'/' if second == Some(b'*') => {
                    if self.comment() == End::Cut {
                        return End::Cut;
                    }
                }
                b'\'' => {
                    if self.string(b'\'') == End::Cut {
                        return End::Cut;
                    }
                }
                b'"' if self.dialect == Dialect::MySql => {
                    if self.string(b'"') == End::Cut {
                        return End::Cut;
                    }
                }
                b'"' | b'`' => {
                    if self.quoted_name(first) == End::Cut {
                        return End::Cut;
                    }
                }
                b'$' if self.dialect == Dialect::PostgreSql => {
                    if self.dollar() == End::Cut {
                        return End::Cut;
                    }
                }
                b'0'..=b'9' => self.number(),
                b'.' if second.is_some_and(|byte| byte.is_ascii_digit())
                    && !self.is_behind_name() =>
                {
                    self.number();
                }
                letter if is_name(letter) => {
                    if self.name() == End::Cut {
                        return End::Cut;
                    }
                }
                // The place of a parameter; with PostgreSQL an operator.
                b'?' if self.dialect == Dialect::MySql => {
                    self.pass(1);
                    self.literal();
                }
                other => {
                    self.pass(1);
                    self.punctuation(other);
                }
            }
        }
        End::Reached
    }

    fn pass(&mut self, count: usize) {
        self.rest = self.rest.get(count..).unwrap_or_default();
    }

    fn separate(&mut self) {
        if std::mem::take(&mut self.space) && !self.out.is_empty() && self.out.last() != Some(&b'(')
        {
            self.out.push(b' ');
        }
    }

    /// Puts a literal down; one that follows another in a list is left out.
    fn literal(&mut self) {
        self.space &= !self.out.ends_with(b"(");
        for sign in [b'-', b'+'] {
            if self.out.last() == Some(&sign) {
                let before = self.out.iter().rev().skip(1).find(|byte| **byte != b' ');
                // A sign, not an operator between two values.
                if before.is_none_or(|byte| b"(,=<>".contains(byte)) {
                    self.out.pop();
                }
            }
        }
        let trimmed = self.out.trim_ascii_end();
        if trimmed.ends_with(b"?,") {
            let length = trimmed.len() - 1;
            self.out.truncate(length);
            self.space = false;
            return;
        }
        self.separate();
        self.out.push(b'?');
    }

    fn punctuation(&mut self, byte: u8) {
        self.part = match (byte, self.part) {
            (b';', _) => Part::Start,
            (b'=', Part::Setting) => Part::Value,
            (_, same) => same,
        };
        match byte {
            b')' => {
                self.space = false;
                // A row like the one before.
                for again in [&b"(?), (?"[..], &b"(?),(?"[..]] {
                    if self.out.ends_with(again) {
                        let length = self.out.len() - (again.len() - 2);
                        self.out.truncate(length);
                    }
                }
            }
            b',' | b';' => self.space = false,
            _ => self.separate(),
        }
        self.out.push(byte);
    }

    /// Whether two dashes begin a comment. With MySQL they do before white space and control characters, which of
    /// those beyond ASCII depends on the character set: `None`.
    fn is_line_comment(&self) -> Option<bool> {
        match (self.dialect, self.rest.get(2)) {
            (Dialect::PostgreSql, _) | (Dialect::MySql, None | Some(0..=b' ' | 0x7f)) => Some(true),
            (Dialect::MySql, Some(0x80..)) => None,
            (Dialect::MySql, Some(_)) => Some(false),
        }
    }

    fn line_comment(&mut self) {
        let ends =
            |byte: &u8| *byte == b'\n' || *byte == b'\r' && self.dialect == Dialect::PostgreSql;
        let end = self.rest.iter().position(ends);
        self.pass(end.unwrap_or(self.rest.len()));
        self.space = true;
    }

    /// PostgreSQL nests comments, MySQL does not: one with another inside is read differently.
    fn comment(&mut self) -> End {
        let inside = self.rest.get(2..).unwrap_or_default();
        let Some(end) = inside.windows(2).position(|pair| pair == b"*/") else {
            return End::Cut;
        };
        let comment = inside.get(..end).unwrap_or_default();
        if comment.windows(2).any(|pair| pair == b"/*") {
            return End::Cut;
        }
        // With MySQL these are code (`/*! */`, `/*M! */`) or hints, in which literals count.
        let is_code = comment.starts_with(b"!") || comment.starts_with(b"M!");
        let is_hint =
            comment.starts_with(b"+") && comment.iter().any(|byte| b"'\"`".contains(byte));
        if self.dialect == Dialect::MySql && (is_code || is_hint) {
            return End::Cut;
        }
        self.pass(end + 4);
        self.space = true;
        End::Reached
    }

    /// A quoted literal. One in which a quote stands behind a backslash ends there or goes on.
    fn string(&mut self, quote: u8) -> End {
        self.drop_prefix();
        self.literal();
        self.pass(1);
        let mut before = 0;
        while let Some((&byte, behind)) = self.rest.split_first() {
            self.rest = behind;
            if byte == quote {
                if before == b'\\' {
                    return End::Cut;
                }
                if behind.first() != Some(&quote) {
                    return End::Reached;
                }
                self.pass(1);
            }
            before = byte;
        }
        End::Cut
    }

    /// `E'..'`, `x'..'`, `N'..'`, `U&'..'` and `_utf8'..'` are literals with a word before them.
    fn drop_prefix(&mut self) {
        if self.space {
            return;
        }
        let in_word = |byte: &u8| is_name(*byte) || byte.is_ascii_digit() || *byte == b'&';
        let start = self.out.iter().rposition(|byte| !in_word(byte));
        let start = start.map_or(0, |before| before + 1);
        let word = self.out.get(start..).unwrap_or_default();
        let is_prefix = matches!(
            word,
            [b'e' | b'E' | b'b' | b'B' | b'x' | b'X' | b'n' | b'N']
        ) || word.eq_ignore_ascii_case(b"u&")
            || word.first() == Some(&b'_');
        if is_prefix {
            self.out.truncate(start);
        }
    }

    fn quoted_name(&mut self, quote: u8) -> End {
        let inside = self.rest.get(1..).unwrap_or_default();
        let Some(end) = inside.iter().position(|byte| *byte == quote) else {
            return End::Cut;
        };
        self.separate();
        self.out.extend(self.rest.iter().take(end + 2));
        self.pass(end + 2);
        End::Reached
    }

    /// `$1`, or `$tag$..$tag$`.
    fn dollar(&mut self) -> End {
        let behind = self.rest.get(1..).unwrap_or_default();
        let digits = behind
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        if digits > 0 {
            self.literal();
            self.pass(digits + 1);
            return End::Reached;
        }
        let Some(tag_end) = behind.iter().position(|byte| *byte == b'$') else {
            return End::Cut;
        };
        let tag = self.rest.get(..tag_end + 2).unwrap_or_default();
        let is_tag = |byte: &u8| is_name(*byte) || byte.is_ascii_digit();
        if !behind.iter().take(tag_end).all(is_tag) {
            return End::Cut;
        }
        let inside = self.rest.get(tag.len()..).unwrap_or_default();
        let end = inside.windows(tag.len()).position(|window| window == tag);
        self.literal();
        let Some(end) = end else {
            return End::Cut;
        };
        self.pass(end + 2 * (tag_end + 2));
        End::Reached
    }

    fn number(&mut self) {
        self.literal();
        let mut before = 0;
        while let Some(&byte) = self.rest.first() {
            let exponent = matches!(before, b'e' | b'E') && matches!(byte, b'-' | b'+');
            if !(byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_') || exponent) {
                break;
            }
            before = byte;
            self.pass(1);
        }
    }

    fn is_behind_name(&self) -> bool {
        !self.space
            && self
                .out
                .last()
                .is_some_and(|byte| is_name(*byte) || b"`\"".contains(byte))
    }

    fn name(&mut self) -> End {
        let goes_on = |byte: &u8| is_name(*byte) || byte.is_ascii_digit() || *byte == b'$';
        let length = self.rest.iter().take_while(|byte| goes_on(byte)).count();
        let word = self.rest.get(..length).unwrap_or_default();
        let is = |wanted: &[u8]| word.eq_ignore_ascii_case(wanted);
        self.part = match self.part {
            Part::Start if is(b"SET") => Part::Setting,
            Part::Start if is(b"ALTER") || is(b"CREATE") => Part::Definition,
            Part::Start => Part::Other,
            Part::Definition if is(b"SET") => Part::Setting,
            Part::Setting if is(b"TO") => Part::Value,
            Part::Value => return self.value(length),
            same => same,
        };
        self.separate();
        self.out.extend(self.rest.iter().take(length));
        self.pass(length);
        End::Reached
    }

    /// A word that is the value of a setting; with it goes all that follows.
    fn value(&mut self, length: usize) -> End {
        self.pass(length);
        self.literal();
        let behind = self.rest.iter().find(|byte| !matches!(byte, b' ' | b';'));
        self.rest = &[];
        if behind.is_none() {
            End::Reached
        } else {
            End::Cut
        }
    }
}

/// Letters of names; those beyond ASCII are.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

/// An SQLSTATE: five digits or upper case letters.
pub(crate) fn sqlstate(bytes: &[u8]) -> Option<String> {
    let plain = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
    code(bytes).filter(|_| bytes.len() == 5 && bytes.iter().all(plain))
}

/// First words of statements, of either dialect.
fn is_known(word: &str) -> bool {
    const KNOWN: [&str; 66] = [
        "ABORT",
        "ALTER",
        "ANALYZE",
        "BACKUP",
        "BEGIN",
        "BINLOG",
        "CACHE",
        "CALL",
        "CHANGE",
        "CHECK",
        "CHECKPOINT",
        "CHECKSUM",
        "CLOSE",
        "CLUSTER",
        "COMMENT",
        "COMMIT",
        "COPY",
        "CREATE",
        "DEALLOCATE",
        "DECLARE",
        "DELETE",
        "DESC",
        "DESCRIBE",
        "DISCARD",
        "DO",
        "DROP",
        "END",
        "EXECUTE",
        "EXPLAIN",
        "FETCH",
        "FLUSH",
        "GET",
        "GRANT",
        "HANDLER",
        "IMPORT",
        "INSERT",
        "INSTALL",
        "KILL",
        "LISTEN",
        "LOAD",
        "LOCK",
        "MERGE",
        "MOVE",
        "NOTIFY",
        "OPTIMIZE",
        "PREPARE",
        "REASSIGN",
        "REFRESH",
        "REINDEX",
        "RELEASE",
        "RENAME",
        "REPAIR",
        "REPLACE",
        "RESET",
        "REVOKE",
        "ROLLBACK",
        "SAVEPOINT",
        "SELECT",
        "SET",
        "SHOW",
        "START",
        "TABLE",
        "TRUNCATE",
        "UNLISTEN",
        "UNLOCK",
        "UPDATE",
    ];
    const ALSO: [&str; 8] = [
        "USE", "VACUUM", "VALUES", "WITH", "XA", "SECURITY", "SIGNAL", "SHUTDOWN",
    ];
    KNOWN.contains(&word) || ALSO.contains(&word)
}

#[cfg(test)]
mod tests;
