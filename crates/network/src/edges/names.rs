//! What processes and addresses are called.

use core::net::IpAddr;
use std::collections::{BTreeSet, HashMap};

use domain::{
    base::{Message, Rtype, iana::Rcode},
    rdata::{A, Aaaa},
};
use profiler_model::ProcessKey;

/// Processes whose names are kept.
const MAX_PROCESSES: usize = 100_000;
/// Addresses whose names are kept.
const MAX_ADDRESSES: usize = 50_000;
/// Names that are kept of one address.
const MAX_NAMES: usize = 8;
/// Addresses of one answer that are read.
const MAX_RECORDS: usize = 64;

/// Name and container of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    pub comm: String,
    pub container: Option<String>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Names {
    processes: HashMap<ProcessKey, Identity>,
    /// Of processes that ended before they were read: the name of a thread.
    threads: HashMap<ProcessKey, String>,
    addresses: HashMap<(u32, IpAddr), BTreeSet<String>>,
}

/// The name of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressName<'a> {
    /// Nobody asked for one that leads to this address.
    Unknown,
    Known(&'a str),
    /// Several names lead to it.
    Several,
}

impl Names {
    /// Remembers the name of a process while it is there, anew each time because it changes with an
    /// `exec`; false when it is not there and was never named.
    pub fn name(
        &mut self,
        process: ProcessKey,
        identify: impl FnOnce() -> Option<Identity>,
    ) -> bool {
        let is_known = self.processes.contains_key(&process);
        if !is_known && self.processes.len() >= MAX_PROCESSES {
            return true;
        }
        let identity = identify();
        let is_named = is_known || identity.is_some();
        self.processes
            .extend(identity.map(|identity| (process, identity)));
        is_named
    }

    /// Takes the name of a thread for that of its process.
    pub fn give_up(&mut self, process: ProcessKey) {
        let identity = self.identity(process);
        self.processes.insert(process, identity);
    }

    /// Remembers what the process was called when it was seen, in case that nothing better is found.
    pub fn name_thread(&mut self, process: ProcessKey, comm: &str) {
        if !comm.is_empty() && self.threads.len() < MAX_PROCESSES {
            let kept = self.threads.entry(process);
            kept.or_insert_with(|| comm.to_owned());
        }
    }

    /// Forgets processes for which `is_needed` is false.
    pub(super) fn forget(&mut self, is_needed: impl Fn(ProcessKey) -> bool) {
        self.processes.retain(|process, _| is_needed(*process));
        self.threads.retain(|process, _| is_needed(*process));
    }

    pub fn identity(&self, process: ProcessKey) -> Identity {
        self.processes.get(&process).cloned().unwrap_or_else(|| {
            let comm = self.threads.get(&process).cloned().unwrap_or_default();
            Identity {
                comm,
                container: None,
            }
        })
    }

    /// Takes what [`read_answer`] has read of an answer that came into a network namespace.
    pub fn answer(&mut self, network_namespace: u32, (name, addresses): (String, Vec<IpAddr>)) {
        for address in addresses {
            let key = (network_namespace, address);
            if self.addresses.len() >= MAX_ADDRESSES && !self.addresses.contains_key(&key) {
                return;
            }
            let names = self.addresses.entry(key).or_default();
            if names.len() < MAX_NAMES {
                names.insert(name.clone());
            }
        }
    }

    /// What processes of the namespace asked for to get the address.
    pub(super) fn address(&self, network_namespace: u32, address: IpAddr) -> AddressName<'_> {
        let names = self.addresses.get(&(network_namespace, address));
        let mut names = names.into_iter().flatten();
        match (names.next(), names.next()) {
            (None, _) => AddressName::Unknown,
            (Some(only), None) => AddressName::Known(only),
            (Some(_), Some(_)) => AddressName::Several,
        }
    }
}

