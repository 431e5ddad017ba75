//! The record of one request or connection.

use std::borrow::Cow;

use bytes::Bytes;
use profiler_protocols::{fold_grpc_path, fold_path, mask_query};

use crate::{
    address::Address,
    cluster::Role,
    flags::Flags,
    names::{HttpVersion, Kind, LogType, Stage, TlsVersion},
    timing::Timing,
};

/// One request, connection or session as one proxy reports it. Messages of the access log service and log records of
/// OpenTelemetry give the same entry.
///
/// Text is untrusted, may not be UTF-8, and is empty if absent. It shares the memory of the whole message; call
/// [`Entry::detach`] before keeping an entry. Each of two sidecars reports a request between them: count the sides
/// ([`Role`]) separately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    pub kind: Kind,
    pub log_type: LogType,
    pub stage: Stage,
    /// The same in all entries of a stream; made by Envoy.
    pub stream_id: Bytes,
    /// When the first byte was received, in nanoseconds since 1970 by the wall clock of Envoy's machine. Envoy's clock
    /// has microseconds.
    pub start_unix_ns: Option<u64>,
    pub timing: Timing,
    pub request: Request,
    pub response: Response,
    pub upstream: Upstream,
    pub sizes: Sizes,
    pub addresses: Addresses,
    pub tls: Tls,
}

/// The request. All fields are empty for connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    pub version: HttpVersion,
    pub method: Bytes,
    pub authority: Bytes,
    /// The path and query as the client sent them. They can contain secrets: show [`Entry::route`] or [`Entry::masked_path`].
    pub path: Bytes,
    /// `x-request-id`: the same at each proxy on the way.
    pub id: Bytes,
}

/// The response and the end of the request or connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// `None` if no response was sent.
    pub status: Option<u16>,
    /// The status of gRPC; `None` also where Envoy does not log it.
    pub grpc_status: Option<u32>,
    pub flags: Flags,
    /// The origin of the response, for example `via_upstream` or `upstream_response_timeout`.
    pub details: Bytes,
    /// The reason why Envoy closed the connection.
    pub termination_details: Bytes,
}

/// The upstream of the last attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Upstream {
    pub cluster: Bytes,
    pub route_name: Bytes,
    /// 0 if the request was never sent upstream.
    pub attempts: u32,
    /// The error of a failed connection to the upstream, for example of its TLS handshake.
    pub transport_failure: Bytes,
}

/// Sizes in bytes. 0 also means unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Of the body of a request, or received over a connection.
    pub received: u64,
    /// Of the body of a response, or sent over a connection.
    pub sent: u64,
    pub request_headers: u64,
    pub response_headers: u64,
    /// With the framing of HTTP, without TLS; the same for the following.
    pub downstream_wire_received: u64,
    pub downstream_wire_sent: u64,
    /// Of all attempts together.
    pub upstream_wire_sent: u64,
    pub upstream_wire_received: u64,
}

/// The ends of both connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// The client. It may come from a header, and has port 0 then, or from the PROXY protocol.
    pub downstream_remote: Address,
    /// The other end of the downstream connection.
    pub downstream_direct_remote: Address,
    /// The address that the client connected to, before a redirection to the proxy.
    pub downstream_local: Address,
    pub upstream_remote: Address,
    /// Envoy's own end of the upstream connection.
    pub upstream_local: Address,
}

/// TLS of both connections. Messages of the access log service say nothing of the upstream connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    pub downstream_version: TlsVersion,
    /// The server name that the client asked for.
    pub server_name: Bytes,
    /// The first URI in the client's certificate: in a mesh its SPIFFE id.
    pub downstream_peer_id: Bytes,
    /// The first URI in the certificate that the proxy showed the client.
    pub downstream_local_id: Bytes,
    pub upstream_version: TlsVersion,
    /// The first URI in the certificate of the upstream.
    pub upstream_peer_id: Bytes,
    /// The first URI in the certificate that the proxy showed the upstream.
    pub upstream_local_id: Bytes,
    /// The error of a failed handshake with the client.
    pub downstream_failure: Bytes,
}

/// The proxy that sent entries, as it claims.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identifier {
    /// Istio: `sidecar~10.0.0.7~pod.namespace~namespace.svc.cluster.local`.
    pub node_id: Bytes,
    pub node_cluster: Bytes,
    pub log_name: Bytes,
    /// As `1.36.4`; OpenTelemetry records have none.
    pub version: Bytes,
}

impl Entry {
    /// Whether the numbers are final. Count only these entries; a long stream has intermediate ones before.
    pub fn is_complete(&self) -> bool {
        self.stage == Stage::End
    }

    /// Whether the entry describes one attempt of the router (`upstream_log`) instead of the request.
    pub fn is_attempt(&self) -> bool {
        matches!(
            self.log_type,
            LogType::UpstreamPoolReady | LogType::UpstreamPeriodic | LogType::UpstreamEnd
        )
    }

    /// The path with ids, numbers and tokens folded, and without its query; absent without a path.
    pub fn route(&self) -> Option<String> {
        let path = &self.request.path;
        let fold = if self.response.grpc_status.is_some() {
            fold_grpc_path
        } else {
            fold_path
        };
        (!path.is_empty()).then(|| fold(&text(path)))
    }

    /// The path with `?` for the values of its query, at most `limit` bytes long; absent without a path.
    pub fn masked_path(&self, limit: usize) -> Option<String> {
        let path = &self.request.path;
        (!path.is_empty()).then(|| mask_query(&text(path), limit))
    }

