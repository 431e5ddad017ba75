//! Where the body of a message ends (RFC 9112, sections 6 and 7), also when parts of it were not captured.

/// What is left of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// This many bytes.
    Length(u64),
    Chunked(Chunked),
    /// All until the connection ends.
    UntilClose,
    /// Chunks, of which it is no longer known where they end.
    LostChunks,
    /// The head was not captured.
    Unknown,
}

/// Place in a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunked {
    /// In the size of a chunk, with the number of digits read so far.
    Size {
        value: u64,
        digits: u8,
    },
    /// Behind it: an extension, or the end of the line.
    Extension {
        size: u64,
    },
    Data {
        left: u64,
    },
    DataEnd {
        have_return: bool,
    },
    /// In the fields behind the last chunk, with the length of the current line so far.
    Trailer {
        line_bytes: u32,
    },
    /// What was not captured is as long as the end of the body, and may be it.
    LikelyEnded,
}

/// Place before the first chunk.
pub(super) const CHUNKED: Body = Body::Chunked(CHUNK);
const CHUNK: Chunked = Chunked::Size {
    value: 0,
    digits: 0,
};
/// Digits of a chunk's size that fit 60 bits.
const SIZE_DIGITS: u8 = 15;
/// Length of `0\r\n\r\n`, the end of a chunked body.
const END_BYTES: u64 = 5;

/// What was taken of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken {
    /// Bytes of the piece.
    pub(super) used: u64,
    /// Bytes of content among them.
    pub(super) content: u64,
    pub(super) end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    More,
    /// The body is complete.
    Complete,
    /// This is none of a chunked body.
    Malformed,
}

impl Body {
    /// Whether it is known where the body ends, or that the connection's end ends it.
    pub(super) fn is_framed(self) -> bool {
        match self {
            Self::Length(_) | Self::UntilClose => true,
            Self::Chunked(place) => place != Chunked::LikelyEnded,
            Self::LostChunks | Self::Unknown => false,
        }
    }

    /// Takes bytes that were captured, and hands out what is content of them, as far as that is known.
    pub(super) fn take(&mut self, bytes: &[u8], content: &mut dyn FnMut(&[u8])) -> Taken {
        let length = bytes.len() as u64;
        match self {
            Self::Chunked(Chunked::LikelyEnded) => {
                *self = Self::LostChunks;
                all(length)
            }
            Self::Chunked(place) => place.take(bytes, content),
            Self::Length(_) | Self::UntilClose => {
                let taken = self.skip(length);
                let used = usize::try_from(taken.used).unwrap_or(usize::MAX);
                content(bytes.get(..used).unwrap_or(bytes));
                taken
            }
            Self::LostChunks | Self::Unknown => self.skip(length),
        }
    }

    /// Takes bytes that were not captured. What is behind the end of the body is not used.
    pub(super) fn skip(&mut self, count: u64) -> Taken {
        match self {
            Self::Length(left) => {
                let used = count.min(*left);
                *left -= used;
                Taken {
                    used,
                    content: used,
                    end: if *left == 0 { End::Complete } else { End::More },
                }
            }
            Self::UntilClose | Self::LostChunks | Self::Unknown => all(count),
            Self::Chunked(place) => {
                let Some(content) = place.skip(count) else {
                    *self = Self::LostChunks;
                    return all(count);
                };
                Taken {
                    used: count,
                    content,
                    end: End::More,
                }
            }
        }
    }
}

fn all(count: u64) -> Taken {
    Taken {
        used: count,
        content: count,
        end: End::More,
    }
}

impl Chunked {
    fn take(&mut self, bytes: &[u8], keep: &mut dyn FnMut(&[u8])) -> Taken {
        let mut at = 0_usize;
        let mut content = 0;
        let mut end = End::More;
        while let Some(byte) = bytes.get(at) {
            if let Self::Data { left } = self {
                let step = (*left).min((bytes.len() - at) as u64);
                *left -= step;
                content += step;
                let end = at.saturating_add(usize::try_from(step).unwrap_or(usize::MAX));
                keep(bytes.get(at..end).unwrap_or_default());
                at = end;
                if *left == 0 {
                    *self = Self::DataEnd { have_return: false };
                }
                continue;
            }
            at += 1;
            end = self.step(*byte);
            if end != End::More {
                break;
            }
        }
        Taken {
            used: at as u64,
            content,
            end,
        }
    }