/// The name that was asked for and the addresses that it has; `None` when the message is not an
/// answer with addresses. A message that was cut gives what is whole.
pub fn read_answer(bytes: &[u8]) -> Option<(String, Vec<IpAddr>)> {
    let message = Message::from_slice(bytes).ok()?;
    let header = message.header();
    if !header.qr() || header.rcode() != Rcode::NOERROR {
        return None;
    }
    let question = message.sole_question().ok()?;
    if !matches!(question.qtype(), Rtype::A | Rtype::AAAA) {
        return None;
    }
    let mut addresses = Vec::new();
    for record in message.answer().ok()?.take(MAX_RECORDS) {
        // What comes behind a damaged record cannot be read.
        let Ok(record) = record else { break };
        if let Ok(Some(found)) = record.to_record::<A>() {
            addresses.push(IpAddr::V4(found.data().addr()));
        } else if let Ok(Some(found)) = record.to_record::<Aaaa>() {
            addresses.push(IpAddr::V6(found.data().addr()).to_canonical());
        }
    }
    let name = question.qname().to_string().to_ascii_lowercase();
    let name = name.trim_end_matches('.').to_owned();
    (!addresses.is_empty() && !name.is_empty()).then_some((name, addresses))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer to a question for `service.example.`, over an alias, with one address.
    fn answer() -> Vec<u8> {
        let mut bytes = vec![
            0x12, 0x34, // id
            0x81, 0x80, // answer, recursion, no error
            0, 1, 0, 2, 0, 0, 0, 0,
        ];
        bytes.extend(b"\x07Service\x07example\x00\x00\x01\x00\x01");
        // The alias points into the question's name.
        bytes.extend(b"\xc0\x0c\x00\x05\x00\x01\x00\x00\x00\x3c\x00\x08\x05alias\xc0\x14");
        bytes.extend(b"\xc0\x2d\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04");
        bytes.extend([192, 0, 2, 7]);
        bytes
    }

    fn address() -> IpAddr {
        "192.0.2.7".parse().unwrap()
    }

    #[test]
    fn an_address_is_called_as_it_was_asked_for_in_its_namespace() {
        let mut names = Names::default();
        names.answer(1, read_answer(&answer()).unwrap());
        let known = AddressName::Known("service.example");
        assert_eq!(names.address(1, address()), known);
        assert_eq!(names.address(2, address()), AddressName::Unknown);
    }

    #[test]
    fn an_address_with_two_names_has_none() {
        let mut names = Names::default();
        names.answer(1, read_answer(&answer()).unwrap());
        let mut other = answer();
        other[13] = b'X';
        names.answer(1, read_answer(&other).unwrap());
        assert_eq!(names.address(1, address()), AddressName::Several);
    }

    #[test]
    fn questions_and_failures_are_no_answers() {
        for (at, value) in [(2, 0x01), (3, 0x83)] {
            let mut bytes = answer();
            bytes[at] = value;
            assert_eq!(read_answer(&bytes), None);
        }
    }

    #[test]
    fn damaged_answers_never_panic() {
        let whole = answer();
        for length in 0..whole.len() {
            assert_eq!(read_answer(&whole[..length]), None, "{length}");
        }
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        for _ in 0..50_000 {
            let mut bytes = whole.clone();
            for _ in 0..4 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let at = usize::try_from(random >> 32).unwrap() % bytes.len();
                bytes[at] = random.to_le_bytes()[0];
            }
            // What it says does not matter.
            drop(read_answer(&bytes));
        }
    }

    #[test]
    fn a_number_that_is_used_again_is_another_process() {
        let process = |start_ticks| ProcessKey {
            pid: 7,
            start_ticks,
        };
        let identity = |comm: &str| {
            Some(Identity {
                comm: comm.to_owned(),
                container: None,
            })
        };
        let mut names = Names::default();
        assert!(names.name(process(1), || identity("first")));
        assert!(names.name(process(2), || identity("second")));
        assert!(!names.name(process(3), || None));
        names.name_thread(process(3), "worker");
        let comm = |start_ticks| names.identity(process(start_ticks)).comm;
        assert_eq!([comm(1), comm(2), comm(3)], ["first", "second", "worker"]);
    }
}
