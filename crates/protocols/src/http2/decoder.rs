//! Streams of one connection.
//!
//! A stream's number is never used again, so a request and its answer belong together for certain,
//! whatever was missed. What is lost with bytes is the header table of their direction
//! ([`crate::hpack`]), and whether a stream has ended.

use std::{collections::BTreeMap, ops::Range};

use super::{
    block_of,
    fields::Fields,
    frame::{ACK, END_HEADERS, END_STREAM, FrameHeader, Kind, UNKNOWN_LIMIT},
    reader::{Event, Frame, FrameReader, Input, Start},
    stream::{Answer, Stream},
};
use crate::{
    Decoder, Direction, Exchange, Options, PerDirection, Piece, Protocol, WrongProtocol,
    hpack::HpackDecoder,
};

/// `SETTINGS_MAX_FRAME_SIZE` (RFC 9113, section 6.5.2).
const MAX_FRAME_SIZE: u16 = 5;
const SETTING_BYTES: usize = 6;

#[derive(Debug)]
pub(crate) struct Http2 {
    options: Options,
    to_server: Half,
    to_client: Half,
    streams: BTreeMap<u32, Stream>,
    /// The newest stream of the client.
    last_stream: u32,
    /// Numbers of streams whose requests may have been missed the last time.
    unseen: Range<u32>,
    /// A preface or a head was seen.
    is_certain: bool,
}

/// One direction.
#[derive(Debug)]
struct Half {
    reader: FrameReader,
    hpack: HpackDecoder,
    block: Option<Block>,
    last_ns: u64,
}

/// A header block that is not complete.
#[derive(Debug)]
struct Block {
    stream: u32,
    purpose: Purpose,
    begin_ns: u64,
    bytes: Vec<u8>,
    is_whole: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Head,
    /// Also the last frame of its direction.
    LastHead,
    /// Of a request that the server made up; only its place in the table matters.
    Promise,
}

impl Half {
    fn new(start: Start, pending_bytes: usize) -> Self {
        Self {
            reader: FrameReader::new(start, pending_bytes),
            hpack: HpackDecoder::new(start == Start::Joined),
            block: None,
            last_ns: 0,
        }
    }
}

impl Decoder for Http2 {
    fn protocol(&self) -> Protocol {
        Protocol::Http2
    }

    fn feed(&mut self, piece: &Piece<'_>, out: &mut Vec<Exchange>) -> Result<(), WrongProtocol> {
        self.half(piece.direction).last_ns = piece.at_ns;
        self.read(Input::new(piece), piece.direction, piece.at_ns, out)
    }

    fn gap(&mut self, direction: Direction, missing: Option<u64>, out: &mut Vec<Exchange>) {
        let half = self.half(direction);
        let at_ns = half.last_ns;
        let is_content = missing.is_some_and(|count| half.reader.is_content(count));
        let input = Input::missing(missing.unwrap_or_default(), at_ns);
        if !is_content || self.read(input, direction, at_ns, out).is_err() {
            self.half(direction).reader.lose();
            self.lost(direction);
        }
    }

    fn close(&mut self, at_ns: u64, out: &mut Vec<Exchange>) {
        let streams = std::mem::take(&mut self.streams);
        out.extend(streams.into_values().map(|stream| stream.break_off(at_ns)));
    }

    /// An answer always belongs to the request of its stream, but it is unknown where the next one begins.
    /// Headers that are no longer in a table are unknown individually.
    fn is_dirty(&self) -> bool {
        self.to_server.reader.is_lost() || self.to_client.reader.is_lost()
    }

    fn gaps(&self) -> u64 {
        self.to_server.reader.gaps + self.to_client.reader.gaps
    }

    fn not_understood(&self) -> PerDirection<u64> {
        PerDirection {
            to_server: self.to_server.reader.not_understood,
            to_client: self.to_client.reader.not_understood,
        }
    }
}

impl Http2 {
    pub(super) fn new(options: &Options, joined: bool) -> Self {
        let (to_server, to_client) = if joined {
            (Start::Joined, Start::Joined)
        } else {
            (Start::Preface, Start::Frames)
        };
        let pending_bytes = options.limits.pending_bytes;
        Self {
            options: options.clone(),
            to_server: Half::new(to_server, pending_bytes),
            to_client: Half::new(to_client, pending_bytes),
            streams: BTreeMap::new(),
            last_stream: 0,
            unseen: 0..0,
            is_certain: false,
        }
    }

    /// A connection that began as HTTP/1; `exchange` is its first request, whose answer is still to come.
    pub(crate) fn upgraded(options: &Options, exchange: Exchange) -> Self {
        let mut this = Self::new(options, false);
        this.streams.insert(1, Stream::upgraded(exchange));
        this.last_stream = 1;
        this.is_certain = true;
        this
    }

    fn half(&mut self, direction: Direction) -> &mut Half {
        match direction {
            Direction::ToServer => &mut self.to_server,
            Direction::ToClient => &mut self.to_client,
        }
    }

