//! Random conversations of HTTP/1, see [`crate::properties`].

use crate::{
    Direction, HTTP1, HTTP2,
    properties::{Conversation, Outcomes, check, seeds},
    replay::{CLIENT, SERVER},
    testing::{Numbers, facts},
};

const LONGEST: [usize; 4] = [usize::MAX, 5000, 300, 9];

/// A part of a path that is not folded, and of one request alone.
fn name(number: usize) -> String {
    let letter = |place: usize| char::from(b"bcdfghjklm"[number / place % 10]);
    format!("/item/{}{}{}", letter(100), letter(10), letter(1))
}

/// How a message goes into calls.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Calls {
    One,
    /// The head, and each part of the body.
    Each,
}

/// A head with a body: the calls that send it.
fn message(numbers: &mut Numbers, first: &str, has_body: bool, until_close: bool) -> Vec<Vec<u8>> {
    let mut head = format!("{first}\r\n");
    if numbers.below(4) == 0 {
        let length = [100, 900, 1500, 3000][numbers.below(4)];
        head.extend(["Cookie: ", &*"c".repeat(length), "\r\n"]);
    }
    let mut parts: Vec<Vec<u8>> = Vec::new();
    let most = [10, 1000, 6000][numbers.below(3)];
    let content = |numbers: &mut Numbers| vec![b'x'; 1 + numbers.below(most)];
    match numbers.below(3) {
        _ if !has_body => {}
        _ if until_close => {
            for _ in 0..=numbers.below(3) {
                parts.push(content(numbers));
            }
        }
        0 => {
            for _ in 0..=numbers.below(3) {
                let data = content(numbers);
                let chunk = [format!("{:x}\r\n", data.len()).as_bytes(), &data, b"\r\n"].concat();
                parts.push(chunk);
            }
            parts.push(b"0\r\n\r\n".to_vec());
            if numbers.below(2) == 0 {
                // The last chunk goes with the one before it.
                let end = parts.pop().unwrap_or_default();
                parts.last_mut().unwrap().extend(end);
            }
            head += "Transfer-Encoding: chunked\r\n";
        }
        _ => {
            for _ in 0..numbers.below(3) {
                parts.push(content(numbers));
            }
            let length: usize = parts.iter().map(Vec::len).sum();
            head.extend(["Content-Length: ", &*length.to_string(), "\r\n"]);
        }
    }
    if numbers.below(8) == 0 {
        head.extend(["X-Last: ", &*"z".repeat(1200), "\r\n"]);
    }
    head += "\r\n";
    let calls = if numbers.below(2) == 0 {
        Calls::One
    } else {
        Calls::Each
    };
    match calls {
        Calls::One => vec![[head.into_bytes(), parts.concat()].concat()],
        Calls::Each => [vec![head.into_bytes()], parts].concat(),
    }
}

fn request(numbers: &mut Numbers, number: usize) -> (&'static str, Vec<Vec<u8>>) {
    let method = ["GET", "GET", "HEAD", "POST", "PUT", "DELETE"][numbers.below(6)];
    let query = if numbers.below(10) == 0 {
        format!("?q={}", "q".repeat(numbers.below(2500)))
    } else {
        String::new()
    };
    let first = format!("{method} {}{query} HTTP/1.1\r\nHost: shop", name(number));
    let has_body = matches!(method, "POST" | "PUT");
    (method, message(numbers, &first, has_body, false))
}

fn answer(numbers: &mut Numbers, method: &str, is_last: bool) -> Vec<Vec<u8>> {
    let status = [200, 200, 200, 201, 204, 304, 404, 500, 503][numbers.below(9)];
    let has_body = method != "HEAD" && !matches!(status, 204 | 304);
    let until_close = is_last && numbers.below(2) == 0;
    let first = format!("HTTP/1.1 {status} X");
    let mut calls = message(numbers, &first, has_body, until_close);
    if !has_body && method == "HEAD" && status == 200 {
        // The length of what a GET would have brought.
        calls = vec![b"HTTP/1.1 200 X\r\nContent-Length: 5000\r\n\r\n".to_vec()];
    }
    if numbers.below(20) == 0 {
        calls.insert(
            0,
            b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".to_vec(),
        );
    }
    calls
}

