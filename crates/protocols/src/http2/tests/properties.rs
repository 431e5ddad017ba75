//! Random conversations of HTTP/2 and gRPC, see [`crate::properties`].

use std::collections::VecDeque;

use super::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PADDED, PING, PREFACE, RESET, SETTINGS,
    frame,
};
use crate::{
    Direction, HTTP1, HTTP2,
    hpack::encoder::{Encoder, Form},
    properties::{Conversation, Outcomes, check, seeds},
    replay::{CLIENT, SERVER},
    testing::{Numbers, facts},
};

/// One frame, or block of headers, that is still to be said on a stream.
#[derive(Clone, Debug)]
enum Step {
    Block {
        direction: Direction,
        fields: Vec<(String, String)>,
        is_end: bool,
    },
    Data {
        direction: Direction,
        content: Vec<u8>,
        is_end: bool,
    },
    Reset,
}

/// Both ends of a connection.
struct Ends {
    conversation: Conversation,
    client: Encoder,
    server: Encoder,
    /// Frames that are sent by one call.
    pending: Vec<u8>,
    direction: Direction,
}

impl Ends {
    fn say(&mut self, numbers: &mut Numbers, direction: Direction, bytes: &[u8]) {
        if self.direction != direction || numbers.below(2) == 0 {
            self.flush();
        }
        self.direction = direction;
        self.pending.extend_from_slice(bytes);
    }

    fn flush(&mut self) {
        let bytes = std::mem::take(&mut self.pending);
        self.conversation.say(self.direction, bytes);
    }

    fn step(&mut self, numbers: &mut Numbers, stream: u32, step: Step) {
        match step {
            Step::Block {
                direction,
                fields,
                is_end,
            } => {
                let encoder = match direction {
                    Direction::ToServer => &mut self.client,
                    Direction::ToClient => &mut self.server,
                };
                let mut block = Vec::new();
                for (name, value) in &fields {
                    let form = match (&**name, numbers.below(12)) {
                        ("grpc-message", _) | (_, 0) => Form::Leave,
                        (_, 1) => Form::Never,
                        _ => Form::Best,
                    };
                    encoder.field(name, value, form, &mut block);
                }
                let end = if is_end { END_STREAM } else { 0 };
                let parts = if numbers.below(8) == 0 {
                    let (one, two) = block.split_at(numbers.below(block.len()));
                    [
                        frame(HEADERS, end, stream, one),
                        frame(CONTINUATION, END_HEADERS, stream, two),
                    ]
                    .concat()
                } else {
                    frame(HEADERS, end | END_HEADERS, stream, &block)
                };
                self.say(numbers, direction, &parts);
            }
            Step::Data {
                direction,
                mut content,
                is_end,
            } => {
                let mut flags = if is_end { END_STREAM } else { 0 };
                if numbers.below(8) == 0 {
                    flags |= PADDED;
                    content.insert(0, 20);
                    content.extend([0; 20]);
                }
                self.say(numbers, direction, &frame(DATA, flags, stream, &content));
            }
            Step::Reset => self.say(numbers, SERVER, &frame(RESET, 0, stream, b"\0\0\0\x02")),
        }
    }
}

/// A part of a path that is not folded, and of one request alone.
fn name(number: usize) -> String {
    let letter = |place: usize| char::from(b"bcdfghjklm"[number / place % 10]);
    format!("{}{}{}", letter(100), letter(10), letter(1))
}

fn owned(fields: &[(&str, &str)]) -> Vec<(String, String)> {
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    fields.iter().map(pair).collect()
}

fn bodies(numbers: &mut Numbers, direction: Direction, is_grpc: bool, ends: bool) -> Vec<Step> {
    let count = 1 + numbers.below(3);
    let most = [10, 1000, 9000][numbers.below(3)];
    (1..=count)
        .map(|number| {
            let mut content = vec![b'x'; numbers.below(most)];
            if is_grpc {
                let length = u32::try_from(content.len())
                    .expect("a length")
                    .to_be_bytes();
                content.splice(0..0, [&[0][..], &length].concat());
            }
            Step::Data {
                direction,
                content,
                is_end: ends && number == count,
            }
        })
        .collect()
}

