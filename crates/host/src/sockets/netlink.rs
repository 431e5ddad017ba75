//! Questions to the kernel over netlink, about the calling thread's network namespace.

use std::io;

use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader, NetlinkMessage,
    NetlinkPayload, NetlinkSerializable,
};
use netlink_sys::{Socket, SocketAddr};

/// Whether more answers are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    More,
    Enough,
}

/// Asks for a list of everything that `question` describes. Answers go to `visit`, which may end the
/// list early.
pub(super) fn list<M: NetlinkSerializable + NetlinkDeserializable>(
    protocol: isize,
    question: M,
    mut visit: impl FnMut(M) -> Next,
) -> io::Result<()> {
    let mut socket = Socket::new(protocol)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let mut request = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(question));
    request.finalize();
    let mut bytes = vec![0; request.buffer_len()];
    request.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    loop {
        let (datagram, _from) = socket.recv_from_full()?;
        if take(&datagram, &mut visit)? == Next::Enough {
            return Ok(());
        }
    }
}

/// Visits the messages of one datagram.
pub(super) fn take<M: NetlinkDeserializable>(
    datagram: &[u8],
    visit: &mut impl FnMut(M) -> Next,
) -> io::Result<Next> {
    let mut rest = datagram;
    if rest.is_empty() {
        return Ok(Next::Enough);
    }
    while !rest.is_empty() {
        let message = NetlinkMessage::<M>::deserialize(rest)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        let length = message.header.length as usize;
        let mut wanted = Next::More;
        match message.payload {
            NetlinkPayload::InnerMessage(message) => wanted = visit(message),
            NetlinkPayload::Error(error) => return Err(error.to_io()),
            NetlinkPayload::Done(_) => wanted = Next::Enough,
            _ => {}
        }
        if wanted == Next::Enough {
            return Ok(Next::Enough);
        }
        // Messages are aligned to four bytes.
        let next = length.next_multiple_of(4).max(4);
        rest = rest.get(next..).unwrap_or_default();
    }
    Ok(Next::More)
}