    fn read(
        &mut self,
        mut input: Input<'_>,
        direction: Direction,
        at_ns: u64,
        out: &mut Vec<Exchange>,
    ) -> Result<(), WrongProtocol> {
        loop {
            match self.half(direction).reader.next(&mut input) {
                Event::Done => return Ok(()),
                Event::Preface => self.is_certain = true,
                Event::Frame(frame) => self.frame(direction, frame, at_ns, out)?,
                Event::Content { stream, bytes } => {
                    if let Some(stream) = self.streams.get_mut(&stream) {
                        stream.content(direction, bytes);
                    }
                }
                Event::MissingContent { stream, count } => {
                    if let Some(stream) = self.streams.get_mut(&stream) {
                        stream.missing_content(direction, count);
                    }
                }
                Event::MissingPadding { stream } => {
                    if let Some(stream) = self.streams.get_mut(&stream) {
                        stream.missing_padding(direction);
                    }
                }
                Event::DataEnd(header) => {
                    if header.has(END_STREAM) {
                        self.end(direction, header.stream, at_ns, out);
                    }
                }
                Event::Lost => self.lost(direction),
                Event::Garbage => {
                    self.garbage(direction)?;
                    self.half(direction).reader.pass_over(&mut input);
                    return Ok(());
                }
            }
        }
    }

    fn frame(
        &mut self,
        direction: Direction,
        frame: Frame,
        at_ns: u64,
        out: &mut Vec<Exchange>,
    ) -> Result<(), WrongProtocol> {
        let header = frame.header;
        let half = self.half(direction);
        let continues = header.kind == Kind::Continuation
            && half
                .block
                .as_ref()
                .is_some_and(|block| block.stream == header.stream);
        if !continues && half.block.take().is_some() {
            // Nothing may stand between the parts of a block.
            half.hpack.lose();
        }
        match header.kind {
            Kind::Headers | Kind::PushPromise => {
                half.reader.streams.has_promises |= header.kind == Kind::PushPromise;
                let Some(block) = block_of(&header, &frame.payload) else {
                    return self.garbage(direction);
                };
                let purpose = if header.kind == Kind::PushPromise {
                    Purpose::Promise
                } else if header.has(END_STREAM) {
                    Purpose::LastHead
                } else {
                    Purpose::Head
                };
                let block = Block {
                    stream: header.stream,
                    purpose,
                    begin_ns: frame.begin_ns,
                    bytes: block.to_vec(),
                    is_whole: frame.is_whole,
                };
                self.block(direction, block, &header, at_ns, out)
            }
            Kind::Continuation => {
                let limit = self.options.limits.pending_bytes;
                let half = self.half(direction);
                let Some(mut block) = half.block.take() else {
                    half.hpack.lose();
                    return Ok(());
                };
                if block.is_whole {
                    let room = limit.saturating_sub(block.bytes.len());
                    block.is_whole = frame.is_whole && frame.payload.len() <= room;
                    block.bytes.extend(frame.payload.iter().take(room));
                }
                self.block(direction, block, &header, at_ns, out)
            }
            Kind::Reset => {
                if let Some(stream) = self.streams.remove(&header.stream) {
                    out.push(stream.break_off(at_ns));
                }
                Ok(())
            }
            Kind::Settings => {
                self.settings(direction, &frame);
                Ok(())
            }
            Kind::GoAway => {
                self.go_away(direction, &frame.payload, at_ns, out);
                Ok(())
            }
            Kind::Data | Kind::Priority | Kind::Ping | Kind::WindowUpdate | Kind::Other(_) => {
                Ok(())
            }
        }
    }

    /// A part of a block has come, perhaps its last.
    fn block(
        &mut self,
        direction: Direction,
        block: Block,
        header: &FrameHeader,
        at_ns: u64,
        out: &mut Vec<Exchange>,
    ) -> Result<(), WrongProtocol> {
        let half = self.half(direction);
        if !header.has(END_HEADERS) {
            half.block = Some(block);
            return Ok(());
        }
        let Ok(fields) = Fields::read(&mut half.hpack, &block.bytes, block.is_whole) else {
            return self.garbage(direction);
        };
        if fields.is_malformed || fields.has_strange_pseudo() {
            return self.garbage(direction);
        }
        let is_end = match block.purpose {
            Purpose::Head => false,
            Purpose::LastHead => true,
            Purpose::Promise => return Ok(()),
        };
        match direction {
            Direction::ToServer => self.request(&block, &fields, at_ns, out),
            Direction::ToClient => {
                self.note_unseen(&block, &fields, at_ns, out);
                if let Some(stream) = self.streams.get_mut(&block.stream) {
                    self.is_certain |= fields.has(":status");
                    let answer = stream.answer(block.begin_ns, &fields, is_end, &self.options);
                    if answer == Answer::Tunnel
                        && let Some(stream) = self.streams.remove(&block.stream)
                    {
                        out.push(stream.finish(at_ns));
                    }
                }
            }
        }
        if is_end {
            self.end(direction, block.stream, at_ns, out);
        }
        Ok(())
    }

