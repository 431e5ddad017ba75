//! What is asked of each store, and how it answers.

use crate::{Direction, testing::Numbers};

/// What is to come out of a request.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) route: String,
    /// Code of its error.
    pub(super) error: Option<String>,
    /// It consists of several messages.
    pub(super) is_group: bool,
}

/// What was asked, the request, the answer.
type Exchanged = (Asked, Vec<u8>, Vec<u8>);

#[derive(Debug)]
pub(super) struct Store {
    pub(super) port: u16,
    /// Bytes that servers and clients read by themselves; 0: none do.
    pub(super) header: usize,
    pub(super) answers_in_order: bool,
    /// Bytes behind an answer that say that the store is ready for more.
    pub(super) trailer: usize,
    /// Clients may have several requests open.
    pub(super) is_pipelined: bool,
    pub(super) opening: fn() -> Vec<(Direction, Vec<u8>)>,
    /// A request with this number.
    pub(super) ask: fn(&mut Numbers, usize) -> Exchanged,
}

fn no_opening() -> Vec<(Direction, Vec<u8>)> {
    Vec::new()
}

fn text(length: usize) -> String {
    "v".repeat(length)
}

fn any_length(numbers: &mut Numbers) -> usize {
    let most = [4, 40, 400, 3000][numbers.below(4)];
    numbers.below(most)
}

fn one<'a>(numbers: &mut Numbers, of: &[&'a str]) -> &'a str {
    of[numbers.below(of.len())]
}

pub(super) const REDIS: Store = Store {
    port: 6379,
    header: 0,
    trailer: 0,
    answers_in_order: true,
    is_pipelined: true,
    opening: no_opening,
    ask: |numbers, _| {
        let name = one(
            numbers,
            &[
                "GET", "LRANGE", "ECHO", "HGETALL", "INCR", "DEL", "TYPE", "SMEMBERS",
            ],
        );
        let length = 1 + any_length(numbers).min(200);
        let key = text(length);
        let request = format!("*2\r\n${}\r\n{name}\r\n${length}\r\n{key}\r\n", name.len());
        let string = |length: usize| format!("${length}\r\n{}\r\n", text(length));
        let (answer, error) = match numbers.below(8) {
            0 => ("-WRONGTYPE no\r\n".to_owned(), Some("WRONGTYPE")),
            1 => ("-ERR no\r\n".to_owned(), Some("ERR")),
            2 => (format!(":{}\r\n", numbers.below(1000)), None),
            3 => ("+OK\r\n".to_owned(), None),
            4 => (string(any_length(numbers)), None),
            _ => {
                let (count, length) = (1 + numbers.below(40), any_length(numbers).min(120));
                (
                    format!("*{count}\r\n{}", string(length).repeat(count)),
                    None,
                )
            }
        };
        let asked = Asked {
            route: format!("{name} ?"),
            error: error.map(str::to_owned),
            is_group: false,
        };
        (asked, request.into_bytes(), answer.into_bytes())
    },
};

fn typed(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    [&[kind][..], &length, body].concat()
}

const TABLES: [&str; 6] = ["users", "carts", "orders", "items", "prices", "stocks"];

pub(super) const POSTGRESQL: Store = Store {
    port: 5432,
    header: 0,
    trailer: 6,
    answers_in_order: true,
    is_pipelined: true,
    opening: || {
        let startup = b"\0\0\0\x15\0\x03\0\0user\0canary\0\0".to_vec();
        let ready = [typed(b'R', &[0; 4]), typed(b'Z', b"I")].concat();
        vec![(Direction::ToServer, startup), (Direction::ToClient, ready)]
    },
    ask: |numbers, _| {
        let table = one(numbers, &TABLES);
        let route = format!("SELECT a FROM {table}");
        let is_bound = numbers.below(3) == 0;
        let request = if is_bound {
            [
                typed(b'P', format!("\0{route}\0\0\0").as_bytes()),
                typed(b'B', b"\0\0\0\0\0\0\0\0"),
                typed(b'D', b"P\0"),
                typed(b'E', b"\0\0\0\0\0"),
                typed(b'S', b""),
            ]
            .concat()
        } else {
            typed(b'Q', format!("{route}\0").as_bytes())
        };
        let mut answer = Vec::new();
        if is_bound {
            answer.extend([typed(b'1', b""), typed(b'2', b"")].concat());
        }
        answer.extend(typed(b'T', &[0; 30]));
        let length = any_length(numbers).min(150);
        for _ in 0..numbers.below(40) {
            answer.extend(typed(b'D', text(length).as_bytes()));
        }
        let error = match numbers.below(6) {
            0 => Some("42P01"),
            1 => Some("57014"),
            _ => None,
        };
        match error {
            Some(state) => {
                let fields = format!("SERROR\0C{state}\0Mno\0\0");
                answer.extend(typed(b'E', fields.as_bytes()));
            }
            None => answer.extend(typed(b'C', b"SELECT 5\0")),
        }
        answer.extend(typed(b'Z', b"I"));
        let asked = Asked {
            route,
            error: error.map(str::to_owned),
            is_group: is_bound,
        };
        (asked, request, answer)
    },
};

