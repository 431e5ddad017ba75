//! What one Envoy has reported.

use std::{
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
};

use foldhash::fast::RandomState;
use profiler_access_logs::{Address, Entry, Kind, PHASES, Timing, text};
use profiler_model::{
    Address as End, Endpoint, LoggedFlagged, LoggedJoin, LoggedPhase, LoggedUpstream, LoggingEnvoy,
    MatchClass, Sidecar, SidecarTimes, Spread, UpstreamHeader,
};

use super::{
    Missing,
    exchange::{bounded, is_failure_of_upstream, is_of_upstream},
    hops::Connections,
    joins::LoggedEnds,
};
use crate::requests::{
    digest::digest,
    sidecar::{PairTimes, add_times},
};

/// Distinct details of one Envoy.
const MAX_DETAILS: usize = 24;
/// Hosts of one Envoy.
const MAX_UPSTREAMS: usize = 256;
const OTHER: &str = "other";
/// Clusters and hosts of one response flag.
const MAX_PLACES_OF_FLAG: usize = 32;
/// Flags that say that the host of the last attempt failed.
const HOST_FAILED: [&str; 5] = ["UF", "UC", "UR", "UT", "UPE"];

#[derive(Debug)]
pub(super) struct Envoy {
    pub(super) process: Endpoint,
    pub(super) namespace: Option<u64>,
    pub(super) missing: Option<Missing>,
    node_id: String,
    requests: u64,
    connections: u64,
    retried: u64,
    retries: u64,
    phases: [Spread; PHASES.len()],
    flags: BTreeMap<&'static str, u64>,
    /// By flag, then by cluster and address.
    flagged: BTreeMap<&'static str, HashMap<u64, LoggedFlagged, RandomState>>,
    details: BTreeMap<String, u64>,
    tls: BTreeMap<&'static str, u64>,
    /// By cluster and address.
    upstreams: HashMap<u64, (Option<SocketAddr>, LoggedUpstream), RandomState>,
    of_other_upstreams: u64,
    times: SidecarTimes,
    time_in_ns: u64,
    time_out_ns: u64,
    joined: Option<LoggedJoin>,
    /// Requests that are being looked for at sockets: their times are not added yet.
    pub(super) waiting: u64,
}

impl Envoy {
    pub(super) fn new(
        process: Endpoint,
        node_id: String,
        namespace: Option<u64>,
        joined: Option<LoggedJoin>,
    ) -> Self {
        Self {
            process,
            namespace,
            missing: None,
            node_id,
            requests: 0,
            connections: 0,
            retried: 0,
            retries: 0,
            phases: Default::default(),
            flags: BTreeMap::new(),
            flagged: BTreeMap::new(),
            details: BTreeMap::new(),
            tls: BTreeMap::new(),
            upstreams: HashMap::default(),
            of_other_upstreams: 0,
            times: SidecarTimes::default(),
            time_in_ns: 0,
            time_out_ns: 0,
            joined,
            waiting: 0,
        }
    }

    pub(super) fn requests(&self) -> u64 {
        self.requests
    }

    /// Entries that were taken.
    pub(super) fn entries(&self) -> u64 {
        self.requests + self.connections
    }

    pub(super) fn has_any(&self) -> bool {
        self.entries() > 0
    }

