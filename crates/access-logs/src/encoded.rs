//! An entry as it is encoded: its numbers, and where its texts are.
//!
//! Entries are read by hand: each field is looked at once where it is, and nothing is shared or copied until the whole entry is known to
//! be one. As protobuf has it, of a number or text that comes twice the last one holds, and of a message that comes twice the
//! fields are put together. Groups, which Envoy's messages do not use, make an entry unreadable.

use crate::{
    GRPC_STATUS,
    messages::{address, common, connection, entry, header, request, response, time, tls},
    wire::{Content, Field, Fields, Place, WireError},
};

/// Bytes are no entry. It is only counted, so that the place does not matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable;

impl From<WireError> for Unreadable {
    fn from(_error: WireError) -> Self {
        Self
    }
}

/// `HTTPAccessLogEntry`.
#[derive(Debug, Default)]
pub(crate) struct HttpEntry {
    pub(crate) common: Common,
    pub(crate) protocol_version: i32,
    pub(crate) request: Request,
    pub(crate) response: Response,
}

/// `TCPAccessLogEntry`.
#[derive(Debug, Default)]
pub(crate) struct TcpEntry {
    pub(crate) common: Common,
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
}

/// `AccessLogCommon`.
#[derive(Debug, Default)]
pub(crate) struct Common {
    pub(crate) downstream_remote_address: Address,
    pub(crate) downstream_local_address: Address,
    pub(crate) downstream_direct_remote_address: Address,
    pub(crate) upstream_remote_address: Address,
    pub(crate) upstream_local_address: Address,
    pub(crate) start_time: Option<Time>,
    pub(crate) time_to_last_rx_byte: Option<Time>,
    pub(crate) time_to_first_upstream_tx_byte: Option<Time>,
    pub(crate) time_to_last_upstream_tx_byte: Option<Time>,
    pub(crate) time_to_first_upstream_rx_byte: Option<Time>,
    pub(crate) time_to_last_upstream_rx_byte: Option<Time>,
    pub(crate) time_to_first_downstream_tx_byte: Option<Time>,
    pub(crate) time_to_last_downstream_tx_byte: Option<Time>,
    pub(crate) duration: Option<Time>,
    pub(crate) upstream_cluster: Place,
    pub(crate) upstream_transport_failure_reason: Place,
    pub(crate) route_name: Place,
    pub(crate) connection_termination_details: Place,
    pub(crate) stream_id: Place,
    pub(crate) downstream_transport_failure_reason: Place,
    /// The flag of field `n` of `ResponseFlags` is bit `n - 1`.
    pub(crate) response_flags: u32,
    pub(crate) upstream_request_attempt_count: u32,
    pub(crate) access_log_type: i32,
    pub(crate) intermediate_log_entry: bool,
    pub(crate) downstream_wire_bytes_sent: u64,
    pub(crate) downstream_wire_bytes_received: u64,
    pub(crate) upstream_wire_bytes_sent: u64,
    pub(crate) upstream_wire_bytes_received: u64,
    pub(crate) tls: Tls,
}

/// `TLSProperties`.
#[derive(Debug, Default)]
pub(crate) struct Tls {
    pub(crate) version: i32,
    pub(crate) sni_hostname: Place,
    /// An encoded `CertificateProperties`, of which only the first URI is needed.
    pub(crate) local_certificate: Place,
    pub(crate) peer_certificate: Place,
}

/// `HTTPRequestProperties`.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) method: i32,
    pub(crate) authority: Place,
    pub(crate) path: Place,
    pub(crate) id: Place,
    pub(crate) original_path: Place,
    pub(crate) headers_bytes: u64,
    pub(crate) body_bytes: u64,
}

/// `HTTPResponseProperties`.
#[derive(Debug, Default)]
pub(crate) struct Response {
    pub(crate) code: Option<u32>,
    pub(crate) headers_bytes: u64,
    pub(crate) body_bytes: u64,
    pub(crate) code_details: Place,
    /// The value of [`GRPC_STATUS`].
    pub(crate) status_in_headers: Option<Place>,
    pub(crate) status_in_trailers: Option<Place>,
}

/// `google.protobuf.Timestamp` and `google.protobuf.Duration`: both parts have the same sign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Time {
    pub(crate) seconds: i64,
    pub(crate) nanos: i32,
}