fn say(conversation: &mut Conversation, direction: Direction, calls: Vec<Vec<u8>>) {
    for call in calls {
        conversation.say(direction, call);
    }
}

/// A client that waits for each answer.
fn turns(numbers: &mut Numbers) -> Conversation {
    let mut conversation = Conversation {
        longest: LONGEST.to_vec(),
        requests: 3 + numbers.below(20),
        ..Conversation::default()
    };
    for number in 0..conversation.requests {
        if numbers.below(8) == 0 {
            conversation.pause();
        }
        let (method, calls) = request(numbers, number);
        say(&mut conversation, CLIENT, calls);
        let is_last = number + 1 == conversation.requests;
        let calls = answer(numbers, method, is_last);
        say(&mut conversation, SERVER, calls);
    }
    conversation
}

/// A client that sends several requests before it reads.
fn pipelines(numbers: &mut Numbers) -> Conversation {
    let mut conversation = Conversation {
        longest: LONGEST.to_vec(),
        requests: 5 + numbers.below(20),
        shown: 3,
        ..Conversation::default()
    };
    // What shows that the client does not wait: else it is taken for one that does.
    for number in 0..2 {
        let first = format!("GET {} HTTP/1.1\r\n\r\n", name(number));
        conversation.say(CLIENT, first.into_bytes());
    }
    conversation.say(SERVER, b"HTTP/1.1 204 X\r\n\r\n".repeat(2));
    let mut number = 2;
    while number < conversation.requests {
        if numbers.below(4) == 0 {
            conversation.pause();
        }
        let many = (1 + numbers.below(4)).min(conversation.requests - number);
        let mut methods = Vec::new();
        let mut together = Vec::new();
        for _ in 0..many {
            let (method, calls) = request(numbers, number);
            number += 1;
            methods.push(method);
            if numbers.below(2) == 0 {
                together.extend(calls.concat());
            } else {
                conversation.say(CLIENT, std::mem::take(&mut together));
                say(&mut conversation, CLIENT, calls);
            }
        }
        conversation.say(CLIENT, together);
        let mut together = Vec::new();
        for method in methods {
            let calls = answer(numbers, method, false);
            if numbers.below(2) == 0 {
                together.extend(calls.concat());
            } else {
                conversation.say(SERVER, std::mem::take(&mut together));
                say(&mut conversation, SERVER, calls);
            }
        }
        conversation.say(SERVER, together);
    }
    conversation
}

fn run(make: fn(&mut Numbers) -> Conversation, seeds: std::ops::Range<u64>) -> Outcomes {
    let mut sum = Outcomes::default();
    for seed in seeds {
        let conversation = make(&mut Numbers::new(seed));
        let outcomes = check(&conversation, &[HTTP2, HTTP1], facts(8080), seed);
        sum.sent += outcomes.sent;
        sum.found += outcomes.found;
        sum.known += outcomes.known;
        sum.sizes += outcomes.sizes;
    }
    sum
}

#[test]
fn requests_in_turns_are_right_or_unknown() {
    let Outcomes {
        sent,
        found,
        known,
        sizes,
    } = run(turns, seeds(20));
    assert!(found * 10 > sent * 5, "{found} of {sent}");
    assert!(known * 10 > sent * 4, "{known} of {sent}");
    assert!(sizes * 10 > sent * 3, "{sizes} of {sent}");
}

#[test]
fn requests_in_pipelines_are_right_or_unknown() {
    let Outcomes { sent, known, .. } = run(pipelines, seeds(20));
    assert!(known * 10 > sent * 2, "{known} of {sent}");
}
