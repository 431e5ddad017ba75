//! Bounds for parsing, and counters of what they cut off.

/// Bounds for one message. Text beyond its bound is cut and marked, entries and attributes beyond theirs are left out
/// and counted; a message beyond its bound is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of an encoded message.
    pub message_bytes: usize,
    /// Entries of a message.
    pub entries: usize,
    /// Attributes of a log record or resource of OpenTelemetry.
    pub attributes: usize,
    /// Bytes of a text, with the mark of one that was cut.
    pub text_bytes: usize,
}

impl Default for Limits {
    /// 4 MiB is the usual limit of gRPC servers. An entry has 380 bytes with Envoy's default fields, and at least two.
    fn default() -> Self {
        Self {
            message_bytes: 4 << 20,
            entries: 16_384,
            attributes: 128,
            text_bytes: 2048,
        }
    }
}

/// Entries of a message by outcome, and values that were cut or dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Entries that were handed out.
    pub entries: u64,
    /// Entries beyond [`Limits::entries`].
    pub left_out: u64,
    /// Entries that could not be decoded.
    pub unreadable: u64,
    /// Log records of OpenTelemetry with none of our attributes.
    pub foreign: u64,
    /// Attributes beyond [`Limits::attributes`].
    pub attributes_left_out: u64,
    /// Texts that were cut.
    pub cut_texts: u64,
    /// Impossible values, for example negative durations. They are absent in the entry.
    pub malformed_values: u64,
}

impl Counts {
    /// All entries and records of the message.
    pub fn all(&self) -> u64 {
        let Self {
            entries,
            left_out,
            unreadable,
            foreign,
            attributes_left_out: _,
            cut_texts: _,
            malformed_values: _,
        } = self;
        let parts = [entries, left_out, unreadable, foreign];
        parts
            .into_iter()
            .fold(0, |sum, part| sum.saturating_add(*part))
    }

    /// Adds the counts of another message.
    pub fn add(&mut self, other: &Self) {
        let Self {
            entries,
            left_out,
            unreadable,
            foreign,
            attributes_left_out,
            cut_texts,
            malformed_values,
        } = other;
        for (sum, more) in [
            (&mut self.entries, entries),
            (&mut self.left_out, left_out),
            (&mut self.unreadable, unreadable),
            (&mut self.foreign, foreign),
            (&mut self.attributes_left_out, attributes_left_out),
            (&mut self.cut_texts, cut_texts),
            (&mut self.malformed_values, malformed_values),
        ] {
            *sum = sum.saturating_add(*more);
        }
    }
}