    /// A block of the client: a request, or the trailers of one.
    fn request(&mut self, block: &Block, fields: &Fields, at_ns: u64, out: &mut Vec<Exchange>) {
        let is_request = fields.is_request();
        self.is_certain |= is_request;
        let is_newer = block.stream > self.last_stream;
        // Where nothing is known of a block, only a number that was never used makes it a request.
        let begins = is_request || fields.has_unknown && is_newer && self.last_stream > 0;
        let is_client = !block.stream.is_multiple_of(2);
        if !begins || !is_client || !is_newer && self.streams.contains_key(&block.stream) {
            return;
        }
        self.last_stream = self.last_stream.max(block.stream);
        for half in [&mut self.to_server, &mut self.to_client] {
            half.reader.streams.newest = self.last_stream;
        }
        self.unseen.end = self.unseen.end.min(block.stream);
        let stream = Stream::open(block.stream, block.begin_ns, fields, &self.options);
        self.insert(block.stream, stream, at_ns, out);
    }

    fn insert(&mut self, id: u32, mut stream: Stream, at_ns: u64, out: &mut Vec<Exchange>) {
        if self.streams.len() >= self.options.limits.open_exchanges
            && let Some((_, oldest)) = self.streams.pop_first()
        {
            out.push(oldest.give_up(at_ns));
        }
        if self.to_client.reader.is_guessing() {
            stream.missed(Direction::ToClient);
        }
        self.streams.insert(id, stream);
    }

    /// An answer on a stream whose request may have been missed: that one was.
    fn note_unseen(&mut self, block: &Block, fields: &Fields, at_ns: u64, out: &mut Vec<Exchange>) {
        let id = block.stream;
        let is_client = !id.is_multiple_of(2);
        if is_client
            && self.unseen.contains(&id)
            && fields.has(":status")
            && !self.streams.contains_key(&id)
        {
            let stream = Stream::unseen(id, block.begin_ns);
            self.insert(id, stream, at_ns, out);
        }
    }

    /// One direction of a stream has ended.
    fn end(&mut self, direction: Direction, id: u32, at_ns: u64, out: &mut Vec<Exchange>) {
        match direction {
            Direction::ToServer => {
                if let Some(stream) = self.streams.get_mut(&id) {
                    stream.request_ended(at_ns);
                }
            }
            Direction::ToClient => {
                if let Some(stream) = self.streams.remove(&id) {
                    out.push(stream.finish(at_ns));
                }
            }
        }
    }

    /// What one side says that it can take, the other may send. The size of the header table needs no
    /// look: an encoder that changes it says so in a block (RFC 7541, section 4.2).
    fn settings(&mut self, direction: Direction, frame: &Frame) {
        if frame.header.has(ACK) {
            return;
        }
        let reader = &mut self.half(direction.reverse()).reader;
        if !frame.is_whole {
            reader.limit = UNKNOWN_LIMIT;
        }
        for setting in frame.payload.chunks_exact(SETTING_BYTES) {
            if let [one, two, value @ ..] = setting
                && u16::from_be_bytes([*one, *two]) == MAX_FRAME_SIZE
                && let Ok(value) = <[u8; 4]>::try_from(value)
            {
                // Frames under the earlier setting may still come.
                reader.limit = reader.limit.max(u32::from_be_bytes(value));
            }
        }
    }

    /// Streams behind the last one that the server names were not looked at (RFC 9113, section 6.8).
    fn go_away(
        &mut self,
        direction: Direction,
        payload: &[u8],
        at_ns: u64,
        out: &mut Vec<Exchange>,
    ) {
        let Some(last) = payload.first_chunk() else {
            return;
        };
        if direction == Direction::ToClient {
            let last = u32::from_be_bytes(*last) & 0x7fff_ffff;
            let refused = self.streams.split_off(&last.saturating_add(1));
            out.extend(refused.into_values().map(|stream| stream.break_off(at_ns)));
        }
    }

    fn garbage(&mut self, direction: Direction) -> Result<(), WrongProtocol> {
        if !self.is_certain {
            return Err(WrongProtocol);
        }
        self.half(direction).reader.lose();
        self.lost(direction);
        Ok(())
    }

    /// Frames of a direction may have been missed.
    fn lost(&mut self, direction: Direction) {
        let half = self.half(direction);
        half.hpack.lose();
        half.block = None;
        let other = self.half(direction.reverse());
        other.reader.limit = other.reader.limit.max(UNKNOWN_LIMIT);
        if direction == Direction::ToServer && self.last_stream > 0 {
            self.unseen = self.last_stream.saturating_add(1)..u32::MAX;
        }
        for stream in self.streams.values_mut() {
            stream.missed(direction);
        }
    }
}
