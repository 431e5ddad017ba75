//! A server app with one thread for each connection, which spends a given time on each request in a given way. It prints
//! `listening on ADDRESS`.

use std::{
    fs::File,
    hint::black_box,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use clap::{Parser, ValueEnum};

#[derive(Parser)]
struct Options {
    #[arg(long)]
    listen: SocketAddr,
    /// What it does for each request
    #[arg(long, value_enum)]
    trouble: Trouble,
    /// For how long
    #[arg(long, default_value = "0s", value_parser = humantime::parse_duration)]
    time: Duration,
    /// End when standard input does: with the process that started this one
    #[arg(long)]
    until_stdin_ends: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Trouble {
    Asleep,
    Computing,
    /// Another thread holds a lock.
    Lock,
    /// Small writes that must reach the disk.
    File,
    /// Another process answers late.
    Upstream,
}

/// How the time of a request is spent.
enum Way {
    Asleep(Duration),
    Computing(Duration),
    Lock(Holder),
    File(Duration),
    Upstream { address: SocketAddr, _server: Child },
}

/// A thread that takes a lock for a time whenever it is asked to.
struct Holder {
    lock: Arc<Mutex<()>>,
    ask: mpsc::SyncSender<mpsc::SyncSender<()>>,
}

impl Holder {
    fn start(time: Duration) -> Self {
        let lock = Arc::new(Mutex::new(()));
        let (ask, asked) = mpsc::sync_channel::<mpsc::SyncSender<()>>(0);
        let held = Arc::clone(&lock);
        thread::spawn(move || {
            for locked in asked {
                let guard = held.lock();
                // Who asked may be gone.
                let _gone = locked.send(());
                thread::sleep(time);
                drop(guard);
            }
        });
        Self { lock, ask }
    }

    fn wait(&self) -> Result<()> {
        let (locked, is_locked) = mpsc::sync_channel(1);
        self.ask.send(locked).context("ask for the lock")?;
        is_locked.recv().context("wait until it is locked")?;
        drop(self.lock.lock());
        Ok(())
    }
}

impl Way {
    fn of(options: &Options) -> Result<Self> {
        let time = options.time;
        Ok(match options.trouble {
            Trouble::Asleep => Self::Asleep(time),
            Trouble::Computing => Self::Computing(time),
            Trouble::Lock => Self::Lock(Holder::start(time)),
            Trouble::File => Self::File(time),
            Trouble::Upstream => {
                let (server, address) = upstream(time)?;
                Self::Upstream {
                    address,
                    _server: server,
                }
            }
        })
    }

    /// `upstream` is kept from request to request of a connection.
    fn spend(&self, upstream: &mut Option<TcpStream>) -> Result<()> {
        match self {
            Self::Asleep(time) => thread::sleep(*time),
            Self::Computing(time) => compute(*time),
            Self::Lock(holder) => holder.wait()?,
            Self::File(time) => write_until(*time)?,
            Self::Upstream { address, .. } => {
                let stream = match upstream {
                    Some(stream) => stream,
                    none => none.insert(TcpStream::connect(address).context("connect")?),
                };
                stream
                    .write_all(b"GET /stock HTTP/1.1\r\nHost: stock\r\n\r\n")
                    .context("ask")?;
                let mut reader = BufReader::new(&*stream);
                read_head(&mut reader)?.context("no answer")?;
                reader.read_exact(&mut [0; 2]).context("read the answer")?;
            }
        }
        Ok(())
    }
}

fn compute(time: Duration) {
    let began = Instant::now();
    let mut sum = 0u64;
    while began.elapsed() < time {
        for number in 0..10_000 {
            sum = black_box(sum.wrapping_mul(31).wrapping_add(number));
        }
    }
}

fn write_until(time: Duration) -> Result<()> {
    let began = Instant::now();
    let path = format!("/var/tmp/slow-app-{}", std::process::id());
    let mut file = File::create(&path).with_context(|| format!("create {path}"))?;
    while began.elapsed() < time {
        file.write_all(&[b'x'; 4096]).context("write")?;
        file.sync_all().context("sync")?;
    }
    std::fs::remove_file(&path).context("remove the file")
}

/// The same program as another process, which is asleep for each request.
fn upstream(time: Duration) -> Result<(Child, SocketAddr)> {
    let mut child = Command::new(std::env::current_exe().context("find this program")?)
        .args([
            "--listen=127.0.0.1:0",
            "--trouble=asleep",
            "--until-stdin-ends",
        ])
        .arg(format!("--time={}us", time.as_micros()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("start the upstream")?;
    let mut line = String::new();
    let output = child.stdout.take().context("no output")?;
    BufReader::new(output)
        .read_line(&mut line)
        .context("read its address")?;
    let address = line.trim().strip_prefix("listening on ");
    let address = address.and_then(|address| address.parse().ok());
    Ok((
        child,
        address.with_context(|| format!("no address: {line}"))?,
    ))
}

/// Lines up to the empty one; `None`: the peer has ended.
fn read_head(reader: &mut impl std::io::BufRead) -> Result<Option<()>> {
    let mut line = String::new();
    let mut is_first = true;
    loop {
        line.clear();
        let length = reader.read_line(&mut line).context("read")?;
        match (length, line.trim_end()) {
            (0, _) if is_first => return Ok(None),
            (0, _) => bail!("it ended inside of a head"),
            (_, "") => return Ok(Some(())),
            _ => is_first = false,
        }
    }
}

fn serve(stream: &TcpStream, way: &Way) -> Result<()> {
    stream.set_nodelay(true).context("set TCP_NODELAY")?;
    let mut reader = BufReader::new(stream);
    let mut upstream = None;
    while read_head(&mut reader)?.is_some() {
        way.spend(&mut upstream)?;
        let mut writer = stream;
        writer
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            .context("answer")?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let options = Options::parse();
    if options.until_stdin_ends {
        thread::spawn(|| {
            let _ended = std::io::stdin().read_to_end(&mut Vec::new());
            std::process::exit(0);
        });
    }
    let listener = TcpListener::bind(options.listen)
        .with_context(|| format!("listen on {}", options.listen))?;
    println!(
        "listening on {}",
        listener.local_addr().context("find the own address")?
    );
    let way = Arc::new(Way::of(&options)?);
    for stream in listener.incoming() {
        let stream = stream.context("accept")?;
        let way = Arc::clone(&way);
        // A connection that ends badly is the peer's affair.
        thread::spawn(move || drop(serve(&stream, &way)));
    }
    Ok(())
}
