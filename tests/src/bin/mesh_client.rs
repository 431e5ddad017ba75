//! The demo mesh's client app: a bounded HTTP/1.1 load generator, in a closed loop or at a fixed
//! rate, that prints its measurements as its last line, in JSON.
//!
//! It ends gently, when every request has its answer. SIGUSR1 makes it pause in the same way, after
//! which it prints `paused REQUESTS`; SIGUSR2 lets it go on.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use clap::Parser;
use hdrhistogram::Histogram;
use http_body_util::{BodyExt as _, Empty};
use hyper::{Request, Uri, body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use profiler_tests::mesh::{LOADING, LatencyReport, LoadReport, Unique};
use tokio::{
    net::TcpStream,
    signal::unix::{SignalKind, signal},
    sync::watch,
    time::{MissedTickBehavior, interval, sleep, timeout},
};

/// What the connections are to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Send,
    Pause,
    Stop,
}

/// What is counted over all connections while they run.
#[derive(Debug)]
struct Progress {
    /// Requests that may still be sent.
    left: AtomicU64,
    answered: AtomicU64,
    /// Connections that have heard of a pause.
    paused: AtomicU64,
}

/// Highest latency that is told apart.
const LONGEST_US: u64 = 60_000_000;
const REQUEST_LIMIT: Duration = Duration::from_secs(5);
const RECONNECT_PAUSE: Duration = Duration::from_millis(20);
const PAUSE_STEP: Duration = Duration::from_millis(2);

#[derive(Clone, Parser)]
struct Options {
    /// Where to send requests (http, an address and a port)
    #[arg(long)]
    url: Uri,
    #[arg(long, default_value_t = 16)]
    connections: u32,
    /// Requests per second over all connections; 0 sends as fast as answers come
    #[arg(long, default_value_t = 0)]
    rps: u32,
    #[arg(long, value_parser = humantime::parse_duration)]
    duration: Duration,
    /// Ends after this many requests
    #[arg(long, default_value_t = u64::MAX)]
    requests: u64,
    /// In what requests differ: each has its number there
    #[arg(long, value_enum, default_value = "nothing")]
    unique: Unique,
}

struct Tally {
    latency_us: Histogram<u64>,
    errors: u64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = Options::parse();
    ensure!(options.connections > 0, "--connections must be at least 1");
    let started = Instant::now();
    let (order, orders) = watch::channel(Order::Send);
    let progress = Arc::new(Progress {
        left: AtomicU64::new(options.requests),
        answered: AtomicU64::new(0),
        paused: AtomicU64::new(0),
    });
    let workers: Vec<_> = (0..options.connections)
        .map(|_| {
            tokio::spawn(connection(
                options.clone(),
                Arc::clone(&progress),
                orders.clone(),
            ))
        })
        .collect();
    drop(orders);

    let mut terminate = signal(SignalKind::terminate()).context("catch SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("catch SIGINT")?;
    let mut pause = signal(SignalKind::user_defined1()).context("catch SIGUSR1")?;
    let mut resume = signal(SignalKind::user_defined2()).context("catch SIGUSR2")?;
    // From here on signals are heard.
    println!("{LOADING}");
    let end = sleep(options.duration);
    tokio::pin!(end);
    loop {
        tokio::select! {
            () = &mut end => break,
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            // Every worker has ended: the number of requests is reached.
            () = order.closed() => break,
            _ = pause.recv() => {
                progress.paused.store(0, Ordering::Relaxed);
                order.send_replace(Order::Pause);
                while progress.paused.load(Ordering::Relaxed) < u64::from(options.connections) {
                    sleep(PAUSE_STEP).await;
                }
                println!("paused {}", progress.answered.load(Ordering::Relaxed));
            }
            _ = resume.recv() => {
                order.send_replace(Order::Send);
            }
        }
    }
    // The receivers may be gone.
    order.send_replace(Order::Stop);

    let mut total = Histogram::new_with_max(LONGEST_US, 3).context("make histogram")?;
    let mut errors = 0;
    for worker in workers {
        let tally = worker.await.context("worker")??;
        total.add(&tally.latency_us).context("add histograms")?;
        errors += tally.errors;
    }
    println!(
        "{}",
        serde_json::to_string(&report(&total, errors, started.elapsed()))?
    );
    Ok(())
}

async fn connection(
    options: Options,
    progress: Arc<Progress>,
    mut orders: watch::Receiver<Order>,
) -> Result<Tally> {
    let mut tally = Tally {
        latency_us: Histogram::new_with_max(LONGEST_US, 3).context("make histogram")?,
        errors: 0,
    };
    send_all(&options, &progress, &mut orders, &mut tally).await;
    Ok(tally)
}

/// Whether requests may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum May {
    Send,
    SendAfterPause,
    Stop,
}