fn packet(number: usize, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_le_bytes();
    let number = u8::try_from(number % 256).unwrap();
    [&length[..3], &[number], payload].concat()
}

pub(super) const MYSQL: Store = Store {
    port: 3306,
    header: 4,
    trailer: 0,
    answers_in_order: true,
    is_pipelined: false,
    opening: || {
        let greeting =
            b"\x0a8.0.36\0\x01\0\0\0abcdefgh\0\xff\xf7\xff\x02\0\x00\x00\x15\0\0\0\0\0\0\0\0\0\0abcdefghijkl\0";
        let client = [&b"\x00\x82\0\0\0\0\0\x01\x2d"[..], &[0; 23], b"canary\0\0"].concat();
        vec![
            (Direction::ToClient, packet(0, greeting)),
            (Direction::ToServer, packet(1, &client)),
            (Direction::ToClient, packet(2, b"\x00\0\0\x02\0\0\0")),
        ]
    },
    ask: |numbers, _| {
        let table = one(numbers, &TABLES);
        let route = format!("SELECT a FROM {table}");
        let request = packet(0, format!("\x03{route}").as_bytes());
        let ends_old = numbers.below(2) == 0;
        let error = if numbers.below(4) == 0 {
            Some("1146")
        } else {
            None
        };
        let failure = b"\xff\x7a\x04#42S02no";
        let mut answer = Vec::new();
        let mut packets = vec![b"\x01".to_vec(), b"\x03def\x00\x00\x00\x01a\x00".to_vec()];
        if ends_old {
            packets.push(b"\xfe\0\0\x02\0".to_vec());
        }
        let length = any_length(numbers).min(150);
        let row = [
            &[u8::try_from(length).unwrap()][..],
            text(length).as_bytes(),
        ]
        .concat();
        packets.extend(vec![row; numbers.below(40)]);
        match (error, ends_old) {
            (Some(_), _) if numbers.below(2) == 0 => packets = vec![failure.to_vec()],
            (Some(_), _) => packets.push(failure.to_vec()),
            (None, true) => packets.push(b"\xfe\0\0\x02\0".to_vec()),
            (None, false) => packets.push(b"\xfe\0\0\x02\0\0\0".to_vec()),
        }
        for (number, payload) in packets.iter().enumerate() {
            answer.extend(packet(number + 1, payload));
        }
        let asked = Asked {
            route,
            error: error.map(str::to_owned),
            is_group: false,
        };
        (asked, request, answer)
    },
};

fn sized(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&length[..], message].concat()
}

pub(super) const KAFKA: Store = Store {
    port: 9092,
    header: 4,
    trailer: 0,
    answers_in_order: false,
    is_pipelined: true,
    opening: no_opening,
    ask: |numbers, number| {
        let id = i32::try_from(number).unwrap().to_be_bytes();
        let topic = one(numbers, &["orders", "carts1", "users2"]);
        let named = [&b"\0\0\0\x01\0\x06"[..], topic.as_bytes()].concat();
        let records = text(any_length(numbers));
        let request = [
            &b"\0\0\0\x07"[..],
            &id,
            b"\0\x06client\xff\xff\xff\xff\0\0\x75\x30",
            &named,
            b"\0\0\0\x01\0\0\0\0",
            records.as_bytes(),
        ]
        .concat();
        let error = if numbers.below(4) == 0 { 19 } else { 0 };
        let rest = vec![0; 28 + any_length(numbers)];
        let answer = [&id[..], &named, b"\0\0\0\x01\0\0\0\0\0", &[error], &rest].concat();
        let asked = Asked {
            route: format!("Produce {topic}"),
            error: (error == 19).then(|| "NOT_ENOUGH_REPLICAS".to_owned()),
            is_group: false,
        };
        (asked, sized(&request), sized(&answer))
    },
};

