//! The agent's command `requests` around what clients do.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use serde_json::Value;

use super::asked::{Asked, compare};
use crate::{
    agent,
    cleanup::{Guard, scratch_directory},
    process::Running,
    wait::wait_for,
};

const START_LIMIT: Duration = Duration::from_mins(1);
/// For the report of thousands of requests, on a machine that is busy with the peers.
const REPORT_LIMIT: Duration = Duration::from_mins(1);
/// The most bytes in a record of TLS (RFC 8446, section 5.1).
const RECORD_LIMIT: u64 = 1 << 14;
/// What the command says once it sees requests.
const ATTACHED: &str = "looking for requests";

/// A running `profiler-agent requests`.
#[derive(Debug)]
pub struct Watch {
    agent: Running,
    began: Instant,
    _folder: Guard,
}

impl Watch {
    /// Watches this process with the children that it starts from now on, and the processes `servers`,
    /// which run already. Returns when the agent is attached.
    pub fn start(servers: &[u32]) -> Result<Self> {
        Self::start_with(servers, &[])
    }

    /// The same with plaintext of TLS.
    pub fn start_tls(servers: &[u32]) -> Result<Self> {
        Self::start_with(servers, &["--tls"])
    }

    /// With more options of the command.
    pub fn start_with(servers: &[u32], options: &[&str]) -> Result<Self> {
        let own = std::process::id();
        let pids = servers.iter().chain([&own]);
        let pids: Vec<String> = pids.map(|pid| format!("--pid={pid}")).collect();
        Self::start_of(&pids, options)
    }

    /// Watches only these processes, with the children that they start from now on.
    pub fn start_only(pids: &[u32], options: &[&str]) -> Result<Self> {
        let pids: Vec<String> = pids.iter().map(|pid| format!("--pid={pid}")).collect();
        Self::start_of(&pids, options)
    }

    /// Watches every process of the machine.
    pub fn start_all(options: &[&str]) -> Result<Self> {
        Self::start_of(&["--all".to_owned()], options)
    }

    /// Watches what the options `target` say.
    fn start_of(target: &[String], options: &[&str]) -> Result<Self> {
        let (folder, guard) = scratch_directory("requests")?;
        let mut arguments = vec!["requests", "--json", "--raw-paths", "--duration=300s"];
        // The processor is busy with the peers as well: whether connections are sampled is not what is
        // tested here.
        arguments.push("--samples=all");
        if !options
            .iter()
            .any(|option| option.starts_with("--cpu-percent"))
        {
            arguments.push("--cpu-percent=100");
        }
        arguments.extend(target.iter().map(String::as_str));
        arguments.extend(options);
        let mut agent = agent::launch(&arguments, "requests", &folder)?;
        wait_for("the command watches", START_LIMIT, || {
            let ended = !agent.is_running();
            (ended || agent.errors().contains(ATTACHED)).then_some(())
        })?;
        ensure!(
            agent.is_running(),
            "the command ended early: {}",
            agent.errors()
        );
        Ok(Self {
            agent,
            began: Instant::now(),
            _folder: guard,
        })
    }

    pub fn pid(&self) -> u32 {
        self.agent.pid()
    }

    /// Stops watching; what was reported.
    pub fn finish(mut self) -> Result<Report> {
        self.agent.signal(Signal::INT)?;
        let status = self.agent.wait(REPORT_LIMIT)?;
        ensure!(status.success(), "{status}: {}", self.agent.errors());
        let json = serde_json::from_str(&self.agent.output()).context("parse the report")?;
        let report = Report {
            json,
            lasted: self.began.elapsed(),
        };
        report.check_counts()?;
        Ok(report)
    }
}

/// What the agent said.
#[derive(Debug)]
pub struct Report {
    pub json: Value,
    /// Longest that a request can have taken.
    lasted: Duration,
}

/// Which edges.
#[derive(Clone, Copy, Debug)]
pub enum Edges {
    /// Those to a port.
    To(u16),
    /// Those of a client's and a server's pid.
    Between(u32, u32),
    /// Those over Unix sockets with a path.
    Unix,
}

impl Edges {
    fn have(self, entry: &Value) -> bool {
        let (client, server) = (&entry["edge"]["client"], &entry["edge"]["server"]);
        match self {
            Self::To(port) => server["port"] == port,
            Self::Between(from, to) => client["pid"] == from && server["pid"] == to,
            Self::Unix => {
                let address = server["address"].as_str();
                server["port"].is_null() && address.is_some_and(|path| path.starts_with('/'))
            }
        }
    }
}

/// Holes in what was seen that the test brings about itself.
#[derive(Clone, Copy, Debug)]
pub enum Gaps {
    None,
    /// Behind the first bytes of calls that are larger than what is looked at.
    AtMost(usize),
    /// A program that uses TLS is started during the watch and cannot be held: connections that it opens
    /// before it has probes are met somewhere in the middle at its end.
    LateClients,
}

/// Requests that one server was sent.
#[derive(Debug)]
pub struct Expected<'a> {
    pub protocol: &'a str,
    pub tls: bool,
    pub edges: Edges,
    /// The processes that may have asked and answered; none: not known.
    pub clients: &'a [u32],
    pub servers: &'a [u32],
    pub asked: &'a [Asked],
}

