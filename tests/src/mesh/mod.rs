//! The demo mesh: two pods as network namespaces, each with a real Envoy sidecar and Istio's
//! interception rules, a client app in one and a server app in the other.
//!
//! ```text
//! pod "client"                                  pod "server"
//! mesh-client -> iptables -> Envoy :15001 -veth-> iptables -> Envoy :15006 -> mesh-server
//! ```

pub mod certificates;
pub mod interception;
pub mod options;
pub mod sidecar;
pub mod http_filters;
pub mod telemetry;
pub mod agent_link;
pub mod slow_pipe;
pub mod load;
pub mod replacement;

use std::{
    fs,
    net::{Ipv4Addr, SocketAddrV4, TcpStream},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use agent_link::AgentLink;
use interception::INBOUND_PORT;
pub use load::{Load, Unique};
pub use options::{AccessLog, App, AppTrouble, MeshOptions, Tracer, Tracing, Upstream};
use slow_pipe::SlowPipe;

use crate::{
    cleanup::{Guard, scratch_directory},
    netns::Netns,
    paths,
    process::{Launch, Running},
    wait::{wait_for, wait_until},
};

/// uid and gid of the sidecars, as in Istio.
pub const SIDECAR_USER: u32 = 1337;
pub const CLIENT_ADDRESS: &str = "10.244.1.10";
pub const SERVER_ADDRESS: &str = "10.244.1.20";
pub const SERVER_PORT: u16 = 8080;
pub const ZIPKIN_PORT: u16 = 9411;
/// Where the telemetry sink listens: OTLP and gRPC by TCP, statsd by UDP.
pub const TELEMETRY_PORT: u16 = 4318;
/// Where the admin interface listens, on loopback inside the pod.
pub const ADMIN_PORT: u16 = 15000;

/// What the load generator prints once it can be paused.
pub const LOADING: &str = "loading";

const START_LIMIT: Duration = Duration::from_mins(1);

/// One pod: its namespace and its sidecar.
#[derive(Debug)]
pub struct Pod {
    // Before the namespace, whose end kills what is in it.
    pub envoy: Running,
    pub netns: Netns,
    launched: Launched,
    access_log: PathBuf,
    /// After Envoy: a writer whose pipe is closed ends badly.
    _slow_pipe: Option<SlowPipe>,
}

/// How a pod's sidecar is started.
#[derive(Debug)]
struct Launched {
    name: &'static str,
    /// Its own folder.
    own: PathBuf,
    config: PathBuf,
    /// Processes that were in its place before.
    generation: u32,
    /// How often it was restarted hot.
    epoch: u32,
}

impl Launched {
    fn start(
        &self,
        envoy: &Path,
        folder: &Path,
        netns: &Netns,
        options: &MeshOptions,
    ) -> Result<Running> {
        let Self {
            name,
            own,
            config,
            generation,
            ..
        } = self;
        let label = match generation {
            0 => format!("{name}-envoy"),
            later => format!("{name}-envoy-{later}"),
        };
        // One id is one sidecar's.
        let base_id = options.base_id.filter(|_| *name == "server");
        Launch::new(envoy, &label, folder)
            .args(["--config-path".as_ref(), config.as_os_str()])
            .args(self.restart_arguments(base_id))
            .args([
                "--log-level",
                "warning",
                "--file-flush-interval-msec",
                "500",
            ])
            .args(["--concurrency".to_owned(), options.workers.to_string()])
            .current_dir(own)
            .netns(netns)
            .user(SIDECAR_USER)
            .start()
    }
}

impl Pod {
    /// GET on Envoy's admin interface, from inside the namespace.
    pub fn admin(&self, path: &str) -> Result<String> {
        let url = format!("http://127.0.0.1:{ADMIN_PORT}{path}");
        self.netns.within(|| {
            let mut response = ureq::get(&url)
                .call()
                .with_context(|| format!("GET {url}"))?;
            response
                .body_mut()
                .read_to_string()
                .context("read Envoy's answer")
        })
    }

    /// Value of one counter or gauge; 0 when Envoy does not have it (yet).
    pub fn stat(&self, name: &str) -> Result<u64> {
        let text = self.admin("/stats?usedonly&format=json")?;
        let stats: Value = serde_json::from_str(&text).context("parse Envoy's stats")?;
        let found = stats["stats"]
            .as_array()
            .and_then(|all| all.iter().find(|stat| stat["name"] == name))
            .and_then(|stat| stat["value"].as_u64());
        Ok(found.unwrap_or(0))
    }

    /// Lines that the sidecar's access log holds.
    pub fn access_log(&self) -> String {
        fs::read_to_string(&self.access_log).unwrap_or_default()
    }
}

/// A running mesh. Dropping it removes everything.
#[derive(Debug)]
pub struct Mesh {
    // Processes before namespaces before the folder: fields drop in this order.
    load: Option<Running>,
    /// How often the load has paused.
    pauses: usize,
    app: Running,
    zipkin: Option<Running>,
    telemetry: Option<Running>,
    agent: Option<AgentLink>,
    pub client: Pod,
    pub server: Pod,
    folder: PathBuf,
    _folder_guard: Guard,
    options: MeshOptions,
}

/// What the telemetry sink counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// Spans by OTLP.
    pub spans: u64,
    /// Entries of HTTP access logs.
    pub log_entries: u64,
    /// Datagrams of statsd.
    pub datagrams: u64,
}

