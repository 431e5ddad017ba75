//! Requests with their answers.

use super::{
    super::{
        Direction, Exchange, Limits, Options, Outcome, Protocol, Status, WrongProtocol,
        framed::Speech,
        frames::{Extent, Frame},
        named::Named,
        reader::Reader,
    },
    LENGTH_BYTES, MOST_MESSAGE, RequestHead,
    apis::{API_VERSIONS, Api, SASL_HANDSHAKE, error_name, is_of_server},
    body::{self, Told},
};

#[derive(Debug)]
pub(super) struct KafkaSession {
    limits: Limits,
    open: Named<Asked>,
    /// After a handshake of version 0 tokens go to and fro without a header.
    bare_tokens: bool,
}

#[derive(Debug)]
struct Asked {
    correlation: i32,
    api: Api,
    version: i16,
}

/// Bytes of a request that may say what it is about: header, transaction, topic.
const KEPT_REQUEST: usize = 1024;
const KEPT_ANSWER: usize = 512;

impl KafkaSession {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            limits: options.limits,
            open: Named::new(options.limits.open_exchanges),
            bare_tokens: false,
        }
    }

    fn request(&mut self, frame: &Frame<'_>, out: &mut Vec<Exchange>) -> Result<(), WrongProtocol> {
        let bytes = frame.head.get(LENGTH_BYTES..).unwrap_or_default();
        let Some(head) = RequestHead::read(bytes) else {
            return if self.bare_tokens {
                Ok(())
            } else {
                Err(WrongProtocol)
            };
        };
        let RequestHead {
            api,
            version,
            correlation,
            body,
        } = head;
        self.bare_tokens = api.key == SASL_HANDSHAKE && version == 0;
        let subject = body.map(|mut body| body::subject(api, version, &mut body));
        let subject = subject.unwrap_or_default();
        let mut exchange = self.open.request(Protocol::Kafka, frame);
        exchange.method = Some(api.name.to_owned());
        exchange.route = Some(match subject.topic {
            Some(topic) => format!("{} {topic}", api.name),
            None => api.name.to_owned(),
        });
        if subject.is_silent {
            // All that there will be of it.
            exchange.outcome = Outcome::Ok;
            out.push(exchange);
            return Ok(());
        }
        let asked = Asked {
            correlation,
            api,
            version,
        };
        self.open.wait(exchange, asked, out);
        Ok(())
    }

    fn answer(&mut self, frame: &Frame<'_>, out: &mut Vec<Exchange>) {
        let mut reader = Reader::new(frame.head.get(LENGTH_BYTES..).unwrap_or_default());
        let Some(correlation) = reader.i32_be() else {
            // Whose it is was not captured.
            self.open.skipped(frame.end_ns);
            return;
        };
        let is_asked = |asked: &Asked| asked.correlation == correlation;
        let Some((mut exchange, Asked { api, version, .. })) = self.open.answered(frame, is_asked)
        else {
            return;
        };
        // That of ApiVersions has the old header whatever its version.
        let tagged = api.is_flexible(version) && api.key != API_VERSIONS;
        let body = if tagged {
            body::skip_tags(&mut reader)
        } else {
            Some(())
        };
        let told = match body {
            Some(()) => body::error(api, version, &mut reader),
            None => Told::NotCaptured,
        };
        (exchange.status, exchange.outcome) = match told {
            Told::Nothing => (None, Outcome::Ok),
            Told::NotCaptured => (None, Outcome::Unknown),
            Told::Code(0) => (Some(Status::Fine), Outcome::Ok),
            Told::Code(code) => {
                let outcome = if is_of_server(code) {
                    Outcome::ServerError
                } else {
                    Outcome::ClientError
                };
                (Some(Status::Code(error_name(code))), outcome)
            }
        };
        exchange.is_timed = told == Told::NotCaptured;
        out.push(exchange);
    }
}

impl Speech for KafkaSession {
    fn protocol(&self) -> Protocol {
        Protocol::Kafka
    }

    fn header(&self, _direction: Direction) -> usize {
        LENGTH_BYTES
    }

    fn measure(&self, direction: Direction, header: &[u8]) -> Option<Extent> {
        let length = Reader::new(header).u32_be()?;
        let (least, keep) = match direction {
            Direction::ToServer if self.bare_tokens => (0, KEPT_REQUEST),
            Direction::ToServer => (10, KEPT_REQUEST),
            Direction::ToClient if self.bare_tokens => (0, KEPT_ANSWER),
            Direction::ToClient => (4, KEPT_ANSWER),
        };
        (least..=MOST_MESSAGE).contains(&length).then_some(Extent {
            length: LENGTH_BYTES as u64 + u64::from(length),
            keep: keep.min(self.limits.pending_bytes),
        })
    }

    fn resumes(&self, direction: Direction, bytes: &[u8], _at_ns: u64) -> bool {
        let body = bytes.get(LENGTH_BYTES..).unwrap_or_default();
        match direction {
            Direction::ToServer => RequestHead::read(body).is_some(),
            Direction::ToClient => {
                let correlation = Reader::new(body).i32_be();
                self.open
                    .awaits(|asked| Some(asked.correlation) == correlation)
            }
        }
    }

    fn frame(
        &mut self,
        direction: Direction,
        frame: &Frame<'_>,
        out: &mut Vec<Exchange>,
    ) -> Result<(), WrongProtocol> {
        match direction {
            Direction::ToServer => self.request(frame, out),
            Direction::ToClient => {
                self.answer(frame, out);
                Ok(())
            }
        }
    }

    fn lost(&mut self, direction: Direction, at_ns: u64, out: &mut Vec<Exchange>) {
        self.open.lost(direction, at_ns, out);
    }

    fn resumed_answers(&mut self, at_ns: u64) {
        self.open.skipped(at_ns);
    }

    fn skipped_answers(&mut self, at_ns: u64, _out: &mut Vec<Exchange>) {
        self.open.skipped(at_ns);
    }

    fn close(&mut self, at_ns: u64, answered_ns: Option<u64>, out: &mut Vec<Exchange>) {
        self.open.close(at_ns, answered_ns, out);
    }
}