impl Report {
    /// What the agent would have said.
    #[cfg(test)]
    pub(crate) fn of_json(json: Value) -> Self {
        Self {
            json,
            lasted: Duration::MAX,
        }
    }

    pub fn samples(&self, edges: Edges) -> Result<Vec<&Value>> {
        self.entries("samples", edges)
    }

    pub fn operations(&self, edges: Edges) -> Result<Vec<&Value>> {
        self.entries("operations", edges)
    }

    /// What the kernel counted.
    pub fn counted(&self, edges: Edges) -> Result<Vec<&Value>> {
        self.entries("counted", edges)
    }

    /// What a process adds to the requests that pass through it.
    pub fn sidecar(&self, pid: u32) -> Result<&Value> {
        let all = self.json["sidecars"].as_array().context("no sidecars")?;
        let found = all.iter().find(|sidecar| sidecar["process"]["pid"] == pid);
        found.with_context(|| format!("{pid} is not a sidecar: {}", self.losses()))
    }

    fn entries(&self, table: &str, edges: Edges) -> Result<Vec<&Value>> {
        let all = self.json[table].as_array();
        let all = all.with_context(|| format!("no {table}"))?;
        Ok(all.iter().filter(|entry| edges.have(entry)).collect())
    }

    /// Nothing was lost, left out or guessed.
    pub fn check_whole(&self) -> Result<()> {
        self.check_whole_but(Gaps::None)
    }

    fn check_whole_but(&self, gaps: Gaps) -> Result<()> {
        let json = &self.json;
        for counter in ["lost", "samples_left_out"] {
            ensure!(json[counter] == 0, "{counter}: {}", self.losses());
        }
        ensure!(json["sampled_one_of"] == 1, "sampled: {}", self.losses());
        let incomplete = &json["incomplete"];
        for counter in ["other_edges", "refused_connections"] {
            ensure!(incomplete[counter] == 0, "{counter}: {}", self.losses());
        }
        let number = |value: &Value| value.as_u64().context("a counter");
        let told = number(&incomplete["gaps"])?;
        let (allowed, most, unbound) = match gaps {
            Gaps::None => (0, 0, 0),
            Gaps::AtMost(most) => (most as u64, u64::MAX, 0),
            Gaps::LateClients => {
                let greetings = json["tls"].as_array().context("no tls")?;
                let connections = greetings.iter().map(|seen| number(&seen["connections"]));
                let connections = connections.sum::<Result<u64>>()?;
                // Until their decoders are in step with them. Of a record that the library had read before
                // it had probes the rest is read without the socket.
                (4 * connections, connections, RECORD_LIMIT * connections)
            }
        };
        ensure!(told <= allowed, "gaps: {}", self.losses());
        let not_bound = number(&json["unbound_bytes"])?;
        ensure!(not_bound <= unbound, "unbound bytes: {}", self.losses());
        let torn = number(&incomplete["gap_connections"])?;
        ensure!(torn <= most, "torn connections: {}", self.losses());
        Ok(())
    }

    /// The kernel counted as many, or says that it did not.
    fn check_count(&self, edges: Edges, asked: u64) -> Result<()> {
        let counted = self.counted(edges)?;
        let numbers = counted.iter().filter_map(|entry| entry["count"].as_u64());
        let (all, is_exact) = (numbers.sum::<u64>(), Self::are_exact(&counted));
        let fits = if is_exact { all == asked } else { all < asked };
        ensure!(fits, "counted {all} of {asked}, exact: {is_exact}");
        Ok(())
    }

    /// Whether the kernel counted all requests of these edges.
    pub fn are_exact(counted: &[&Value]) -> bool {
        counted.iter().all(|entry| entry["exact"] == true)
    }

    /// Where every request was decoded, the kernel counted as many of HTTP, with as many errors where it can know. By server: a
    /// connection may turn out to be of another client once its requests are counted.
    fn check_counts(&self) -> Result<()> {
        let json = &self.json;
        let incomplete = &json["incomplete"];
        let is_whole = json["sampled_one_of"] == 1
            && json["lost"] == 0
            && ["gaps", "refused_connections", "other_edges", "under_way"]
                .into_iter()
                .all(|counter| incomplete[counter] == 0);
        let counted = json["counted"].as_array().context("no counts")?;
        let operations = json["operations"].as_array().context("no operations")?;
        let server_of = |entry: &Value| {
            let server = &entry["edge"]["server"];
            let [address, port, pid] = ["address", "port", "pid"].map(|name| server[name].clone());
            let protocol = match entry["protocol"].as_str() {
                Some("grpc") => Value::from("http2"),
                _ => entry["protocol"].clone(),
            };
            [address, port, pid, protocol]
        };
        let servers: Vec<[Value; 4]> = counted.iter().map(server_of).collect();
        for server in servers.iter().filter(|_| is_whole) {
            let of_server: Vec<&Value> = counted
                .iter()
                .filter(|entry| server_of(entry) == *server)
                .collect();
            if !Self::are_exact(&of_server) {
                continue;
            }
            let decoded = operations.iter().filter(|entry| entry["tls"] == false);
            let decoded = Self::sum(decoded.filter(|entry| server_of(entry) == *server))?;
            let [all, by_client, by_server, broken] = Self::sum(of_server.iter().copied())?;
            let unknown = of_server
                .iter()
                .filter_map(|entry| entry["unknown"].as_u64());
            let unknown = unknown.sum::<u64>();
            let said = format!(
                "counted {of_server:?}, decoded {decoded:?}: {}",
                self.losses()
            );
            ensure!(all == decoded[0], "{said}");
            // An answer that breaks off is one by its status where nothing but its beginning was looked at.
            if broken == decoded[3] {
                let counted = by_client + by_server;
                let errors = decoded[1] + decoded[2];
                ensure!(counted <= errors && errors <= counted + unknown, "{said}");
                ensure!(by_client <= decoded[1] && by_server <= decoded[2], "{said}");
            }
        }
        Ok(())
    }