/// What the load generator measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LoadReport {
    pub requests: u64,
    pub errors: u64,
    pub seconds: f64,
    pub rps: f64,
    pub latency_us: LatencyReport,
    /// CPU time of the load generator itself.
    pub cpu_seconds: f64,
}

/// Percentiles of the latency in microseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LatencyReport {
    pub mean: f64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub max: u64,
}

/// The line that `profiler-demo` prints when the mesh is ready.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MeshReport {
    pub client_envoy_pid: u32,
    pub server_envoy_pid: u32,
    pub client_pid: Option<u32>,
    pub server_pid: u32,
    pub zipkin_pid: Option<u32>,
    pub client_netns: String,
    pub server_netns: String,
    pub folder: PathBuf,
    /// Where an agent has to receive the access logs that are sent to one.
    pub access_logs: Option<SocketAddrV4>,
}

impl Drop for Mesh {
    fn drop(&mut self) {
        if let Some(base_id) = self.options.base_id {
            replacement::remove_shared_memory(base_id);
        }
    }
}

impl Mesh {
    /// Brings everything up and returns when a request has gone the whole way (with gRPC: could go).
    pub fn up(options: &MeshOptions) -> Result<Self> {
        let mut mesh = Self::start(options)?;
        mesh.wait_until_ready()?;
        Ok(mesh)
    }

    /// Several meshes, whose sidecars start beside each other. Their processes are children of the calling
    /// thread, as with [`Mesh::up`].
    pub fn up_together(options: &[MeshOptions]) -> Result<Vec<Self>> {
        let mut meshes = options
            .iter()
            .map(Self::start)
            .collect::<Result<Vec<_>>>()?;
        for mesh in &mut meshes {
            mesh.wait_until_ready()?;
        }
        Ok(meshes)
    }

    /// Starts everything and waits for nothing.
    fn start(options: &MeshOptions) -> Result<Self> {
        paths::require_root()?;
        let (folder, folder_guard) = scratch_directory("mesh")?;
        let envoy = match &options.envoy {
            Some(path) => path.clone(),
            None => paths::envoy()?,
        };
        let envoy = sidecar::usable_binary(&envoy, &folder)?;
        if options.mtls {
            certificates::write(&folder)?;
        }

        let client_netns = Netns::create("client")?;
        let server_netns = Netns::create("server")?;
        Netns::join(
            (&client_netns, &format!("{CLIENT_ADDRESS}/24")),
            (&server_netns, &format!("{SERVER_ADDRESS}/24")),
        )?;
        interception::install(&client_netns)?;
        interception::install(&server_netns)?;

        let app = start_app(&server_netns, &folder, options)?;
        let sink = |program: &str, label: &str, port: u16| -> Result<Running> {
            Launch::new(&paths::own_program(program)?, label, &folder)
                .args(["--listen".to_owned(), format!("0.0.0.0:{port}")])
                .netns(&server_netns)
                .start()
        };
        let zipkin = options
            .zipkin()
            .then(|| sink("zipkin-sink", "zipkin", ZIPKIN_PORT))
            .transpose()?;
        let telemetry = options
            .telemetry_sink()
            .then(|| sink("telemetry-sink", "telemetry", TELEMETRY_PORT))
            .transpose()?;
        let agent = options.access_log.to_agent();
        let agent = agent
            .map(|transport| AgentLink::install(&client_netns, &server_netns, transport))
            .transpose()?;
        let sidecars = Sidecars {
            envoy: &envoy,
            folder: &folder,
            options,
            agent: agent.as_ref(),
        };
        let client = sidecars.start_pod("client", client_netns)?;
        let server = sidecars.start_pod("server", server_netns)?;
        Ok(Self {
            load: None,
            pauses: 0,
            app,
            zipkin,
            telemetry,
            agent,
            client,
            server,
            folder,
            _folder_guard: folder_guard,
            options: options.clone(),
        })
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        self.app.wait_for_line(START_LIMIT, |line| {
            line.starts_with("listening").then_some(())
        })?;
        for sink in self.zipkin.iter_mut().chain(&mut self.telemetry) {
            sink.wait_for_line(START_LIMIT, |line| {
                line.starts_with("listening").then_some(())
            })?;
        }
        for pod in [&mut self.client, &mut self.server] {
            let label = pod.envoy.label().to_owned();
            let ready = wait_until(&format!("{label} is ready"), START_LIMIT, || {
                !pod.envoy.is_running()
                    || pod.admin("/ready").is_ok_and(|text| text.trim() == "LIVE")
            });
            ready.with_context(|| format!("its log: {}", pod.envoy.errors()))?;
            ensure!(
                pod.envoy.is_running(),
                "{label} ended: {}",
                pod.envoy.errors()
            );
        }
        if self.options.app == App::Grpc {
            return self.wait_for_listeners();
        }
        let url = format!("http://{SERVER_ADDRESS}:{SERVER_PORT}/ready");
        wait_until("a request goes through the mesh", START_LIMIT, || {
            self.client
                .netns
                .within(|| Ok(ureq::get(&url).call()?))
                .is_ok()
        })
    }