    /// The side of the call, from the name of the cluster; unknown if the name is not UTF-8.
    pub fn role(&self) -> Role<'_> {
        std::str::from_utf8(&self.upstream.cluster).map_or_else(|_| Role::default(), Role::of)
    }

    /// Time that the proxy added ([`Timing::in_proxy_ns`]). Absent for requests with retries: the time before the last attempt
    /// includes the earlier attempts.
    pub fn in_proxy_ns(&self) -> Option<u64> {
        if self.upstream.attempts > 1 {
            return None;
        }
        self.timing.in_proxy_ns()
    }

    /// Copies the text of the entry, so that it no longer keeps the message in memory.
    #[must_use]
    pub fn detach(mut self) -> Self {
        for text in self.texts_mut() {
            *text = Bytes::copy_from_slice(text);
        }
        self
    }

    fn texts_mut(&mut self) -> impl Iterator<Item = &mut Bytes> {
        let Self {
            kind: _,
            log_type: _,
            stage: _,
            stream_id,
            start_unix_ns: _,
            timing: _,
            request,
            response,
            upstream,
            sizes: _,
            addresses,
            tls,
        } = self;
        let texts = [
            stream_id,
            &mut request.method,
            &mut request.authority,
            &mut request.path,
            &mut request.id,
            &mut response.details,
            &mut response.termination_details,
            &mut upstream.cluster,
            &mut upstream.route_name,
            &mut upstream.transport_failure,
            &mut tls.server_name,
            &mut tls.downstream_peer_id,
            &mut tls.downstream_local_id,
            &mut tls.upstream_peer_id,
            &mut tls.upstream_local_id,
            &mut tls.downstream_failure,
        ];
        let addresses = [
            &mut addresses.downstream_remote,
            &mut addresses.downstream_direct_remote,
            &mut addresses.downstream_local,
            &mut addresses.upstream_remote,
            &mut addresses.upstream_local,
        ];
        let addresses = addresses.into_iter().filter_map(Address::text_mut);
        texts.into_iter().chain(addresses)
    }
}

/// Text of an entry, with U+FFFD for what is not UTF-8.
pub fn text(bytes: &Bytes) -> Cow<'_, str> {
    // Quicker where it is UTF-8, which it is.
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::Entry;
    use crate::{
        address::Address,
        cluster::{ClusterKind, Side},
        names::{LogType, Stage},
        timing::Timing,
    };

    #[test]
    fn the_route_has_no_ids_and_the_masked_path_no_values() {
        let mut entry = Entry::default();
        assert_eq!((entry.route(), entry.masked_path(64)), (None, None));
        entry.request.path = Bytes::from_static(b"/users/12345/orders?token=canary");
        assert_eq!(entry.route().as_deref(), Some("/users/{n}/orders"));
        let masked = entry.masked_path(64).unwrap();
        assert!(masked.ends_with("?token=?"), "{masked}");
        entry.request.path = Bytes::from_static(b"/shop.v1.Carts2/Get2");
        entry.response.grpc_status = Some(5);
        assert_eq!(entry.route().as_deref(), Some("/shop.v1.Carts2/Get2"));
        entry.request.path = Bytes::from_static(b"/a\xff\xfe");
        assert!(entry.route().is_some());
    }

    #[test]
    fn the_role_follows_from_the_cluster() {
        let mut entry = Entry::default();
        entry.upstream.cluster = Bytes::from_static(b"inbound|9080||");
        assert_eq!(entry.role().side, Side::Server);
        entry.upstream.cluster = Bytes::from_static(b"inbound|9080||\xff");
        assert_eq!(entry.role().kind, ClusterKind::Other);
    }

    #[test]
    fn retries_hide_the_time_in_the_proxy() {
        let mut entry = Entry {
            timing: Timing {
                last_downstream_rx_ns: Some(1),
                first_upstream_tx_ns: Some(5),
                first_upstream_rx_ns: Some(9),
                first_downstream_tx_ns: Some(12),
                ..Timing::default()
            },
            ..Entry::default()
        };
        entry.upstream.attempts = 1;
        assert_eq!(entry.in_proxy_ns(), Some(7));
        entry.upstream.attempts = 2;
        assert_eq!(entry.in_proxy_ns(), None);
    }

    #[test]
    fn ends_are_complete_and_attempts_are_told_apart() {
        for (log_type, stage, complete, attempt) in [
            (LogType::DownstreamEnd, Stage::End, true, false),
            (LogType::UpstreamEnd, Stage::End, true, true),
            (LogType::DownstreamPeriodic, Stage::Open, false, false),
            (LogType::Unrecognised, Stage::Unknown, false, false),
        ] {
            let entry = Entry {
                log_type,
                stage,
                ..Entry::default()
            };
            assert_eq!(entry.is_complete(), complete, "{log_type:?}");
            assert_eq!(entry.is_attempt(), attempt, "{log_type:?}");
        }
    }

    #[test]
    fn a_detached_entry_is_the_same_and_shares_no_memory() {
        let message = Bytes::from_static(b"streamsocket");
        let mut entry = Entry {
            stream_id: message.slice(..6),
            ..Entry::default()
        };
        entry.addresses.upstream_remote = Address::Pipe(message.slice(6..));
        let detached = entry.clone().detach();
        assert_eq!(detached, entry);
        let inside = message.as_ptr_range();
        let Address::Pipe(path) = &detached.addresses.upstream_remote else {
            panic!("{detached:?}");
        };
        for text in [&detached.stream_id, path] {
            assert!(!inside.contains(&text.as_ptr()));
        }
    }
}