    /// Takes an entry of something that is over.
    pub(super) fn add(&mut self, entry: &Entry) {
        let place = digest((&entry.upstream.cluster, &entry.addresses.upstream_remote));
        for flag in entry.response.flags.iter() {
            *self.flags.entry(flag.short_name).or_default() += 1;
            self.add_flagged(flag.short_name, place, entry);
        }
        if entry.kind != Kind::Http {
            self.connections += 1;
            return;
        }
        self.requests += 1;
        if let End::Unix(_) = &self.process.address
            && let Address::Socket(address) = &entry.addresses.downstream_local
        {
            self.process.address = End::Ip(address.ip().to_canonical());
        }
        let details = text(&entry.response.details);
        if let Some(count) = self.details.get_mut(&*details) {
            *count += 1;
        } else if !details.is_empty() {
            let name = if self.details.len() < MAX_DETAILS {
                bounded(&details)
            } else {
                OTHER.to_owned()
            };
            *self.details.entry(name).or_default() += 1;
        }
        if let Some(version) = entry.tls.downstream_version.name() {
            *self.tls.entry(version).or_default() += 1;
        }
        for (phase, spread) in PHASES.iter().zip(&mut self.phases) {
            if let Some(ns) = (phase.ns)(&entry.timing) {
                spread.add(ns);
            }
        }
        let attempts = entry.upstream.attempts;
        if attempts > 1 {
            self.retried += 1;
            self.retries += u64::from(attempts - 1);
        }
        self.add_upstream(place, entry);
    }

    /// A request was looked for at sockets, or nobody looks at them: its times are those of the sockets where both ends were found.
    pub(super) fn settle(&mut self, request: &LoggedEnds) {
        if let Some(joined) = &mut self.joined {
            for (_, found) in request.ends.iter().flatten() {
                joined.ends += 1;
                joined.joined += u64::from(found.at_socket.is_some());
                joined.confirmed += u64::from(found.is_confirmed);
                joined.contradicted += u64::from(found.is_contradicted);
            }
        }
        let Some(timing) = &request.timing else {
            return;
        };
        let [inner, outer] = request.ends.map(|end| {
            let (_, joined) = end?;
            Some(PairTimes::from(&joined.at_socket?))
        });
        if let Some((inner, outer)) = inner.zip(outer) {
            if let Some(joined) = &mut self.joined {
                joined.requests += 1;
            }
            self.time_in_ns = self.time_in_ns.saturating_add(inner.duration_ns());
            self.time_out_ns = self.time_out_ns.saturating_add(outer.duration_ns());
            add_times(&mut self.times, &inner, &outer);
        } else {
            self.add_times(timing);
        }
    }

    /// Takes times, if all of them are known.
    fn add_times(&mut self, timing: &Timing) {
        let Timing {
            first_upstream_tx_ns: Some(sent),
            first_upstream_rx_ns: Some(answered),
            last_upstream_rx_ns: Some(received),
            first_downstream_tx_ns: Some(passed_on),
            last_downstream_tx_ns: Some(whole),
            ..
        } = *timing
        else {
            return;
        };
        let outside = received.saturating_sub(sent);
        let times = &mut self.times;
        times.pairs += 1;
        times.whole_ns.add(whole);
        times.inside_ns.add(whole.saturating_sub(outside));
        times.to_upstream_ns.add(sent);
        times.upstream_ns.add(answered.saturating_sub(sent));
        times.to_client_ns.add(passed_on.saturating_sub(answered));
        self.time_in_ns = self.time_in_ns.saturating_add(whole);
        self.time_out_ns = self.time_out_ns.saturating_add(outside);
    }

    /// `place` stands for the cluster and the address of the upstream.
    fn add_flagged(&mut self, flag: &'static str, place: u64, entry: &Entry) {
        let (cluster, address) = (&entry.upstream.cluster, &entry.addresses.upstream_remote);
        let places = self.flagged.entry(flag).or_default();
        if let Some(known) = places.get_mut(&place) {
            known.count += 1;
        } else if places.len() < MAX_PLACES_OF_FLAG {
            let address = match address {
                Address::Absent => String::new(),
                address => bounded(&address.to_string()),
            };
            let first = LoggedFlagged {
                flag: flag.to_owned(),
                cluster: bounded(&text(cluster)),
                address,
                count: 1,
            };
            places.insert(place, first);
        }
    }

