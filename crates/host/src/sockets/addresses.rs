//! The addresses of a network namespace.

use std::{io, net::IpAddr};

use netlink_packet_route::{
    RouteNetlinkMessage,
    address::{AddressAttribute, AddressMessage},
};
use netlink_sys::protocols::NETLINK_ROUTE;

use super::netlink::{Next, list};

/// Addresses of one namespace that are kept.
const MAX_ADDRESSES: usize = 65_536;

/// Lists the addresses of the calling thread's namespace.
pub fn addresses_here() -> io::Result<Vec<IpAddr>> {
    let mut found = Vec::new();
    let question = RouteNetlinkMessage::GetAddress(AddressMessage::default());
    list(NETLINK_ROUTE, question, |answer| {
        if let RouteNetlinkMessage::NewAddress(message) = answer {
            found.extend(own_address(&message.attributes));
        }
        if found.len() < MAX_ADDRESSES {
            Next::More
        } else {
            Next::Enough
        }
    })?;
    Ok(found)
}

/// On a point-to-point link, `Address` is the peer's; where both are there, `Local` is our own.
fn own_address(attributes: &[AddressAttribute]) -> Option<IpAddr> {
    let mut found = None;
    for attribute in attributes {
        match attribute {
            AddressAttribute::Local(address) => return Some(*address),
            AddressAttribute::Address(address) => found = Some(*address),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_among_the_own_addresses() {
        let loopback: IpAddr = "127.0.0.1".parse().unwrap();
        assert!(addresses_here().unwrap().contains(&loopback));
    }

    #[test]
    fn the_local_end_of_a_link_is_the_own_address() {
        let [own, peer]: [IpAddr; 2] = ["10.0.0.1", "10.0.0.2"].map(|text| text.parse().unwrap());
        let (local, address) = (
            AddressAttribute::Local(own),
            AddressAttribute::Address(peer),
        );
        assert_eq!(own_address(&[address.clone(), local]), Some(own));
        assert_eq!(own_address(&[address]), Some(peer));
        assert_eq!(own_address(&[]), None);
    }
}