fn document(elements: &[Vec<u8>]) -> Vec<u8> {
    let body = elements.concat();
    let length = u32::try_from(body.len() + 5).unwrap().to_le_bytes();
    [&length[..], &body, b"\0"].concat()
}

fn string(name: &str, value: &str) -> Vec<u8> {
    let length = u32::try_from(value.len() + 1).unwrap().to_le_bytes();
    [
        b"\x02",
        name.as_bytes(),
        b"\0",
        &length,
        value.as_bytes(),
        b"\0",
    ]
    .concat()
}

fn nested(kind: u8, name: &str, elements: &[Vec<u8>]) -> Vec<u8> {
    [&[kind][..], name.as_bytes(), b"\0", &document(elements)].concat()
}

fn double(name: &str, value: f64) -> Vec<u8> {
    [b"\x01", name.as_bytes(), b"\0", &value.to_le_bytes()].concat()
}

fn message(id: u32, answered: u32, elements: &[Vec<u8>]) -> Vec<u8> {
    let body = [&[0; 5][..], &document(elements)].concat();
    let length = u32::try_from(body.len() + 16).unwrap();
    let header = [length, id, answered, 2013].map(u32::to_le_bytes);
    [header.concat(), body].concat()
}

pub(super) const MONGODB: Store = Store {
    port: 27017,
    header: 16,
    trailer: 0,
    answers_in_order: false,
    is_pipelined: true,
    opening: no_opening,
    ask: |numbers, number| {
        let id = u32::try_from(number).unwrap() + 1;
        let collection = one(numbers, &TABLES);
        let filter = nested(3, "filter", &[string("name", &text(any_length(numbers)))]);
        let request = [string("find", collection), filter, string("$db", "shop")];
        let fails = numbers.below(4) == 0;
        let answer = if fails {
            let message = string("errmsg", &text(any_length(numbers).min(100)));
            vec![
                double("ok", 0.0),
                message,
                string("codeName", "Unauthorized"),
            ]
        } else {
            let rows = nested(4, "firstBatch", &[string("0", &text(any_length(numbers)))]);
            vec![nested(3, "cursor", &[rows]), double("ok", 1.0)]
        };
        let asked = Asked {
            route: format!("find {collection}"),
            error: fails.then(|| "Unauthorized".to_owned()),
            is_group: false,
        };
        (
            asked,
            message(id, 0, &request),
            message(id + 5000, id, &answer),
        )
    },
};

pub(super) const DNS: Store = Store {
    port: 53,
    header: 2,
    trailer: 0,
    answers_in_order: false,
    is_pipelined: true,
    opening: no_opening,
    ask: |numbers, number| {
        let name = one(numbers, &TABLES);
        let id = u16::try_from(number + 7).unwrap().to_be_bytes();
        let length = u8::try_from(name.len()).unwrap();
        let name = [&[length][..], name.as_bytes(), b"\x07example\0\0\x01\0\x01"].concat();
        let fails = numbers.below(4) == 0;
        let code = if fails { 3 } else { 0 };
        let records =
            vec![b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x01".to_vec(); numbers.below(40)];
        let records = if fails { Vec::new() } else { records };
        let count = u8::try_from(records.len()).unwrap();
        let request = [&id[..], b"\x01\0\0\x01\0\0\0\0\0\0", &name].concat();
        let answer = [
            &id[..],
            &[0x81, 0x80 | code, 0, 1, 0, count, 0, 0, 0, 0],
            &name,
            &records.concat(),
        ]
        .concat();
        let route = String::from_utf8_lossy(&name[1..=usize::from(length)]).into_owned();
        let asked = Asked {
            route: format!("{route}.example"),
            error: fails.then(|| "NXDOMAIN".to_owned()),
            is_group: false,
        };
        let framed = |message: &[u8]| {
            let length = u16::try_from(message.len()).unwrap().to_be_bytes();
            [&length[..], message].concat()
        };
        (asked, framed(&request), framed(&answer))
    },
};
