//! Translated connections of a network namespace, as connection tracking lists them (ctnetlink).

use std::{
    io,
    net::{IpAddr, SocketAddr},
};

use netlink_packet_core::DefaultNla;
use netlink_packet_netfilter::{
    NetfilterHeader, NetfilterMessage, NetfilterMessageInner, NetfilterProtoFamily,
    conntrack::{
        ConntrackAttribute, ConntrackMessage, IPTuple, ProtoTuple, Protocol, Status, Tuple,
    },
};
use netlink_sys::protocols::NETLINK_NETFILTER;

use profiler_model::sockets::{Ends, Tracked, Translation};

use super::netlink::{Next, list};

/// Entries of one namespace that are read; what is beyond is counted as left out.
const MAX_ENTRIES: usize = 131_072;
/// `CTA_STATUS_MASK`: which bits of the status the kernel compares (5.13; others list everything).
const STATUS_MASK: u16 = 26;

/// Lists the translated TCP connections of the calling thread's namespace.
pub(super) fn translations_here() -> io::Result<Tracked> {
    let mut tracked = Tracked::default();
    let both = Status::SrcNat | Status::DstNat;
    // Those whose destination was changed, and of the others those whose source was.
    for (wanted, mask) in [(Status::DstNat, Status::DstNat), (Status::SrcNat, both)] {
        list_with(wanted, mask, &mut tracked)?;
    }
    Ok(tracked)
}

fn list_with(wanted: Status, mask: Status, tracked: &mut Tracked) -> io::Result<()> {
    let attributes = vec![
        ConntrackAttribute::CtaStatus(wanted),
        ConntrackAttribute::Other(DefaultNla::new(
            STATUS_MASK,
            mask.bits().to_be_bytes().to_vec(),
        )),
    ];
    // Unspecified: IPv4 and IPv6.
    let header = NetfilterHeader::new(NetfilterProtoFamily::Unspec, 0, 0);
    let question = NetfilterMessage::new(header, ConntrackMessage::Get(attributes));
    list(NETLINK_NETFILTER, question, |answer| {
        if let Some((found, status)) = decode(&answer)
            && status & mask == wanted
        {
            tracked.translations.push(found);
        }
        if tracked.translations.len() < MAX_ENTRIES {
            Next::More
        } else {
            tracked.cut = true;
            Next::Enough
        }
    })
}

/// A TCP connection that was translated; `None` for everything else.
fn decode(message: &NetfilterMessage) -> Option<(Translation, Status)> {
    let NetfilterMessageInner::Conntrack(ConntrackMessage::New(attributes)) = &message.inner else {
        return None;
    };
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
    use netlink_packet_core::{NetlinkHeader, NetlinkMessage, NetlinkPayload};

    use super::{super::netlink::take, *};

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
        take(bytes, &mut |message| {
            found.extend(decode(&message).map(|(translation, _)| translation));
            Next::More
        })
        .unwrap();
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

    /// What it says does not matter, only that it ends.
    fn read_damaged(bytes: &[u8]) {
        drop(take(bytes, &mut |message| {
            let _found = decode(&message);
            Next::More
        }));
    }

    #[test]
    fn damaged_datagrams_are_refused_or_skipped_and_never_panic() {
        let whole = translated();
        for length in 1..whole.len() {
            read_damaged(&whole[..length]);
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
            read_damaged(&bytes);
        }
    }

    #[test]
    fn this_namespace_can_be_read() {
        let tracked = translations_here().unwrap();
        assert!(!tracked.cut);
    }
}