/// `Address`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Address {
    #[default]
    Absent,
    Socket(Socket),
    /// Its path.
    Pipe(Place),
    /// The name of its listener.
    Internal(Place),
}

/// `SocketAddress`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Socket {
    pub(crate) address: Place,
    pub(crate) port: u32,
    pub(crate) named_port: Place,
}

impl HttpEntry {
    /// Overwrites `self`: to move an entry costs as much as to read some of its fields.
    pub(crate) fn read(&mut self, message: &[u8], place: Place) -> Result<(), Unreadable> {
        *self = Self::default();
        // An encoded response is not put together: its last one is read.
        let mut answer = Place::default();
        for field in Fields::of(message, place) {
            let field = field?;
            match field.number {
                entry::COMMON => self.common.add(message, bytes(field)?)?,
                entry::PROTOCOL_VERSION => self.protocol_version = int32(field)?,
                entry::REQUEST => self.request.add(message, bytes(field)?)?,
                entry::RESPONSE => answer = bytes(field)?,
                _ => {}
            }
        }
        self.response.add(message, answer)
    }
}

impl TcpEntry {
    /// Reads it over another one.
    pub(crate) fn read(&mut self, message: &[u8], place: Place) -> Result<(), Unreadable> {
        *self = Self::default();
        for field in Fields::of(message, place) {
            let field = field?;
            match field.number {
                entry::COMMON => self.common.add(message, bytes(field)?)?,
                entry::CONNECTION => self.add_connection(message, bytes(field)?)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn add_connection(&mut self, message: &[u8], place: Place) -> Result<(), Unreadable> {
        for field in Fields::of(message, place) {
            let field = field?;
            match field.number {
                connection::RECEIVED_BYTES => self.received_bytes = uint64(field)?,
                connection::SENT_BYTES => self.sent_bytes = uint64(field)?,
                _ => {}
            }
        }
        Ok(())
    }
}

impl Common {
    fn add(&mut self, message: &[u8], place: Place) -> Result<(), Unreadable> {
        for field in Fields::of(message, place) {
            let field = field?;
            if let Some(address) = self.address(field.number) {
                address.add(message, bytes(field)?)?;
            } else if let Some(time) = self.time(field.number) {
                time.get_or_insert_default().add(message, bytes(field)?)?;
            } else if let Some(text) = self.text(field.number) {
                *text = bytes(field)?;
            } else {
                self.add_other(message, field)?;
            }
        }
        Ok(())
    }

    fn address(&mut self, number: u32) -> Option<&mut Address> {
        Some(match number {
            common::DOWNSTREAM_REMOTE_ADDRESS => &mut self.downstream_remote_address,
            common::DOWNSTREAM_LOCAL_ADDRESS => &mut self.downstream_local_address,
            common::DOWNSTREAM_DIRECT_REMOTE_ADDRESS => &mut self.downstream_direct_remote_address,
            common::UPSTREAM_REMOTE_ADDRESS => &mut self.upstream_remote_address,
            common::UPSTREAM_LOCAL_ADDRESS => &mut self.upstream_local_address,
            _ => return None,
        })
    }

    fn time(&mut self, number: u32) -> Option<&mut Option<Time>> {
        Some(match number {
            common::START_TIME => &mut self.start_time,
            common::TIME_TO_LAST_RX_BYTE => &mut self.time_to_last_rx_byte,
            common::TIME_TO_FIRST_UPSTREAM_TX_BYTE => &mut self.time_to_first_upstream_tx_byte,
            common::TIME_TO_LAST_UPSTREAM_TX_BYTE => &mut self.time_to_last_upstream_tx_byte,
            common::TIME_TO_FIRST_UPSTREAM_RX_BYTE => &mut self.time_to_first_upstream_rx_byte,
            common::TIME_TO_LAST_UPSTREAM_RX_BYTE => &mut self.time_to_last_upstream_rx_byte,
            common::TIME_TO_FIRST_DOWNSTREAM_TX_BYTE => &mut self.time_to_first_downstream_tx_byte,
            common::TIME_TO_LAST_DOWNSTREAM_TX_BYTE => &mut self.time_to_last_downstream_tx_byte,
            common::DURATION => &mut self.duration,
            _ => return None,
        })
    }

    fn text(&mut self, number: u32) -> Option<&mut Place> {
        Some(match number {
            common::UPSTREAM_CLUSTER => &mut self.upstream_cluster,
            common::UPSTREAM_TRANSPORT_FAILURE_REASON => {
                &mut self.upstream_transport_failure_reason
            }
            common::ROUTE_NAME => &mut self.route_name,
            common::CONNECTION_TERMINATION_DETAILS => &mut self.connection_termination_details,
            common::STREAM_ID => &mut self.stream_id,
            common::DOWNSTREAM_TRANSPORT_FAILURE_REASON => {
                &mut self.downstream_transport_failure_reason
            }
            _ => return None,
        })
    }

    fn add_other(&mut self, message: &[u8], field: Field) -> Result<(), Unreadable> {
        match field.number {
            common::TLS_PROPERTIES => self.tls.add(message, bytes(field)?)?,
            common::RESPONSE_FLAGS => self.add_flags(message, bytes(field)?)?,
            common::UPSTREAM_REQUEST_ATTEMPT_COUNT => {
                self.upstream_request_attempt_count = uint32(field)?;
            }
            common::INTERMEDIATE_LOG_ENTRY => self.intermediate_log_entry = uint64(field)? != 0,
            common::DOWNSTREAM_WIRE_BYTES_SENT => self.downstream_wire_bytes_sent = uint64(field)?,
            common::DOWNSTREAM_WIRE_BYTES_RECEIVED => {
                self.downstream_wire_bytes_received = uint64(field)?;
            }
            common::UPSTREAM_WIRE_BYTES_SENT => self.upstream_wire_bytes_sent = uint64(field)?,
            common::UPSTREAM_WIRE_BYTES_RECEIVED => {
                self.upstream_wire_bytes_received = uint64(field)?;
            }
            common::ACCESS_LOG_TYPE => self.access_log_type = int32(field)?,
            _ => {}
        }
        Ok(())
    }

    /// All flags are numbers but one, which is a message that says why.
    fn add_flags(&mut self, message: &[u8], place: Place) -> Result<(), Unreadable> {
        for field in Fields::of(message, place) {
            let field = field?;
            let number = field.number;
            let is_set = match number {
                common::UNAUTHORIZED_DETAILS => {
                    for field in Fields::of(message, bytes(field)?) {
                        let field = field?;
                        if field.number == common::UNAUTHORIZED_REASON {
                            uint64(field)?;
                        }
                    }
                    true
                }
                1..=common::LAST_FLAG => uint64(field)? != 0,
                _ => continue,
            };
            let bit = 1 << (number - 1);
            if is_set {
                self.response_flags |= bit;
            } else {
                self.response_flags &= !bit;
            }
        }
        Ok(())
    }
}

impl Tls {
    fn add(&mut self, message: &[u8], place: Place) -> Result<(), Unreadable> {
        for field in Fields::of(message, place) {
            let field = field?;
            match field.number {
                tls::VERSION => self.version = int32(field)?,
                tls::SNI_HOSTNAME => self.sni_hostname = bytes(field)?,
                tls::LOCAL_CERTIFICATE => self.local_certificate = bytes(field)?,
                tls::PEER_CERTIFICATE => self.peer_certificate = bytes(field)?,
                _ => {}
            }
        }
        Ok(())
    }
}

impl Request {
    fn add(&mut self, message: &[u8], place: Place) -> Result<(), Unreadable> {
        for field in Fields::of(message, place) {
            let field = field?;
            match field.number {
                request::METHOD => self.method = int32(field)?,
                request::AUTHORITY => self.authority = bytes(field)?,
                request::PATH => self.path = bytes(field)?,
                request::ID => self.id = bytes(field)?,
                request::ORIGINAL_PATH => self.original_path = bytes(field)?,
                request::HEADERS_BYTES => self.headers_bytes = uint64(field)?,
                request::BODY_BYTES => self.body_bytes = uint64(field)?,
                _ => {}
            }
        }
        Ok(())
    }
}

impl Response {
    fn add(&mut self, message: &[u8], place: Place) -> Result<(), Unreadable> {
        for field in Fields::of(message, place) {
            let field = field?;
            match field.number {
                response::CODE => {
                    let code = self.code.get_or_insert_default();
                    for field in Fields::of(message, bytes(field)?) {
                        let field = field?;
                        if field.number == response::CODE_VALUE {
                            *code = uint32(field)?;
                        }
                    }
                }
                response::HEADERS_BYTES => self.headers_bytes = uint64(field)?,
                response::BODY_BYTES => self.body_bytes = uint64(field)?,
                response::CODE_DETAILS => self.code_details = bytes(field)?,
                response::HEADERS => {
                    let found = grpc_status(message, field);
                    self.status_in_headers = found.or(self.status_in_headers);
                }
                response::TRAILERS => {
                    let found = grpc_status(message, field);
                    self.status_in_trailers = found.or(self.status_in_trailers);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The value of a header or trailer, if it is the status of gRPC. Damage within it is left out.
fn grpc_status(message: &[u8], field: Field) -> Option<Place> {
    let (mut name, mut value) = <(Place, Place)>::default();
    for part in Fields::of(message, bytes(field).ok()?).flatten() {
        if let Some(place) = part.bytes_of(header::NAME) {
            name = place;
        } else if let Some(place) = part.bytes_of(header::VALUE) {
            value = place;
        }
    }
    (message.get(name.range())? == GRPC_STATUS.as_bytes()).then_some(value)
}

impl Time {
    fn add(&mut self, message: &[u8], place: Place) -> Result<(), Unreadable> {
        for field in Fields::of(message, place) {
            let field = field?;
            match field.number {
                time::SECONDS => self.seconds = uint64(field)?.cast_signed(),
                time::NANOS => self.nanos = int32(field)?,
                _ => {}
            }
        }
        Ok(())
    }
}

impl Address {
    fn add(&mut self, message: &[u8], place: Place) -> Result<(), Unreadable> {
        for field in Fields::of(message, place) {
            let field = field?;
            match field.number {
                address::SOCKET => {
                    if !matches!(self, Self::Socket(_)) {
                        *self = Self::Socket(Socket::default());
                    }
                    if let Self::Socket(socket) = self {
                        socket.add(message, bytes(field)?)?;
                    }
                }
                address::PIPE => {
                    let before = match self {
                        Self::Pipe(path) => *path,
                        Self::Absent | Self::Socket(_) | Self::Internal(_) => Place::default(),
                    };
                    let path = last_text(message, bytes(field)?, address::PIPE_PATH)?;
                    *self = Self::Pipe(path.unwrap_or(before));
                }
                address::INTERNAL => {
                    let before = match self {
                        Self::Internal(name) => *name,
                        Self::Absent | Self::Socket(_) | Self::Pipe(_) => Place::default(),
                    };
                    let name = last_text(message, bytes(field)?, address::INTERNAL_LISTENER)?;
                    *self = Self::Internal(name.unwrap_or(before));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Socket {
    fn add(&mut self, message: &[u8], place: Place) -> Result<(), Unreadable> {
        for field in Fields::of(message, place) {
            let field = field?;
            match field.number {
                address::SOCKET_ADDRESS => self.address = bytes(field)?,
                address::SOCKET_PORT => self.port = uint32(field)?,
                address::SOCKET_NAMED_PORT => self.named_port = bytes(field)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// The last text with a number in a message that has no other one that is read.
fn last_text(message: &[u8], place: Place, number: u32) -> Result<Option<Place>, Unreadable> {
    let mut text = None;
    for field in Fields::of(message, place) {
        let field = field?;
        if field.number == number {
            text = Some(bytes(field)?);
        }
    }
    Ok(text)
}

fn bytes(field: Field) -> Result<Place, Unreadable> {
    match field.content {
        Content::Bytes(place) => Ok(place),
        Content::Varint(_) | Content::Fixed64(_) | Content::Fixed32 => Err(Unreadable),
    }
}

fn uint64(field: Field) -> Result<u64, Unreadable> {
    match field.content {
        Content::Varint(number) => Ok(number),
        Content::Bytes(_) | Content::Fixed64(_) | Content::Fixed32 => Err(Unreadable),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "protobuf keeps the lower bits"
)]
fn uint32(field: Field) -> Result<u32, Unreadable> {
    uint64(field).map(|number| number as u32)
}

fn int32(field: Field) -> Result<i32, Unreadable> {
    uint32(field).map(u32::cast_signed)
}

#[cfg(test)]
#[path = "encoded_tests.rs"]
mod tests;
