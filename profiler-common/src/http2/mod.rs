//! Requests of HTTP/2, calls of gRPC among them, that the kernel side counts itself, by the headers of frames.
//!
//! A client's HEADERS on a stream that was not used begins a request, and the server's `END_STREAM` ends it. Its status is the
//! first field of the server's first header block, where that is an entry of HPACK's static table or a literal. All other bytes have no
//! say: a frame says how long it is. How a call of gRPC went is in trailers, of which no table is kept here: it is not
//! known.
//!
//! Formats: RFC 9113, sections 3.4, 4.1 and 6; RFC 7541, section 6 and appendices A and B.

mod head;

pub use head::{HEAD_BYTES, HEADER_BYTES, Head, is_greeting, is_of_answer, is_preface, is_start};

use crate::http::BROKEN;
use head::{Event, PREFACE_BYTES};

/// Streams that may be open at once on one connection. Each has a place in one of two sets, by its number; a request that finds
/// none is not counted.
pub const STREAM_SETS: usize = 32;
pub const STREAM_WAYS: usize = 7;
pub const STREAMS: usize = STREAM_SETS * STREAM_WAYS;

/// Connections whose frames are followed at once.
pub const HTTP2_ENTRIES: u32 = 16_384;

/// [`Stream::state`]: class of the answer's status; 0: not known.
const CLASS: u32 = 7;
/// The head of the answer has come.
const HEADED: u32 = 1 << 3;
/// The client's HEADERS were noted. They may come behind the answer, where the thread that reads was faster than the one that
/// writes.
const NOTED: u32 = 1 << 4;
/// The answer is over, and they were not noted yet.
const OVER: u32 = 1 << 5;

/// A request that is under way.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    /// 0: not known.
    pub began_ns: u64,
    /// 0: the place is free.
    pub id: u32,
    pub state: u32,
}

/// One direction of a connection.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frames {
    /// Bytes of the payload under way that are still to come.
    pub rest: u32,
    /// Bytes of `head` that have come.
    pub have: u32,
    /// The stream that ends with this payload; 0: none.
    pub ends: u32,
    /// 0: it is not known where a frame begins.
    pub is_followed: u32,
    /// The beginning of a frame. Twice as long as what is looked at, for the verifier: a read begins in the first half and is
    /// not longer than that.
    pub head: [u8; 2 * HEAD_BYTES as usize],
}

impl Frames {
    /// What the next bytes are, of which so many are there.
    #[inline]
    pub const fn next(&self, available: u64) -> Next {
        if self.have == 0 && self.rest != 0 {
            let rest = self.rest as u64;
            return Next::Payload(if rest < available { rest } else { available });
        }
        if self.have >= HEAD_BYTES {
            return Next::None;
        }
        let room = (HEAD_BYTES - self.have) as u64;
        Next::Head {
            have: self.have,
            size: if room < available { room } else { available },
        }
    }
}

/// See [`Frames::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Payload(u64),
    /// The beginning of a frame: `size` bytes, to be put behind the `have` that came before.
    Head {
        have: u32,
        size: u64,
    },
    /// It is damaged.
    None,
}

/// Headers in a row that are not chance.
const CHAIN: u32 = 3;

/// Frames and streams of a connection. Value of the kernel's table, in which a connection begins as zeros.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Http2 {
    /// What the client sends.
    pub asked: Frames,
    pub answered: Frames,
    /// Streams with this number and higher ones were not noted yet; 0: that is not known of any.
    pub new_from: u32,
    /// Headers of frames that were read.
    pub seen: u32,
    pub streams: [[Stream; STREAM_WAYS]; STREAM_SETS],
}

/// What became of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Became {
    /// Nothing that is counted.
    Nothing,
    /// A request is under way.
    Open,
    /// It is over, with this class or [`BROKEN`].
    Over { began_ns: u64, class: u32 },
    /// There was no room.
    Missed,
}

/// What came of bytes at the beginning of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// More of them are needed.
    More,
    /// The frame begins. Its payload is behind the first `header_bytes` of what came now.
    Begun { head: Head, header_bytes: u32 },
    /// They are none.
    Garbage,
}