    /// Waits until both sidecars take connections, without a request: the sidecars would keep the connection
    /// of HTTP/2 that it went over, whose headers can only be read from the start.
    fn wait_for_listeners(&self) -> Result<()> {
        for pod in [&self.client, &self.server] {
            let label = pod.envoy.label();
            wait_until(&format!("{label} listens"), START_LIMIT, || {
                pod.netns
                    .within(|| Ok(TcpStream::connect((Ipv4Addr::LOCALHOST, INBOUND_PORT))?))
                    .is_ok()
            })?;
        }
        Ok(())
    }

    /// Starts the bounded load generator in the client's pod.
    pub fn start_load(&mut self) -> Result<()> {
        let mut load = self.launch_load(self.options.rps, self.options.duration, "client")?;
        load.wait_for_line(START_LIMIT, |line| (line == LOADING).then_some(()))?;
        self.load = Some(load);
        self.pauses = 0;
        Ok(())
    }

    fn launch_load(&self, rps: u32, duration: Duration, label: &str) -> Result<Running> {
        let options = &self.options;
        Launch::new(&paths::own_program("mesh-client")?, label, &self.folder)
            .args([
                "--url".to_owned(),
                format!("http://{SERVER_ADDRESS}:{SERVER_PORT}/work"),
            ])
            .args(["--connections".to_owned(), options.connections.to_string()])
            .args(["--rps".to_owned(), rps.to_string()])
            .args([
                "--duration".to_owned(),
                format!("{}ms", duration.as_millis()),
            ])
            .netns(&self.client.netns)
            .start()
    }

    /// Runs the load for `duration` and returns what it measured.
    pub fn run_load(&self, duration: Duration) -> Result<LoadReport> {
        self.run_load_at(self.options.rps, duration)
    }

    /// The same with this many requests per second; 0: as fast as answers come.
    pub fn run_load_at(&self, rps: u32, duration: Duration) -> Result<LoadReport> {
        let load = self.launch_load(rps, duration, "measured-client")?;
        let output = load.finish(duration + START_LIMIT)?;
        load_report(&output)
    }

    /// Lets the load pause when every request has its answer; returns the number of requests so
    /// far. Its connections stay open.
    pub fn pause_load(&mut self) -> Result<u64> {
        let load = self.load.as_ref().context("no load runs")?;
        load.signal(Signal::USR1)?;
        let requests = wait_for("the load pauses", START_LIMIT, || {
            let output = load.output();
            let mut counts = output
                .lines()
                .filter_map(|line| line.strip_prefix("paused "));
            counts.nth(self.pauses)?.parse().ok()
        })
        .with_context(|| format!("its errors: {}", load.errors()))?;
        self.pauses += 1;
        Ok(requests)
    }

    /// Lets a paused load go on.
    pub fn resume_load(&self) -> Result<()> {
        let load = self.load.as_ref().context("no load runs")?;
        load.signal(Signal::USR2)
    }

    /// Ends the load and returns what it measured; `None` when none was started.
    pub fn stop_load(&mut self) -> Result<Option<LoadReport>> {
        let Some(mut load) = self.load.take() else {
            return Ok(None);
        };
        load.stop()?;
        load_report(&load.output()).map(Some)
    }

    /// Spans that the tracing sink has received.
    pub fn spans(&self) -> Result<u64> {
        if self.options.otlp() {
            return Ok(self.received()?.spans);
        }
        ensure!(
            self.zipkin.is_some(),
            "the mesh was started without tracing"
        );
        let text = self.ask_sink(ZIPKIN_PORT, "/count")?;
        text.trim()
            .parse()
            .with_context(|| format!("parse count {text:?}"))
    }

