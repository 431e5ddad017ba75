//! An encoder for tests: of every representation there is, with its own table.

use std::collections::VecDeque;

use super::{huffman, static_table::STATIC_TABLE};

/// How a field is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// By its index where there is one, else inserted.
    Best,
    /// Not inserted.
    Leave,
    /// Marked as never to be indexed.
    Never,
}

#[derive(Debug)]
pub(crate) struct Encoder {
    entries: VecDeque<(String, String)>,
    limit: usize,
    pub(crate) uses_huffman: bool,
}

impl Encoder {
    pub(crate) fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            limit: 4096,
            uses_huffman: true,
        }
    }

    pub(crate) fn resize(&mut self, limit: usize, out: &mut Vec<u8>) {
        self.limit = limit;
        integer(out, 0x20, 5, limit);
        self.evict();
    }

    pub(crate) fn field(&mut self, name: &str, value: &str, form: Form, out: &mut Vec<u8>) {
        let same = |entry: (&str, &str)| entry == (name, value);
        let whole = self.position(same);
        if let (Some(index), Form::Best) = (whole, form) {
            integer(out, 0x80, 7, index);
            return;
        }
        let index = self.position(|(known, _)| known == name).unwrap_or(0);
        let (first, prefix) = match form {
            Form::Best => (0x40, 6),
            Form::Leave => (0, 4),
            Form::Never => (0x10, 4),
        };
        integer(out, first, prefix, index);
        if index == 0 {
            self.text(name, out);
        }
        self.text(value, out);
        if form == Form::Best {
            self.entries.push_front((name.to_owned(), value.to_owned()));
            self.evict();
        }
    }

    pub(crate) fn block(&mut self, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        for (name, value) in fields {
            self.field(name, value, Form::Best, &mut out);
        }
        out
    }

    fn position(&self, fits: impl Fn((&str, &str)) -> bool) -> Option<usize> {
        let dynamic = self.entries.iter().map(|(name, value)| (&**name, &**value));
        STATIC_TABLE
            .iter()
            .copied()
            .chain(dynamic)
            .position(fits)
            .map(|place| place + 1)
    }

    fn evict(&mut self) {
        let size = |(name, value): &(String, String)| 32 + name.len() + value.len();
        while self.entries.iter().map(size).sum::<usize>() > self.limit {
            self.entries.pop_back();
        }
    }

    fn text(&self, text: &str, out: &mut Vec<u8>) {
        if self.uses_huffman {
            let text = huffman::encode(text.as_bytes());
            integer(out, 0x80, 7, text.len());
            out.extend(text);
        } else {
            integer(out, 0, 7, text.len());
            out.extend(text.as_bytes());
        }
    }
}

fn integer(out: &mut Vec<u8>, first: u8, prefix: u32, value: usize) {
    let mask = (1 << prefix) - 1;
    if value < mask {
        out.push(first | u8::try_from(value).expect("small"));
        return;
    }
    out.push(first | u8::try_from(mask).expect("small"));
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.push(0x80 | u8::try_from(rest & 0x7f).expect("seven bits"));
        rest >>= 7;
    }
    out.push(u8::try_from(rest).expect("seven bits"));
}
