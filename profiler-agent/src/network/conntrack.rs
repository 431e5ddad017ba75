//! Translated connections of a network namespace, as connection tracking lists them (ctnetlink).

use std::{
    io,
    net::{IpAddr, SocketAddr},
};

use netlink_packet_core::{
    DefaultNla, NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_netfilter::{
    NetfilterHeader, NetfilterMessage, NetfilterMessageInner, NetfilterProtoFamily,
    conntrack::{
        ConntrackAttribute, ConntrackMessage, IPTuple, ProtoTuple, Protocol, Status, Tuple,
    },
};
use netlink_sys::{Socket, SocketAddr as NetlinkAddress, protocols::NETLINK_NETFILTER};

use super::nat::{Ends, Translation};

/// Entries of one namespace that are read; what is beyond is counted as left out.
const MAX_ENTRIES: usize = 131_072;
/// `CTA_STATUS_MASK`: which bits of the status the kernel compares (5.13; others list everything).
const STATUS_MASK: u16 = 26;

/// What connection tracking said of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tracked {
    pub(crate) translations: Vec<Translation>,
    /// There were more than are kept.
    pub(crate) cut: bool,
}

/// Lists the translated TCP connections of the calling thread's namespace.
pub(super) fn translations_here() -> io::Result<Tracked> {
    let mut tracked = Tracked::default();
    let both = Status::SrcNat | Status::DstNat;
    // Those whose destination was changed, and of the others those whose source was.
    for (wanted, mask) in [(Status::DstNat, Status::DstNat), (Status::SrcNat, both)] {
        list(wanted, mask, &mut tracked)?;
    }
    Ok(tracked)
}

fn list(wanted: Status, mask: Status, tracked: &mut Tracked) -> io::Result<()> {
    let mut socket = Socket::new(NETLINK_NETFILTER)?;
    socket.bind_auto()?;
    socket.connect(&NetlinkAddress::new(0, 0))?;
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let attributes = vec![
        ConntrackAttribute::CtaStatus(wanted),
        ConntrackAttribute::Other(DefaultNla::new(
            STATUS_MASK,
            mask.bits().to_be_bytes().to_vec(),
        )),
    ];
    // Unspecified: IPv4 and IPv6.
    let mut request = NetlinkMessage::new(
        header,
        NetlinkPayload::from(NetfilterMessage::new(
            NetfilterHeader::new(NetfilterProtoFamily::Unspec, 0, 0),
            ConntrackMessage::Get(attributes),
        )),
    );
    request.finalize();
    let mut bytes = vec![0; request.buffer_len()];
    request.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    loop {
        let (datagram, _from) = socket.recv_from_full()?;
        let more = take(&datagram, |found, status| {
            if status & mask == wanted {
                tracked.translations.push(found);
            }
        })?;
        if !more {
            return Ok(());
        }
        if tracked.translations.len() >= MAX_ENTRIES {
            tracked.cut = true;
            return Ok(());
        }
    }
}

/// Visits the entries of one datagram; false when it was the last.
fn take(datagram: &[u8], mut visit: impl FnMut(Translation, Status)) -> io::Result<bool> {
    let mut rest = datagram;
    while !rest.is_empty() {
        let message = NetlinkMessage::<NetfilterMessage>::deserialize(rest)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        let length = message.header.length as usize;
        match message.payload {
            NetlinkPayload::InnerMessage(message) => {
                if let NetfilterMessageInner::Conntrack(ConntrackMessage::New(attributes)) =
                    message.inner
                    && let Some((found, status)) = decode(&attributes)
                {
                    visit(found, status);
                }
            }
            NetlinkPayload::Error(error) => return Err(error.to_io()),
            NetlinkPayload::Done(_) => return Ok(false),
            _ => {}
        }
        // Messages are aligned to four bytes.
        let next = length.next_multiple_of(4).max(4);
        rest = rest.get(next..).unwrap_or_default();
    }
    Ok(!datagram.is_empty())
}

/// A TCP connection that was translated; `None` for everything else.
fn decode(attributes: &[ConntrackAttribute]) -> Option<(Translation, Status)> {
    let mut status = Status::empty();
    let (mut asked, mut answered) = (None, None);
    for attribute in attributes {
        match attribute {
            ConntrackAttribute::CtaTupleOrig(tuples) => asked = ends(tuples),
            ConntrackAttribute::CtaTupleReply(tuples) => answered = ends(tuples),
            ConntrackAttribute::CtaStatus(found) => status = *found,
            _ => {}
        }
    }
    let (before, answered) = (asked?, answered?);
    // The answer goes from the server, as it sees itself, to the client as the server sees it.
    let after = Ends {
        client: answered.server,
        server: answered.client,
    };
    (before != after).then_some((Translation { before, after }, status))
}