    /// What the telemetry sink has received.
    pub fn received(&self) -> Result<Received> {
        ensure!(
            self.telemetry.is_some(),
            "the mesh was started without anything that goes to the telemetry sink"
        );
        let text = self.ask_sink(TELEMETRY_PORT, "/received")?;
        serde_json::from_str(&text).with_context(|| format!("parse {text:?}"))
    }

    fn ask_sink(&self, port: u16, path: &str) -> Result<String> {
        let url = format!("http://127.0.0.1:{port}{path}");
        self.server.netns.within(|| {
            Ok(ureq::get(&url)
                .call()
                .context("ask the sink")?
                .body_mut()
                .read_to_string()?)
        })
    }

    /// Name of the first process that has ended, if any.
    pub fn ended(&mut self) -> Option<String> {
        let fixed = [
            &mut self.app,
            &mut self.client.envoy,
            &mut self.server.envoy,
        ];
        let processes = fixed
            .into_iter()
            .chain(&mut self.zipkin)
            .chain(&mut self.telemetry)
            .chain(&mut self.load);
        for process in processes {
            if !process.is_running() {
                return Some(process.label().to_owned());
            }
        }
        None
    }

    pub fn report(&self) -> MeshReport {
        MeshReport {
            client_envoy_pid: self.client.envoy.pid(),
            server_envoy_pid: self.server.envoy.pid(),
            client_pid: self.load.as_ref().map(Running::pid),
            server_pid: self.app.pid(),
            zipkin_pid: self.zipkin.as_ref().map(Running::pid),
            client_netns: self.client.netns.name().to_owned(),
            server_netns: self.server.netns.name().to_owned(),
            folder: self.folder.clone(),
            access_logs: self.agent.as_ref().map(|agent| agent.address),
        }
    }
}

/// The report of a load, which is its last line.
pub fn load_report(output: &str) -> Result<LoadReport> {
    let last = output.lines().next_back().unwrap_or_default();
    serde_json::from_str(last).with_context(|| format!("parse load report {output:?}"))
}

fn start_app(netns: &Netns, folder: &Path, options: &MeshOptions) -> Result<Running> {
    let listen = format!("--listen=0.0.0.0:{SERVER_PORT}");
    let millis = |delay: Duration| format!("{}ms", delay.as_millis());
    let (program, arguments) = match (options.app, options.app_trouble.of_slow_app()) {
        (App::Http1, Some(trouble)) => {
            let arguments = vec![
                listen,
                format!("--trouble={trouble}"),
                format!("--time={}", millis(options.app_delay)),
            ];
            ("slow-app", arguments)
        }
        (App::Http1, None) => {
            let arguments = vec![
                listen,
                format!("--body-bytes={}", options.body_bytes),
                format!("--delay={}", millis(options.app_delay)),
                format!("--delay-spread={}", millis(options.app_delay_spread)),
            ];
            ("mesh-server", arguments)
        }
        (App::Grpc, _) => ("grpc-server", vec![listen]),
    };
    Launch::new(&paths::own_program(program)?, "server", folder)
        .args(arguments)
        .netns(netns)
        .start()
}

/// What both sidecars are started with.
struct Sidecars<'a> {
    envoy: &'a Path,
    folder: &'a Path,
    options: &'a MeshOptions,
    agent: Option<&'a AgentLink>,
}

impl Sidecars<'_> {
    fn start_pod(&self, name: &'static str, netns: Netns) -> Result<Pod> {
        let Self {
            envoy,
            folder,
            options,
            agent,
        } = *self;
        let own = folder.join(name);
        fs::create_dir(&own).with_context(|| format!("create {}", own.display()))?;
        std::os::unix::fs::chown(&own, Some(SIDECAR_USER), Some(SIDECAR_USER))
            .context("give the sidecar its folder")?;
        let access_log = own.join("access.log");
        let slow_pipe = match options.access_log {
            AccessLog::SlowPipe => Some(SlowPipe::create(&access_log)?),
            AccessLog::Off
            | AccessLog::Text
            | AccessLog::Json
            | AccessLog::Grpc
            | AccessLog::AgentGrpc
            | AccessLog::AgentOtlp => None,
        };
        let config = sidecar::config(name, options, folder, &access_log, agent);
        let config_path = folder.join(format!("{name}.json"));
        fs::write(
            &config_path,
            serde_json::to_vec_pretty(&config).context("encode config")?,
        )
        .with_context(|| format!("write {}", config_path.display()))?;
        let launched = Launched {
            name,
            own,
            config: config_path,
            generation: 0,
            epoch: 0,
        };
        let envoy = launched.start(envoy, folder, &netns, options)?;
        Ok(Pod {
            netns,
            envoy,
            launched,
            access_log,
            _slow_pipe: slow_pipe,
        })
    }
}