    fn add_upstream(&mut self, place: u64, entry: &Entry) {
        let address = &entry.addresses.upstream_remote;
        if *address == Address::Absent {
            return;
        }
        let cluster = &entry.upstream.cluster;
        if !self.upstreams.contains_key(&place) && self.upstreams.len() >= MAX_UPSTREAMS {
            self.of_other_upstreams += 1;
            return;
        }
        let (_, upstream) = self.upstreams.entry(place).or_insert_with(|| {
            let end = address.socket();
            let upstream = LoggedUpstream {
                cluster: bounded(&text(cluster)),
                address: bounded(&address.to_string()),
                ..LoggedUpstream::default()
            };
            (
                end.map(|end| SocketAddr::new(end.ip().to_canonical(), end.port())),
                upstream,
            )
        });
        upstream.requests += 1;
        let has_failed = |short_name| HOST_FAILED.contains(&short_name);
        let is_error = entry
            .response
            .flags
            .iter()
            .any(|flag| has_failed(flag.short_name))
            || is_failure_of_upstream(entry);
        upstream.errors += u64::from(is_error);
        if let Some(ns) = entry.timing.upstream_ns().filter(|_| is_of_upstream(entry)) {
            upstream.time_ns.add(ns);
        }
    }

    /// `to` are the Envoy's connections to an address.
    pub(super) fn row<'a>(
        &self,
        to: impl Fn(SocketAddr) -> Option<&'a Connections>,
    ) -> LoggingEnvoy {
        let phases = PHASES.iter().zip(&self.phases);
        let phases = phases.filter(|(_, spread)| spread.count > 0);
        let owned = |counts: &BTreeMap<&'static str, u64>| {
            let counts = counts.iter();
            counts
                .map(|(name, count)| ((*name).to_owned(), *count))
                .collect()
        };
        let upstreams = self.upstreams.values().map(|(end, upstream)| {
            let connections = end.and_then(&to);
            LoggedUpstream {
                rtt_ns: connections
                    .map(|all| all.rtt_ns.clone())
                    .unwrap_or_default(),
                retransmits: connections.map_or(0, |all| all.retransmits),
                ..upstream.clone()
            }
        });
        let mut upstreams: Vec<LoggedUpstream> = upstreams.collect();
        upstreams.sort_by(|a, b| {
            let key = |one: &LoggedUpstream| std::cmp::Reverse(one.requests);
            key(a).cmp(&key(b)).then_with(|| a.address.cmp(&b.address))
        });
        let places = self.flagged.values().flat_map(HashMap::values);
        let mut flagged: Vec<LoggedFlagged> = places.cloned().collect();
        flagged.sort_by(|a, b| {
            let names = (&a.flag, &a.cluster, &a.address).cmp(&(&b.flag, &b.cluster, &b.address));
            b.count.cmp(&a.count).then(names)
        });
        LoggingEnvoy {
            process: self.process.clone(),
            node_id: self.node_id.clone(),
            requests: self.requests,
            connections: self.connections,
            retried: self.retried,
            retries: self.retries,
            missing: self.missing.map(Missing::all),
            joined: self.joined,
            phases: phases
                .map(|(phase, spread)| LoggedPhase {
                    name: phase.name.to_owned(),
                    time_ns: spread.clone(),
                })
                .collect(),
            flags: owned(&self.flags),
            flagged,
            details: self.details.clone(),
            tls: owned(&self.tls),
            upstreams,
            of_other_upstreams: self.of_other_upstreams,
        }
    }

    /// What it adds to requests, if any went through it whole.
    pub(super) fn sidecar(&self) -> Option<Sidecar> {
        let pairs = self.times.pairs;
        (pairs > 0).then(|| Sidecar {
            process: self.process.clone(),
            requests_in: pairs,
            requests_out: pairs,
            time_in_ns: self.time_in_ns,
            time_out_ns: self.time_out_ns,
            unmatched_in: self.requests.saturating_sub(pairs + self.waiting),
            unmatched_out: 0,
            forgotten: 0,
            pairs: BTreeMap::from([(MatchClass::AccessLog, self.times.clone())]),
            upstream_header: UpstreamHeader::default(),
            matched: Vec::new(),
            matched_left_out: 0,
        })
    }
}
