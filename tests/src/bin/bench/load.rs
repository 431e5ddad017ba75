//! Loads that benches put beside the agent: a web server under wrk, and the mesh; and how runs with and
//! without something beside them are compared.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use profiler_tests::{
    cleanup::{Guard, scratch_directory},
    mesh::{Mesh, MeshOptions},
    paths,
    process::{Launch, Running},
    wait::wait_for,
    workload::Workload,
};

use super::{Figure, LIMIT, Target, figure};

pub(crate) const NGINX: &str = "/usr/sbin/nginx";
pub(crate) const WRK: &str = "/usr/bin/wrk";
/// Keep-alive connections of wrk.
const CONNECTIONS: &str = "32";
/// The share of the mesh's greatest rate at which its CPU time is compared.
const STEADY_SHARE: f64 = 0.5;

/// What is to be kept of what an earlier build keeps.
const KEPT_OF_BASELINE: f64 = 0.99;

/// One run of a load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) per_second: f64,
    requests: f64,
    pub(crate) p99_us: f64,
    /// CPU time of the whole machine for a request.
    pub(crate) cpu_us: f64,
    /// What of it was the agent's own.
    pub(crate) agent_us: f64,
}

impl Load {
    /// With what the agent has spent in this time, in seconds.
    pub(crate) fn beside_agent(self, spent_s: f64) -> Self {
        Self {
            agent_us: spent_s * 1e6 / self.requests,
            ..self
        }
    }
}

/// Ends the name of a row whose programs return at once, behind the name of the row that it is the floor of.
pub(crate) const FLOOR: &str = "_floor";

/// What load is compared with what, and what it is to keep.
pub(crate) struct Row<B> {
    pub(crate) name: &'static str,
    /// What runs beside the load.
    pub(crate) beside: B,
    /// Share of the requests.
    pub(crate) kept: Option<f64>,
}

/// What the agent beside a load is compared with.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    pub(crate) agent: PathBuf,
    /// `None`: with nothing beside the load.
    baseline: Option<PathBuf>,
}

impl Comparison {
    /// As `PROFILER_AGENT` and `PROFILER_BASELINE` say.
    pub(crate) fn from_environment() -> Result<Self> {
        Ok(Self {
            agent: paths::agent()?,
            baseline: paths::baseline()?,
        })
    }

    pub(crate) fn is_with_baseline(&self) -> bool {
        self.baseline.is_some()
    }

    /// What the agent is to keep of what its baseline or, without one, the load alone reaches.
    pub(crate) fn target(&self, kept: Option<f64>) -> Option<Target> {
        let kept = if self.is_with_baseline() {
            Some(KEPT_OF_BASELINE)
        } else {
            kept
        };
        kept.map(Target::AtLeast)
    }

    /// The first and the second run of a pair, in turn. The agent of the first is the baseline's, or runs nothing.
    pub(crate) fn pair<B: Copy, T>(
        &self,
        index: u32,
        beside: B,
        nothing: B,
        run: &dyn Fn(B, &Path) -> Result<T>,
    ) -> Result<(T, T)> {
        let first = || match &self.baseline {
            Some(baseline) => run(beside, baseline),
            None => run(nothing, &self.agent),
        };
        let second = || run(beside, &self.agent);
        if index % 2 == 1 {
            let second = second()?;
            Ok((first()?, second))
        } else {
            Ok((first()?, second()?))
        }
    }
}

