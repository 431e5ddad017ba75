//! The head of a DNS message: its id, its question, its response code.

use domain::base::{Message as Wire, Rtype, ToName as _, iana::Class, iana::Opcode};

use super::super::Direction;

/// What is used of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) id: u16,
    pub(super) is_response: bool,
    /// `None`: a response to a query that the server could not read.
    pub(super) question: Option<Question>,
    pub(super) code: Code,
}

/// What was asked, as it is compared: the name in lower case, not folded. It stays in the decoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    name: Vec<u8>,
    kind: Rtype,
    class: Class,
}

/// The response code with the bits of EDNS (RFC 6891 section 6.1.3), where its record was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code(pub(super) u16);

impl Message {
    /// Whether queries go this way, or responses.
    pub(super) fn goes(&self, direction: Direction) -> bool {
        match direction {
            Direction::ToServer => !self.is_response,
            Direction::ToClient => self.is_response,
        }
    }
}

/// Reads a message of which at least the question must be there. Only standard queries are.
pub(super) fn read(bytes: &[u8]) -> Option<Message> {
    let message = Wire::from_slice(bytes).ok()?;
    let (header, counts) = (message.header(), message.header_counts());
    if header.opcode() != Opcode::QUERY {
        return None;
    }
    let question = match counts.qdcount() {
        0 if header.qr() && counts.ancount() == 0 => None,
        1 => Some(question(message)?),
        _ => return None,
    };
    if !header.qr() && (counts.ancount() > 0 || counts.arcount() > 4) {
        return None;
    }
    let code = match message.opt() {
        Some(options) => options.rcode(header).to_int(),
        None => u16::from(header.rcode().to_int()),
    };
    Some(Message {
        id: header.id(),
        is_response: header.qr(),
        question,
        code: Code(code),
    })
}

fn question(message: &Wire<[u8]>) -> Option<Question> {
    let question = message.sole_question().ok()?;
    let class = question.qclass();
    if ![Class::IN, Class::CH, Class::HS, Class::NONE, Class::ANY].contains(&class) {
        return None;
    }
    Some(Question {
        name: question.qname().to_vec().as_slice().to_ascii_lowercase(),
        kind: question.qtype(),
        class,
    })
}

impl Question {
    /// `A`, `AAAA`, `TYPE65280`.
    pub(super) fn kind(&self) -> String {
        match self.kind.to_mnemonic_str() {
            Some(name) => name.to_owned(),
            None => format!("TYPE{}", self.kind.to_int()),
        }
    }

    /// The name without a dot at its end, with what differs from one machine, address or lookup to
    /// the next folded. At most 253 characters.
    pub(super) fn folded_name(&self) -> String {
        let mut labels = Vec::new();
        let mut rest = self.name.as_slice();
        while let Some((length, behind)) = rest.split_first()
            && *length > 0
            && let Some((label, behind)) = behind.split_at_checked(usize::from(*length))
        {
            labels.push(label);
            rest = behind;
        }
        if let [.., zone @ (b"in-addr" | b"ip6"), b"arpa"] = labels.as_slice() {
            return format!("{{n}}.{}.arpa", String::from_utf8_lossy(zone));
        }
        let mut name = String::new();
        for label in labels {
            if !name.is_empty() {
                name.push('.');
            }
            name.push_str(&fold_label(label));
        }
        if name.is_empty() {
            ".".to_owned()
        } else {
            name
        }
    }
}

/// Labels that are numbers, addresses, hashes or UUIDs stand for many.
fn fold_label(label: &[u8]) -> String {
    let digits = label.iter().filter(|byte| byte.is_ascii_digit()).count();
    let joined = |byte: &u8| *byte == b'-' || *byte == b'_';
    if digits > 0
        && label
            .iter()
            .all(|byte| byte.is_ascii_digit() || joined(byte))
    {
        return "{n}".to_owned();
    }
    let hex = label.iter().filter(|byte| byte.is_ascii_hexdigit()).count();
    if digits > 0
        && hex >= 16
        && label
            .iter()
            .all(|byte| byte.is_ascii_hexdigit() || joined(byte))
    {
        // Four hyphens between 32 digits.
        let is_uuid = label.len() == 36 && hex == 32;
        return if is_uuid { "{uuid}" } else { "{hex}" }.to_owned();
    }
    // Long labels with many digits carry data, such as tunnels and lookups of hashes do.
    if label.len() >= 32 && digits * 8 >= label.len() {
        return "{data}".to_owned();
    }
    super::super::text::printable(&label.escape_ascii().collect::<Vec<u8>>(), 253)
}
