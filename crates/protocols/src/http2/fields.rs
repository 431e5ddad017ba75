//! The fields of a header block (RFC 9113, section 8).

use crate::hpack::{HpackDecoder, HpackError};

/// Most fields of a block that are looked at.
const FIELDS: usize = 256;
/// Most bytes of them: a block of some bytes can name the same long entry many times.
const FIELD_BYTES: usize = 64 << 10;

/// What is known of a block.
#[derive(Debug, Default)]
pub(super) struct Fields {
    /// Names in lower case with their values; `None`: the value is not known.
    list: Vec<(String, Option<Vec<u8>>)>,
    /// There are more of which the name is not known, or that were not captured.
    pub(super) has_unknown: bool,
    /// A field with a colon stands behind one without, or in a form that no peer sends.
    pub(super) is_malformed: bool,
}

impl Fields {
    /// Reads a block as far as it was captured.
    pub(super) fn read(
        hpack: &mut HpackDecoder,
        block: &[u8],
        is_whole: bool,
    ) -> Result<Self, HpackError> {
        let mut fields = Self::default();
        let mut bytes = 0;
        let result = hpack.decode(block, |field| {
            let length = field.name.map_or(0, <[u8]>::len) + field.value.map_or(0, <[u8]>::len);
            let name = field.name.and_then(|name| std::str::from_utf8(name).ok());
            bytes += length;
            match name {
                Some(name) if fields.list.len() < FIELDS && bytes <= FIELD_BYTES => {
                    fields.add(name, field.value);
                }
                Some(_) | None => fields.has_unknown = true,
            }
        });
        if !is_whole {
            // Other insertions into the table are unknown.
            hpack.lose();
            fields.has_unknown = true;
            return match result {
                Ok(()) | Err(HpackError::Cut) => Ok(fields),
                Err(HpackError::Malformed) => Err(HpackError::Malformed),
            };
        }
        result.map(|()| fields)
    }

    fn add(&mut self, name: &str, value: Option<&[u8]>) {
        let is_pseudo = name.starts_with(':');
        let follows_regular = self
            .list
            .last()
            .is_some_and(|(last, _)| !last.starts_with(':'));
        self.is_malformed |= is_pseudo && follows_regular
            || name.is_empty()
            || name
                .bytes()
                .any(|byte| !byte.is_ascii_graphic() || byte.is_ascii_uppercase());
        self.list.push((name.to_owned(), value.map(<[u8]>::to_vec)));
    }

    /// The value of the first field of a name, if it is known.
    pub(super) fn get(&self, name: &str) -> Option<&[u8]> {
        let (_, value) = self.list.iter().find(|(known, _)| known == name)?;
        value.as_deref()
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.get(name)
            .map(|value| String::from_utf8_lossy(value).into_owned())
    }

    pub(super) fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        std::str::from_utf8(self.get(name)?).ok()?.parse().ok()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.list.iter().any(|(known, _)| known == name)
    }

    /// Whether a field is there that only a request has.
    pub(super) fn is_request(&self) -> bool {
        [":method", ":path", ":scheme", ":authority", ":protocol"]
            .iter()
            .any(|name| self.has(name))
    }

    /// Whether a field with a colon is none of a request or an answer.
    pub(super) fn has_strange_pseudo(&self) -> bool {
        self.list.iter().any(|(name, _)| {
            name.starts_with(':')
                && !matches!(
                    name.as_str(),
                    ":method" | ":path" | ":scheme" | ":authority" | ":protocol" | ":status"
                )
        })
    }

    /// Headers with a value that is known.
    pub(super) fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.list
            .iter()
            .filter(|(name, _)| !name.starts_with(':'))
            .filter_map(|(name, value)| Some((name.as_str(), value.as_deref()?)))
    }
}