/// Pairs of runs without and with each row's companion, in turn, so that a change of the machine's
/// speed meets all rows. With a baseline both runs have the companion, the first as the baseline's agent.
pub(crate) fn compare<B: Copy + PartialEq>(
    comparison: &Comparison,
    what: &str,
    rows: &[Row<B>],
    nothing: B,
    pairs: u32,
    run: &dyn Fn(B, &Path) -> Result<Load>,
) -> Result<Vec<Figure>> {
    let (one, other) = if comparison.is_with_baseline() {
        ("beside the baseline", "beside this build")
    } else {
        ("alone", "beside")
    };
    // The earlier build may not know of floors.
    let is_compared = |row: &&Row<B>| !(comparison.is_with_baseline() && row.name.ends_with(FLOOR));
    let rows: Vec<&Row<B>> = rows.iter().filter(is_compared).collect();
    let mut measured: Vec<Vec<(Load, Load)>> = rows.iter().map(|_| Vec::new()).collect();
    for index in 0..pairs {
        for (Row { name, beside, .. }, pairs_of_row) in rows.iter().zip(&mut measured) {
            let (without, with) = comparison.pair(index, *beside, nothing, run)?;
            eprintln!(
                "{what}, pair {} of {pairs}, {name}: {:.0} requests/s {one}, {:.0} {other}; \
                 p99 {:.0} and {:.0} us; CPU {:.1} and {:.1} us",
                index + 1,
                without.per_second,
                with.per_second,
                without.p99_us,
                with.p99_us,
                without.cpu_us,
                with.cpu_us,
            );
            pairs_of_row.push((without, with));
        }
    }
    let mut figures = parts(what, &rows, &measured);
    for (Row { name, beside, kept }, pairs) in rows.iter().zip(measured) {
        let column = |pick: fn(&(Load, Load)) -> f64| pairs.iter().map(pick).collect::<Vec<_>>();
        figures.push(figure(
            &format!("{what}_requests_kept_{name}"),
            "ratio",
            column(|(without, with)| with.per_second / without.per_second),
            if *beside == nothing {
                None
            } else {
                comparison.target(*kept)
            },
        ));
        figures.push(figure(
            &format!("{what}_p99_{name}"),
            "ratio to without",
            column(|(without, with)| with.p99_us / without.p99_us),
            None,
        ));
        figures.push(figure(
            &format!("{what}_machine_cpu_per_request_{name}"),
            "ratio to without",
            column(|(without, with)| with.cpu_us / without.cpu_us),
            None,
        ));
        figures.push(figure(
            &format!("{what}_requests_per_second_{name}"),
            "requests/s",
            column(|(_, with)| with.per_second),
            None,
        ));
    }
    Ok(figures)
}

/// What a request costs the machine in rows that have a floor: the kernel's calls of the programs, the programs, and the
/// agent's own time.
fn parts<B>(what: &str, rows: &[&Row<B>], measured: &[Vec<(Load, Load)>]) -> Vec<Figure> {
    let pairs_of = |wanted: &str| {
        let at = rows.iter().position(|row| row.name == wanted)?;
        measured.get(at)
    };
    let added = |(without, with): &(Load, Load)| with.cpu_us - without.cpu_us;
    let mut figures = Vec::new();
    for Row { name, .. } in rows {
        let (Some(whole), Some(floor)) = (pairs_of(name), pairs_of(&format!("{name}{FLOOR}")))
        else {
            continue;
        };
        let kernel: Vec<f64> = floor
            .iter()
            .map(|pair| added(pair) - pair.1.agent_us)
            .collect();
        let agent: Vec<f64> = whole.iter().map(|(_, with)| with.agent_us).collect();
        let programs = whole
            .iter()
            .zip(&kernel)
            .map(|(pair, kernel)| added(pair) - kernel - pair.1.agent_us)
            .collect();
        for (part, runs) in [
            ("kernel_calls", kernel),
            ("programs", programs),
            ("agent", agent),
        ] {
            let name = format!("{what}_cpu_per_request_{name}_of_{part}");
            figures.push(figure(&name, "us", runs, None));
        }
    }
    figures
}