    /// [`Self::outcomes`] of all entries.
    fn sum<'a>(entries: impl Iterator<Item = &'a Value>) -> Result<[u64; 4]> {
        let mut sums = [0; 4];
        for entry in entries {
            for (sum, more) in sums.iter_mut().zip(Self::outcomes(entry)?) {
                *sum += more;
            }
        }
        Ok(sums)
    }

    /// All, client errors, server errors, broken.
    fn outcomes(entry: &Value) -> Result<[u64; 4]> {
        let errors = &entry["errors_by_class"];
        let numbers = [
            &entry["count"],
            &errors["client"],
            &errors["server"],
            &errors["broken"],
        ];
        let mut found = [0; 4];
        for (found, number) in found.iter_mut().zip(numbers) {
            *found = number.as_u64().context("a count")?;
        }
        Ok(found)
    }

    pub(super) fn losses(&self) -> String {
        let mut json = self.json.clone();
        if let Some(object) = json.as_object_mut() {
            object.remove("samples");
            object.remove("operations");
            object.remove("counted");
        }
        json.to_string()
    }

    /// Every request was reported once, as what it was, between its peers.
    pub fn check(&self, expected: &Expected<'_>) -> Result<()> {
        self.check_but(expected, Gaps::None)
    }

    /// The same where the test itself brings holes about.
    pub fn check_but(&self, expected: &Expected<'_>, gaps: Gaps) -> Result<()> {
        self.check_whole_but(gaps)?;
        let samples = self.samples(expected.edges)?;
        let seen: Vec<Asked> = samples
            .iter()
            .map(|sample| Asked::from_sample(sample))
            .collect();
        compare(expected.asked, &seen).with_context(|| format!("counts: {}", self.losses()))?;
        for sample in samples {
            self.check_sample(expected, sample)
                .with_context(|| sample.to_string())?;
        }
        let operations = self.operations(expected.edges)?;
        let mut count = 0;
        for operation in operations {
            let fits = operation["protocol"] == expected.protocol
                && operation["tls"] == expected.tls
                && operation["other"] == false;
            ensure!(fits, "an operation of another kind: {operation}");
            count += operation["count"]
                .as_u64()
                .context("an operation's count")?;
        }
        let asked = u64::try_from(expected.asked.len())?;
        ensure!(count == asked, "operations count {count} of {asked}");
        let is_counted = ["http1", "http2", "grpc"].contains(&expected.protocol) && !expected.tls;
        if is_counted && !matches!(expected.edges, Edges::Unix) {
            self.check_count(expected.edges, asked)?;
        }
        Ok(())
    }

    fn check_sample(&self, expected: &Expected<'_>, sample: &Value) -> Result<()> {
        let is_one_of = |pids: &[u32], value: &Value| {
            pids.iter().any(|pid| value == pid) || (pids.is_empty() && value.is_null())
        };
        let (client, server) = (&sample["edge"]["client"], &sample["edge"]["server"]);
        ensure!(
            sample["protocol"] == expected.protocol,
            "not {}",
            expected.protocol
        );
        ensure!(sample["tls"] == expected.tls, "tls is not {}", expected.tls);
        ensure!(
            is_one_of(expected.clients, &client["pid"]),
            "the client is none of {:?}",
            expected.clients
        );
        ensure!(
            is_one_of(expected.servers, &server["pid"]),
            "the server is none of {:?}",
            expected.servers
        );
        let duration = sample["duration_ns"].as_u64().context("no duration")?;
        // An unanswered request is over when it is sent.
        let is_answered = !sample["first_byte_ns"].is_null();
        ensure!(
            (duration > 0 || !is_answered) && Duration::from_nanos(duration) < self.lasted,
            "took {duration} ns, watched for {:?}",
            self.lasted
        );
        Ok(())
    }

    /// The sum of the operations' errors.
    pub fn errors(&self, edges: Edges) -> Result<u64> {
        let operations = self.operations(edges)?;
        let errors = operations
            .iter()
            .filter_map(|operation| operation["errors"].as_u64());
        Ok(errors.sum())
    }
}