impl Http2 {
    #[inline]
    pub const fn frames(&mut self, is_answer: bool) -> &mut Frames {
        if is_answer {
            &mut self.answered
        } else {
            &mut self.asked
        }
    }

    /// Takes in `size` more bytes of a frame's beginning, of which `have` were there, as [`Frames`] says; `words` are all of
    /// them.
    #[inline]
    pub const fn begin_frame(
        &mut self,
        is_answer: bool,
        words: [u64; 2],
        have: u32,
        size: u32,
    ) -> Taken {
        let frames = self.frames(is_answer);
        let total = have + size;
        let head = Head::of(words);
        let needed = if total < HEADER_BYTES {
            HEADER_BYTES
        } else {
            head.needs(is_answer)
        };
        if total < needed {
            frames.have = total;
            return Taken::More;
        }
        let header_bytes = HEADER_BYTES.saturating_sub(have);
        if frames.is_followed == 0 && is_preface(words[0]) {
            frames.is_followed = 1;
            frames.have = 0;
            frames.rest = PREFACE_BYTES - HEADER_BYTES;
            self.new_from = 1;
            let head = Head::NOTHING;
            return Taken::Begun { head, header_bytes };
        }
        let is_header = if frames.is_followed == 0 {
            head.is_start()
        } else {
            head.is_valid()
        };
        if !is_header {
            return Taken::Garbage;
        }
        frames.is_followed = 1;
        frames.have = 0;
        frames.ends = 0;
        frames.rest = head
            .length
            .saturating_sub(have.saturating_sub(HEADER_BYTES));
        self.seen = self.seen.saturating_add(1);
        Taken::Begun { head, header_bytes }
    }

    /// What a frame that begins at `now_ns` does to its stream. Its payload may be all there: see [`Self::passed`].
    #[inline]
    pub fn take(&mut self, is_answer: bool, head: Head, words: [u64; 2], now_ns: u64) -> Became {
        match head.event(is_answer, words) {
            Event::Nothing => Became::Nothing,
            Event::Begins => self.begins(head.stream, now_ns),
            Event::Head { class, is_last } => {
                if is_last {
                    self.frames(is_answer).ends = head.stream;
                }
                self.head(head.stream, class)
            }
            Event::Ends => {
                self.frames(is_answer).ends = head.stream;
                Became::Nothing
            }
            Event::Breaks => self.breaks(head.stream),
        }
    }

    /// What is over when all of the payload under way was moved.
    #[inline]
    pub fn passed(&mut self, is_answer: bool) -> Became {
        let frames = self.frames(is_answer);
        let stream = frames.ends;
        if frames.rest != 0 || stream == 0 {
            return Became::Nothing;
        }
        frames.ends = 0;
        self.ends(stream)
    }

    /// It is not known where the next frame begins. Whether it is something else than HTTP/2: too few frames were there before.
    #[inline]
    pub const fn lose(&mut self, is_answer: bool) -> bool {
        let is_other = self.frames(is_answer).is_followed != 0 && self.seen < CHAIN;
        if !is_answer {
            self.new_from = 0;
        }
        let frames = self.frames(is_answer);
        frames.rest = 0;
        frames.have = 0;
        frames.ends = 0;
        frames.is_followed = 0;
        is_other
    }

    /// The two sets that a stream may have a place in. Masks bound the numbers for the kernel's verifier.
    #[inline]
    const fn sets_of(id: u32) -> [usize; 2] {
        const MASK: usize = STREAM_SETS - 1;
        let number = id as usize >> 1;
        let first = number & MASK;
        // Streams that share the first one have different second ones.
        let second = (number ^ (number / STREAM_SETS) ^ (STREAM_SETS / 2)) & MASK;
        [first, second]
    }

    /// The place of a stream, or with `wanted` 0 a free one for it. `None`: there is none.
    #[inline]
    fn place_of(&mut self, id: u32, wanted: u32) -> Option<&mut Stream> {
        let [first, second] = Self::sets_of(id);
        let mut set = first;
        let mut found = self.way_of(first, wanted);
        if found == STREAM_WAYS {
            set = second;
            found = self.way_of(second, wanted);
        }
        self.streams.get_mut(set)?.get_mut(found)
    }