/// The mesh as fast as it can, and at a fixed rate for its CPU time.
pub(crate) fn compare_mesh<B: Copy + PartialEq>(
    comparison: &Comparison,
    rows: &[Row<B>],
    nothing: B,
    pairs: u32,
    seconds: f64,
    beside: impl Fn(B, &Path, &dyn Fn() -> Result<Load>) -> Result<Load>,
) -> Result<Vec<Figure>> {
    let mesh = Mesh::up(&MeshOptions {
        workers: 2,
        mtls: true,
        ..MeshOptions::default()
    })?;
    let duration = Duration::from_secs_f64(seconds);
    let run = |what: B, agent: &Path, rate: u32| -> Result<Load> {
        beside(what, agent, &|| {
            let before = machine_cpu_seconds()?;
            let report = mesh.run_load_at(rate, duration)?;
            let spent = machine_cpu_seconds()? - before;
            ensure!(report.errors == 0, "requests failed: {report:?}");
            Ok(Load {
                per_second: report.rps,
                requests: exact(report.requests),
                p99_us: exact(report.latency_us.p99),
                cpu_us: spent * 1e6 / exact(report.requests),
                agent_us: 0.0,
            })
        })
    };
    // The first load finds cold caches and connections.
    run(nothing, &comparison.agent, 0)?;
    let greatest = run(nothing, &comparison.agent, 0)?.per_second;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate of some thousand"
    )]
    let steady = (greatest * STEADY_SHARE).max(1.0) as u32;
    let fast = |what: B, agent: &Path| run(what, agent, 0);
    let mut figures = compare(comparison, "mesh", rows, nothing, pairs, &fast)?;
    let name = format!("mesh_at_{steady}_per_second");
    let without_goals: Vec<Row<B>> = rows.iter().map(|row| Row { kept: None, ..*row }).collect();
    let slow = |what: B, agent: &Path| run(what, agent, steady);
    figures.extend(compare(
        comparison,
        &name,
        &without_goals,
        nothing,
        pairs,
        &slow,
    )?);
    Ok(figures)
}

/// How requests come to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Plain,
    Tls,
}

/// A web server that does nothing but answer, with one worker on the first CPU; ended when dropped.
pub(crate) struct WebServer {
    process: Running,
    scheme: &'static str,
    pub(crate) port: u16,
    pub(crate) folder: PathBuf,
    _folder_guard: Guard,
}

impl WebServer {
    /// nginx, without a log.
    pub(crate) fn nginx(transport: Transport) -> Result<Self> {
        let (folder, guard) = scratch_directory("bench")?;
        // Free a moment ago; nginx has no way to say which port it has chosen.
        let port = std::net::TcpListener::bind("127.0.0.1:0")?
            .local_addr()?
            .port();
        let place = folder.display();
        let (scheme, listen) = match transport {
            Transport::Plain => ("http", String::new()),
            Transport::Tls => {
                let names = vec!["127.0.0.1".to_owned()];
                let made =
                    rcgen::generate_simple_self_signed(names).context("make a certificate")?;
                fs::write(folder.join("cert.pem"), made.cert.pem()).context("write cert.pem")?;
                fs::write(folder.join("key.pem"), made.signing_key.serialize_pem())
                    .context("write key.pem")?;
                let files = format!(
                    "ssl_certificate {place}/cert.pem; ssl_certificate_key {place}/key.pem;"
                );
                ("https", files)
            }
        };
        let ssl = match transport {
            Transport::Plain => "",
            Transport::Tls => " ssl",
        };
        let configuration = format!(
            "daemon off; worker_processes 1; worker_cpu_affinity 1; pid {place}/pid;\n\
             error_log {place}/error.log;\n\
             events {{ worker_connections 1024; }}\n\
             http {{ access_log off; keepalive_requests 1000000000;\n\
             client_body_temp_path {place}; proxy_temp_path {place}; fastcgi_temp_path {place};\n\
             uwsgi_temp_path {place}; scgi_temp_path {place};\n\
             server {{ listen 127.0.0.1:{port} backlog=4096{ssl}; {listen}\n\
             location / {{ return 200 hello; }} }} }}\n"
        );
        let file = folder.join("nginx.conf");
        fs::write(&file, configuration).context("write nginx.conf")?;
        let process = Launch::new(Path::new(NGINX), "nginx", &folder)
            .args([Path::new("-c"), &file])
            .start()?;
        wait_for("nginx listens", LIMIT, || {
            std::net::TcpStream::connect(("127.0.0.1", port)).ok()
        })
        .with_context(|| process.errors())?;
        Ok(Self {
            process,
            scheme,
            port,
            folder,
            _folder_guard: guard,
        })
    }

