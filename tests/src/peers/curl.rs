//! curl: any list of requests over one connection.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};

use super::{asked::Asked, held};
use crate::process::Launch;

const LIMIT: Duration = Duration::from_mins(1);

/// One request.
#[derive(Clone, Debug)]
pub struct Call {
    method: &'static str,
    path: String,
    /// The path as it is reported.
    masked: String,
    status: u16,
    /// Bytes of the body that is sent.
    body_bytes: u64,
    /// More lines of curl's configuration.
    options: Vec<String>,
}

impl Call {
    pub fn new(method: &'static str, path: impl Into<String>, status: u16) -> Self {
        let path = path.into();
        Self {
            method,
            masked: path.clone(),
            path,
            status,
            body_bytes: 0,
            options: Vec::new(),
        }
    }

    /// Sends this many bytes.
    #[must_use]
    pub fn body(mut self, bytes: u64) -> Self {
        self.body_bytes = bytes;
        self
    }

    /// The path has a query and is reported as `masked`.
    #[must_use]
    pub fn masked(mut self, masked: &str) -> Self {
        masked.clone_into(&mut self.masked);
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(self, line: &str) -> Self {
        self.option(&format!("header = \"{line}\""))
    }

    /// Adds a line of curl's configuration.
    #[must_use]
    pub fn option(mut self, line: &str) -> Self {
        self.options.push(line.to_owned());
        self
    }

    fn write(&self, base: &str, folder: &Path, common: &[&str], out: &mut String) -> Result<()> {
        let path = &self.path;
        writeln!(out, "url = \"{base}{path}\"\noutput = /dev/null\ngloboff")?;
        match self.method {
            "HEAD" => writeln!(out, "head")?,
            "GET" if self.body_bytes == 0 => {}
            method => writeln!(out, "request = {method}")?,
        }
        if self.body_bytes > 0 {
            let body = folder.join(format!("body-{}", self.body_bytes));
            fs::write(&body, vec![b'b'; usize::try_from(self.body_bytes)?])
                .context("write a body")?;
            writeln!(out, "data-binary = \"@{}\"", body.display())?;
        }
        for line in common
            .iter()
            .copied()
            .chain(self.options.iter().map(String::as_str))
        {
            writeln!(out, "{line}")?;
        }
        writeln!(out, "{REPORT}\nnext")?;
        Ok(())
    }
}

const REPORT: &str = r#"write-out = "%{method} %{response_code} %{size_download} %{time_pretransfer} %{time_total}\n""#;

/// What was done.
#[derive(Debug, Default)]
pub struct Done {
    /// Of each curl.
    pub pids: Vec<u32>,
    pub asked: Vec<Asked>,
    /// How long each request took from its first byte to the answer's last one, and since the process
    /// had begun it.
    pub took: Vec<Duration>,
}

/// Makes the calls one after the other, each with the lines `common` of curl's configuration. An error
/// unless every answer has the expected status.
pub fn run(folder: &Path, base: &str, calls: &[Call], common: &[&str]) -> Result<Done> {
    make(folder, base, calls, common, false)
}

/// The same, held until the agent has put probes into curl.
pub fn run_probed(folder: &Path, base: &str, calls: &[Call], common: &[&str]) -> Result<Done> {
    make(folder, base, calls, common, true)
}

fn make(folder: &Path, base: &str, calls: &[Call], common: &[&str], is_held: bool) -> Result<Done> {
    let mut text = String::new();
    for call in calls {
        call.write(base, folder, common, &mut text)?;
    }
    let text = text.strip_suffix("next\n").unwrap_or(&text);
    let configuration: PathBuf = folder.join("curl.conf");
    if is_held {
        held::make_pipe(&configuration)?;
    } else {
        fs::write(&configuration, text).context("write curl's configuration")?;
    }
    let mut client = Launch::new(Path::new("/usr/bin/curl"), "curl", folder)
        .args([
            "--silent",
            "--show-error",
            "--no-progress-meter",
            "--config",
        ])
        .args([&configuration])
        .start()?;
    let pid = client.pid();
    if is_held {
        held::feed(&mut client, &configuration, text)?;
    }
    let output = client.finish(LIMIT)?;
    ensure!(
        output.lines().count() == calls.len(),
        "curl made other requests: {output}"
    );
    let mut done = Done {
        pids: vec![pid],
        ..Done::default()
    };
    for (call, line) in calls.iter().zip(output.lines()) {
        let words: Vec<&str> = line.split(' ').collect();
        let [method, status, received, from, to] = words.as_slice() else {
            anyhow::bail!("curl reports {line:?}");
        };
        let expected = (call.method, call.status.to_string());
        ensure!(
            (*method, (*status).to_owned()) == expected,
            "{call:?} was answered {line:?}"
        );
        let asked = Asked::new(method, &call.masked, status);
        let received: u64 = received.parse().context("size_download")?;
        done.asked.push(asked.sizes(call.body_bytes, received));
        let (from, to): (f64, f64) = (from.parse()?, to.parse()?);
        done.took
            .push(Duration::from_secs_f64((to - from).max(0.0)));
    }
    Ok(done)
}

/// The same with a process and a connection for each call: curl 7.88 cannot use a connection of HTTP/2
/// without TLS again.
pub fn run_each(folder: &Path, base: &str, calls: &[Call], common: &[&str]) -> Result<Done> {
    let mut all = Done::default();
    for call in calls {
        let Done { pids, asked, took } = run(folder, base, std::slice::from_ref(call), common)?;
        all.pids.extend(pids);
        all.asked.extend(asked);
        all.took.extend(took);
    }
    Ok(all)
}