    /// Takes a byte that is not of a chunk's data.
    fn step(&mut self, byte: u8) -> End {
        match (*self, byte) {
            (Self::Size { value, digits }, _) if byte.is_ascii_hexdigit() => {
                if digits >= SIZE_DIGITS {
                    return End::Malformed;
                }
                let digit = char::from(byte).to_digit(16).unwrap_or_default();
                *self = Self::Size {
                    value: value << 4 | u64::from(digit),
                    digits: digits + 1,
                };
            }
            (Self::Size { digits: 0, .. }, _) => return End::Malformed,
            (Self::Size { value, .. }, b'\r' | b';' | b' ' | b'\t') => {
                *self = Self::Extension { size: value };
            }
            (Self::Size { value: size, .. } | Self::Extension { size }, b'\n') => {
                *self = if size == 0 {
                    Self::Trailer { line_bytes: 0 }
                } else {
                    Self::Data { left: size }
                };
            }
            (Self::Size { .. }, _) => return End::Malformed,
            (Self::Extension { .. }, _) => {}
            (Self::DataEnd { have_return: false }, b'\r') => {
                *self = Self::DataEnd { have_return: true };
            }
            (Self::DataEnd { .. }, b'\n') => *self = CHUNK,
            (Self::DataEnd { .. }, _) => return End::Malformed,
            (Self::Trailer { line_bytes: 0 }, b'\n') => return End::Complete,
            (Self::Trailer { .. }, b'\n') => *self = Self::Trailer { line_bytes: 0 },
            (Self::Trailer { .. }, b'\r') => {}
            (Self::Trailer { line_bytes }, _) => {
                *self = Self::Trailer {
                    line_bytes: line_bytes.saturating_add(1),
                };
            }
            (Self::Data { .. } | Self::LikelyEnded, _) => return End::Malformed,
        }
        End::More
    }

    /// Content among the bytes; `None`: it is unknown where they end.
    fn skip(&mut self, count: u64) -> Option<u64> {
        let (data, to_chunk) = match *self {
            Self::Data { left } => (left, left.checked_add(2)?),
            Self::DataEnd { have_return } => (0, if have_return { 1 } else { 2 }),
            Self::Size { digits: 0, .. } => (0, 0),
            Self::Size { .. }
            | Self::Extension { .. }
            | Self::Trailer { .. }
            | Self::LikelyEnded => return None,
        };
        *self = if count < data {
            Self::Data { left: data - count }
        } else if count < to_chunk {
            Self::DataEnd {
                have_return: to_chunk - count == 1,
            }
        } else if count == to_chunk {
            CHUNK
        } else if count == to_chunk + END_BYTES {
            Self::LikelyEnded
        } else {
            return None;
        };
        Some(data.min(count))
    }
}

#[cfg(test)]
mod tests {
    use super::{Body, CHUNK, CHUNKED, Chunked, End, Taken};

    const BODY: &[u8] = b"4;x=y\r\nabcd\r\n0A\r\n0123456789\r\n0\r\nTrailer: 1\r\n\r\nGET /";

    #[test]
    fn chunks_end_at_each_split() {
        let end = BODY.len() - b"GET /".len();
        for split in 0..end {
            let mut body = CHUNKED;
            let mut content = Vec::new();
            let first = body.take(&BODY[..split], &mut |bytes| {
                content.extend_from_slice(bytes);
            });
            assert_eq!((first.used, first.end), (split as u64, End::More));
            let second = body.take(&BODY[split..], &mut |bytes| {
                content.extend_from_slice(bytes);
            });
            assert_eq!(second.end, End::Complete);
            assert_eq!(first.used + second.used, end as u64);
            assert_eq!(first.content + second.content, 14);
            assert_eq!(content, b"abcd0123456789");
        }
    }

    #[test]
    fn malformed_chunks_are_noticed() {
        for bytes in [
            &b"x"[..],
            b"\r\n",
            b"1\r\nab",
            b"1g\r\n",
            b"1111111111111111\r\n",
        ] {
            assert_eq!(
                CHUNKED.clone().take(bytes, &mut |_| {}).end,
                End::Malformed,
                "{bytes:?}"
            );
        }
    }

    #[test]
    fn a_hole_within_a_chunk_keeps_the_place() {
        let mut body = CHUNKED;
        body.take(b"10\r\nab", &mut |_| {});
        let taken = body.skip(10);
        assert_eq!((taken.content, taken.end), (10, End::More));
        assert_eq!(body, Body::Chunked(Chunked::Data { left: 4 }));
        assert_eq!(body.skip(5).content, 4);
        assert_eq!(body, Body::Chunked(Chunked::DataEnd { have_return: true }));
        assert_eq!(body.take(b"\n0\r\n\r\n", &mut |_| {}).end, End::Complete);
    }

    #[test]
    fn a_hole_over_the_end_of_a_chunk_is_not_guessed() {
        let after = |count| {
            let mut body = CHUNKED;
            body.take(b"4\r\n", &mut |_| {});
            body.skip(count);
            body
        };
        assert_eq!(after(6), Body::Chunked(CHUNK));
        assert_eq!(after(7), Body::LostChunks);
        assert_eq!(after(11), Body::Chunked(Chunked::LikelyEnded));
        assert_eq!(after(12), Body::LostChunks);
        let mut likely = after(11);
        likely.take(b"x", &mut |_| {});
        assert_eq!(likely, Body::LostChunks);
    }

    #[test]
    fn lengths_are_counted() {
        let mut body = Body::Length(10);
        assert_eq!(body.take(b"abc", &mut |_| {}).end, End::More);
        let end = Taken {
            used: 7,
            content: 7,
            end: End::Complete,
        };
        assert_eq!(body.skip(100), end);
        assert_eq!(Body::UntilClose.skip(5).end, End::More);
    }
}