    /// Go's own HTTP server.
    pub(crate) fn go() -> Result<Self> {
        let (folder, guard) = scratch_directory("bench")?;
        let program = Workload::GoHello.build("go-hello")?;
        let mut process = Launch::new(Path::new("taskset"), "go-hello", &folder)
            .args([Path::new("--cpu-list"), Path::new("0"), &program])
            .env("GOMAXPROCS", "1")
            .start()?;
        let port = process.wait_for_line(LIMIT, |line| line.parse().ok())?;
        Ok(Self {
            process,
            scheme: "http",
            port,
            folder,
            _folder_guard: guard,
        })
    }

    /// Its processes.
    pub(crate) fn pids(&self) -> Result<Vec<u32>> {
        let pid = self.process.pid();
        let path = format!("/proc/{pid}/task/{pid}/children");
        let children = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
        let mut pids = vec![pid];
        for child in children.split_whitespace() {
            pids.push(
                child
                    .parse()
                    .with_context(|| format!("parse {children:?}"))?,
            );
        }
        Ok(pids)
    }

    /// Requests as fast as answers come.
    pub(crate) fn load(&self, keep_alive: bool, seconds: f64) -> Result<Load> {
        // Whole seconds are all that it knows.
        let duration = format!("{}s", seconds.ceil().max(1.0));
        let url = format!("{}://127.0.0.1:{}/", self.scheme, self.port);
        let mut wrk = Launch::new(Path::new("taskset"), "wrk", &self.folder)
            .args(["--cpu-list", "1", WRK, "--latency", "-t1"])
            .args(["-c", CONNECTIONS, "-d", &duration]);
        if !keep_alive {
            wrk = wrk.args(["-H", "Connection: close"]);
        }
        let before = machine_cpu_seconds()?;
        let output = wrk
            .args([&url])
            .start()?
            .finish(Duration::from_secs_f64(seconds) + LIMIT)?;
        let spent = machine_cpu_seconds()? - before;
        wrk_report(&output, spent).with_context(|| format!("parse {output:?}"))
    }
}

/// What wrk reports about its requests.
fn wrk_report(output: &str, spent_s: f64) -> Option<Load> {
    let field = |label: &str| {
        let line = output
            .lines()
            .find_map(|line| line.trim().strip_prefix(label))?;
        line.split_whitespace().next().map(str::to_owned)
    };
    let per_second: f64 = field("Requests/sec:")?.parse().ok()?;
    let requests: f64 = output
        .lines()
        .find(|line| line.contains(" requests in "))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()?;
    let p99 = field("99%")?;
    let (digits, unit_us) = [("us", 1.0), ("ms", 1e3), ("s", 1e6)]
        .into_iter()
        .find_map(|(unit, us)| Some((p99.strip_suffix(unit)?, us)))?;
    Some(Load {
        per_second,
        p99_us: digits.parse::<f64>().ok()? * unit_us,
        cpu_us: spent_s * 1e6 / requests,
        requests,
        agent_us: 0.0,
    })
}

/// CPU time that everything on the machine has used, in seconds.
pub(crate) fn machine_cpu_seconds() -> Result<f64> {
    let stat = fs::read_to_string("/proc/stat").context("read /proc/stat")?;
    let all = stat.lines().next().unwrap_or_default();
    let ticks: Vec<f64> = all
        .split_whitespace()
        .skip(1)
        .filter_map(|field| field.parse().ok())
        .collect();
    ensure!(ticks.len() > 7, "parse {all:?}");
    // user, nice, system, then idle and waiting for disks, then interrupts.
    let busy = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6];
    Ok(busy / profiler_tests::soak::TICKS_PER_SECOND)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of a bench stay below 2^52"
)]
pub(crate) fn exact(count: u64) -> f64 {
    count as f64
}