/// Returns when requests may be sent, or no more are to be.
async fn may_send(orders: &mut watch::Receiver<Order>, progress: &Progress) -> May {
    let order = *orders.borrow_and_update();
    match order {
        Order::Send => return May::Send,
        Order::Stop => return May::Stop,
        Order::Pause => {}
    }
    progress.paused.fetch_add(1, Ordering::Relaxed);
    // The sender going away means stop as well.
    let next = orders.wait_for(|order| *order != Order::Pause).await;
    if next.is_ok_and(|order| *order == Order::Send) {
        May::SendAfterPause
    } else {
        May::Stop
    }
}

async fn send_all(
    options: &Options,
    progress: &Progress,
    orders: &mut watch::Receiver<Order>,
    tally: &mut Tally,
) {
    let mut pace = (options.rps > 0).then(|| {
        let mut pace = interval(Duration::from_secs(1) * options.connections / options.rps);
        pace.set_missed_tick_behavior(MissedTickBehavior::Burst);
        pace
    });
    let mut sender = None;
    loop {
        let may = may_send(orders, progress).await;
        if may == May::Stop {
            return;
        }
        if let Some(pace) = &mut pace {
            // What a pause has kept back is not sent later.
            if may == May::SendAfterPause {
                pace.reset_immediately();
            }
            tokio::select! {
                _ = pace.tick() => {}
                _ = orders.changed() => {
                    orders.mark_changed();
                    continue;
                }
            }
        }
        let taken = progress
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        let Ok(number) = taken else {
            return;
        };
        let started = Instant::now();
        match timeout(REQUEST_LIMIT, exchange(options, number, &mut sender)).await {
            Ok(Ok(true)) => {
                let micros = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
                tally.latency_us.saturating_record(micros);
                progress.answered.fetch_add(1, Ordering::Relaxed);
            }
            Ok(Ok(false)) => tally.errors += 1,
            Ok(Err(_)) | Err(_) => {
                tally.errors += 1;
                sender = None;
                sleep(RECONNECT_PAUSE).await;
            }
        }
    }
}

type Sender = http1::SendRequest<Empty<Bytes>>;

/// One request on the kept connection (made when there is none); whether the status was 2xx.
async fn exchange(options: &Options, number: u64, kept: &mut Option<Sender>) -> Result<bool> {
    let url = &options.url;
    let (mut path, mut user_agent) = (url.path().to_owned(), "mesh-client".to_owned());
    let mut request_id = None;
    match options.unique {
        Unique::Nothing => {}
        Unique::Path => path = format!("{path}/{number}"),
        Unique::UserAgent => user_agent = format!("{user_agent}/{number}"),
        // What Envoy writes into an id that has this form does not change it.
        Unique::RequestId => request_id = Some(format!("00000000-0000-4000-8000-{number:012x}")),
    }
    let authority = url.authority().context("the URL names no server")?.as_str();
    let mut sender = match kept.take() {
        Some(sender) if sender.is_ready() => sender,
        _ => {
            let stream = TcpStream::connect(authority).await.context("connect")?;
            stream.set_nodelay(true).context("set TCP_NODELAY")?;
            let (sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
            tokio::spawn(driver);
            sender
        }
    };
    let mut request = Request::get(path)
        .header("host", authority)
        .header("user-agent", user_agent);
    if let Some(request_id) = request_id {
        request = request.header("x-request-id", request_id);
    }
    let request = request.body(Empty::new())?;
    let response = sender.send_request(request).await?;
    let good = response.status().is_success();
    let mut body = response.into_body();
    while let Some(frame) = body.frame().await {
        frame?;
    }
    sender.ready().await?;
    *kept = Some(sender);
    Ok(good)
}

fn report(latency: &Histogram<u64>, errors: u64, elapsed: Duration) -> LoadReport {
    let usage = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
    let (requests, cpu) = (
        latency.len() as f64,
        usage.tv_sec as f64 + usage.tv_nsec as f64 / 1e9,
    );
    LoadReport {
        requests: latency.len(),
        errors,
        seconds: elapsed.as_secs_f64(),
        rps: requests / elapsed.as_secs_f64(),
        latency_us: LatencyReport {
            mean: latency.mean(),
            p50: latency.value_at_quantile(0.5),
            p90: latency.value_at_quantile(0.9),
            p99: latency.value_at_quantile(0.99),
            max: latency.max(),
        },
        cpu_seconds: cpu,
    }
}