/// All of a stream, in order.
fn stream(numbers: &mut Numbers, number: usize) -> VecDeque<Step> {
    let is_grpc = numbers.below(2) == 0;
    let method = if is_grpc {
        "POST"
    } else {
        ["GET", "POST", "DELETE", "HEAD"][numbers.below(4)]
    };
    let path = if is_grpc {
        format!("/shop.Items/{}", name(number))
    } else {
        format!("/item/{}", name(number))
    };
    let content_type = if is_grpc {
        ["application/grpc", "application/grpc+proto"][numbers.below(2)]
    } else {
        "application/json"
    };
    let trace = "t".repeat([5, 5, 200, 1500, 4000][numbers.below(5)]);
    let mut fields = owned(&[
        (":method", method),
        (":scheme", "http"),
        (":path", &path),
        (":authority", "shop"),
    ]);
    let has_body = method == "POST";
    if has_body {
        fields.extend(owned(&[("content-type", content_type)]));
    }
    if is_grpc {
        fields.extend(owned(&[("te", "trailers")]));
    }
    fields.extend(owned(&[("x-trace", &trace)]));
    let mut steps = VecDeque::from([Step::Block {
        direction: CLIENT,
        fields,
        is_end: !has_body,
    }]);
    if has_body {
        steps.extend(bodies(numbers, CLIENT, is_grpc, true));
    }
    let status = if is_grpc {
        "200"
    } else {
        ["200", "201", "304", "404", "503"][numbers.below(5)]
    };
    let mut head = owned(&[(":status", status), ("content-type", content_type)]);
    let code = ["0", "0", "5", "13", "14"][numbers.below(5)];
    let mut trailers = owned(&[("grpc-status", code)]);
    if code != "0" {
        trailers.extend(owned(&[("grpc-message", "it failed")]));
    }
    let block = |fields, is_end| Step::Block {
        direction: SERVER,
        fields,
        is_end,
    };
    if numbers.below(20) == 0 {
        steps.push_back(block(owned(&[(":status", "103"), ("link", "x")]), false));
    }
    match numbers.below(6) {
        0 if is_grpc => {
            head.extend(trailers);
            steps.push_back(block(head, true));
        }
        0 => steps.push_back(block(head, true)),
        1 if numbers.below(3) == 0 => {
            steps.push_back(block(head, false));
            steps.push_back(Step::Reset);
        }
        _ => {
            steps.push_back(block(head, false));
            steps.extend(bodies(numbers, SERVER, is_grpc, !is_grpc));
            if is_grpc {
                steps.push_back(block(trailers, true));
            }
        }
    }
    steps
}

fn conversation(numbers: &mut Numbers) -> Conversation {
    let mut ends = Ends {
        conversation: Conversation::default(),
        client: Encoder::new(),
        server: Encoder::new(),
        pending: [PREFACE, &frame(SETTINGS, 0, 0, b"")].concat(),
        direction: CLIENT,
    };
    ends.say(numbers, SERVER, &frame(SETTINGS, 0, 0, b"\0\x03\0\0\0\x64"));
    let requests = 3 + numbers.below(40);
    let parallel = [1, 1, 4][numbers.below(3)];
    let mut open: Vec<(u32, VecDeque<Step>)> = Vec::new();
    let mut begun = 0;
    while begun < requests || !open.is_empty() {
        if numbers.below(30) == 0 {
            let direction = [CLIENT, SERVER][numbers.below(2)];
            ends.say(numbers, direction, &frame(PING, 0, 0, &[0; 8]));
        }
        if begun < requests && open.len() < parallel {
            let id = u32::try_from(2 * begun + 1).expect("a number");
            let mut steps = stream(numbers, begun);
            begun += 1;
            // Streams begin in the order of their numbers.
            if let Some(first) = steps.pop_front() {
                ends.step(numbers, id, first);
            }
            open.push((id, steps));
            continue;
        }
        let place = numbers.below(open.len());
        let (id, steps) = &mut open[place];
        let id = *id;
        match steps.pop_front() {
            Some(step) => ends.step(numbers, id, step),
            None => drop(open.swap_remove(place)),
        }
    }
    ends.flush();
    Conversation {
        // In pieces of a few bytes anything can look like the header of a frame.
        longest: vec![usize::MAX, 5000, 300, 100],
        requests,
        ..ends.conversation
    }
}

#[test]
fn requests_and_calls_are_right_or_unknown() {
    let mut sum = Outcomes::default();
    for seed in seeds(12) {
        let conversation = conversation(&mut Numbers::new(seed));
        let outcomes = check(&conversation, &[HTTP2, HTTP1], facts(8080), seed);
        sum.sent += outcomes.sent;
        sum.known += outcomes.known;
    }
    let Outcomes { sent, known, .. } = sum;
    assert!(known * 10 > sent * 2, "{known} of {sent}");
}