/// Source and destination of a tuple, the source as client; `None` when it is not TCP.
fn ends(tuples: &[Tuple]) -> Option<Ends> {
    let (mut source, mut destination) = (None, None);
    let (mut source_port, mut destination_port) = (None, None);
    let mut is_tcp = false;
    for tuple in tuples {
        match tuple {
            Tuple::Ip(parts) => {
                for part in parts {
                    match part {
                        IPTuple::SourceAddress(address) => source = Some(*address),
                        IPTuple::DestinationAddress(address) => destination = Some(*address),
                        _ => {}
                    }
                }
            }
            Tuple::Proto(parts) => {
                for part in parts {
                    match part {
                        ProtoTuple::Protocol(protocol) => is_tcp = *protocol == Protocol::Tcp,
                        ProtoTuple::SourcePort(port) => source_port = Some(*port),
                        ProtoTuple::DestinationPort(port) => destination_port = Some(*port),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    if !is_tcp {
        return None;
    }
    let canonical = |address: IpAddr, port| SocketAddr::new(address.to_canonical(), port);
    Some(Ends {
        client: canonical(source?, source_port?),
        server: canonical(destination?, destination_port?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuple(source: &str, destination: &str, protocol: Protocol) -> Vec<Tuple> {
        let (source, destination): (SocketAddr, SocketAddr) =
            (source.parse().unwrap(), destination.parse().unwrap());
        vec![
            Tuple::Ip(vec![
                IPTuple::SourceAddress(source.ip()),
                IPTuple::DestinationAddress(destination.ip()),
            ]),
            Tuple::Proto(vec![
                ProtoTuple::Protocol(protocol),
                ProtoTuple::SourcePort(source.port()),
                ProtoTuple::DestinationPort(destination.port()),
            ]),
        ]
    }

    /// A datagram with one entry, as the kernel sends it.
    fn datagram(asked: Vec<Tuple>, answered: Vec<Tuple>) -> Vec<u8> {
        let mut message = NetlinkMessage::new(
            NetlinkHeader::default(),
            NetlinkPayload::from(NetfilterMessage::new(
                NetfilterHeader::new(NetfilterProtoFamily::IPv4, 0, 0),
                ConntrackMessage::New(vec![
                    ConntrackAttribute::CtaTupleOrig(asked),
                    ConntrackAttribute::CtaTupleReply(answered),
                    ConntrackAttribute::CtaStatus(Status::DstNat | Status::SrcNat),
                ]),
            )),
        );
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        bytes
    }

    fn read(bytes: &[u8]) -> Vec<Translation> {
        let mut found = Vec::new();
        take(bytes, |translation, _status| found.push(translation)).unwrap();
        found
    }

    fn translated() -> Vec<u8> {
        datagram(
            tuple("10.0.0.1:40000", "10.96.0.1:80", Protocol::Tcp),
            tuple("10.0.1.2:8080", "10.0.1.1:51000", Protocol::Tcp),
        )
    }

    #[test]
    fn an_entry_says_both_views_of_a_connection() {
        let found = read(&translated());
        let ends = |client: &str, server: &str| Ends {
            client: client.parse().unwrap(),
            server: server.parse().unwrap(),
        };
        assert_eq!(
            found,
            [Translation {
                before: ends("10.0.0.1:40000", "10.96.0.1:80"),
                after: ends("10.0.1.1:51000", "10.0.1.2:8080"),
            }]
        );
    }

    #[test]
    fn what_is_not_translated_or_not_tcp_is_left_out() {
        let there = |protocol| tuple("10.0.0.1:40000", "10.0.0.2:80", protocol);
        let back = |protocol| tuple("10.0.0.2:80", "10.0.0.1:40000", protocol);
        let same = datagram(there(Protocol::Tcp), back(Protocol::Tcp));
        assert_eq!(read(&same), []);
        let other = tuple("10.0.0.3:53", "10.0.0.1:40000", Protocol::Udp);
        assert_eq!(read(&datagram(there(Protocol::Udp), other)), []);
    }

    #[test]
    fn damaged_datagrams_are_refused_or_skipped_and_never_panic() {
        let whole = translated();
        for length in 1..whole.len() {
            // What it says does not matter, only that it ends.
            drop(take(&whole[..length], |_, _| {}));
        }
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        for _ in 0..20_000 {
            let mut bytes = whole.clone();
            for _ in 0..4 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let at = usize::try_from(random >> 32).unwrap() % bytes.len();
                bytes[at] = random.to_le_bytes()[0];
            }
            drop(take(&bytes, |_, _| {}));
        }
    }

    #[test]
    fn this_namespace_can_be_read() {
        let tracked = translations_here().unwrap();
        assert!(!tracked.cut);
    }
}