    /// Where a set has a stream; [`STREAM_WAYS`]: nowhere.
    #[inline]
    fn way_of(&self, set: usize, id: u32) -> usize {
        let mut found = STREAM_WAYS;
        if let Some(set) = self.streams.get(set) {
            let mut way = 0;
            while way < STREAM_WAYS {
                if set[way].id == id {
                    found = way;
                }
                way += 1;
            }
        }
        found
    }

    /// Whether the request of a stream without a place is to be noted in a moment.
    #[inline]
    const fn is_due(&self, id: u32) -> bool {
        self.new_from != 0 && id >= self.new_from
    }

    /// The client's HEADERS.
    #[inline]
    fn begins(&mut self, id: u32, now_ns: u64) -> Became {
        // Numbers go up (RFC 9113, 5.1.1).
        let is_new = id >= self.new_from;
        if is_new {
            self.new_from = id + 1;
        }
        let Some(stream) = self.place_of(id, id) else {
            // Others are trailers behind an answer.
            return if is_new {
                self.open(id, now_ns, NOTED)
            } else {
                Became::Nothing
            };
        };
        if stream.state & OVER == 0 {
            // Trailers, or the answer has begun before this was noted.
            stream.state |= NOTED;
            return Became::Nothing;
        }
        let class = stream.state & CLASS;
        *stream = Stream::default();
        Became::Over { began_ns: 0, class }
    }

    #[inline]
    fn open(&mut self, id: u32, began_ns: u64, state: u32) -> Became {
        let Some(stream) = self.place_of(id, 0) else {
            return Became::Missed;
        };
        *stream = Stream {
            began_ns,
            id,
            state,
        };
        Became::Open
    }

    /// A header block of the server.
    #[inline]
    fn head(&mut self, id: u32, class: u32) -> Became {
        let mut became = Became::Nothing;
        if self.place_of(id, id).is_none() {
            // Its request is noted in a moment; or it was before what was seen, or found no place.
            if !self.is_due(id) {
                return Became::Nothing;
            }
            became = self.open(id, 0, 0);
        }
        let Some(stream) = self.place_of(id, id) else {
            return became;
        };
        if stream.state & HEADED != 0 {
            // Trailers, which say how the call went.
            stream.state &= !CLASS;
        } else if class != 1 {
            stream.state = stream.state & NOTED | HEADED | class & CLASS;
        }
        became
    }

    /// The answer is over.
    #[inline]
    fn ends(&mut self, id: u32) -> Became {
        let Some(stream) = self.place_of(id, id) else {
            return Became::Nothing;
        };
        if stream.state & NOTED == 0 {
            stream.state |= OVER;
            return Became::Nothing;
        }
        let Stream {
            began_ns, state, ..
        } = *stream;
        *stream = Stream::default();
        Became::Over {
            began_ns,
            class: state & CLASS,
        }
    }

    /// The stream was reset by either end.
    #[inline]
    fn breaks(&mut self, id: u32) -> Became {
        let is_due = self.is_due(id);
        let Some(stream) = self.place_of(id, id) else {
            return if is_due {
                self.open(id, 0, OVER | BROKEN)
            } else {
                Became::Nothing
            };
        };
        if stream.state & NOTED == 0 {
            // How it ended is known already, or this is how.
            if stream.state & OVER == 0 {
                stream.state = OVER | BROKEN;
            }
            return Became::Nothing;
        }
        let began_ns = stream.began_ns;
        *stream = Stream::default();
        Became::Over {
            began_ns,
            class: BROKEN,
        }
    }
}

const _: () = assert!(size_of::<Stream>() == 16);
const _: () = assert!(size_of::<Frames>() == 16 + 32);
const _: () = assert!(size_of::<Http2>() == 2 * 48 + 8 + 16 * STREAMS);
// With the kernel's head of an entry in 4 KiB.
const _: () = assert!(size_of::<Http2>() <= 4096 - 64);

#[cfg(test)]
mod tests;
