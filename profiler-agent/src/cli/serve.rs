//! `serve`: the agent with its API and web UI.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use profiler_sandbox::{
    confine::{Confinement, confine_process},
    privileges::{self, Tier},
};
use tokio::signal::unix::{SignalKind, signal};

use super::CliError;
use crate::{
    app::{App, KernelSide, LAST_WORK, STOP_DEADLINE},
    config::{
        AuthConfig, ContinuousProfile, NetworkMode, ServeConfig, cli::ServeArgs,
        mistyped_variables, resolve_serve,
    },
    demo_data::{self, DemoFolder},
    exit, rule_files, telemetry,
    terminal::{self, Text},
};
use profiler_memory::Ceiling;

/// How long before the deadline the process is ended by force.
const MARGIN: Duration = Duration::from_millis(100);

/// Runs the agent until SIGINT or SIGTERM. `kernel_side` loads the probes.
pub fn run(
    args: &ServeArgs,
    log: Option<&str>,
    kernel_side: impl FnOnce(&ServeConfig) -> std::io::Result<KernelSide>,
) -> Result<(), CliError> {
    let environment = |name: &str| std::env::var(name).ok();
    let config = resolve_serve(args, log, &environment)?;
    telemetry::check_filter(&config.log).map_err(|error| CliError::Config(error.into()))?;
    // Only looked at: the application reads them when it starts.
    rule_files::idle(config.idle_rules.as_deref())
        .map_err(|error| CliError::Config(error.into()))?;
    rule_files::diagnosis(config.diagnosis_rules.as_deref())
        .map_err(|error| CliError::Config(error.into()))?;
    if args.print_config {
        return Ok(terminal::out(&Text::of(&config.to_toml()))?);
    }
    // What the agent writes is its user's alone.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    telemetry::init(&config.log).context("start the log")?;
    // Names alone: some are not UTF-8.
    let variables = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for (name, meant) in mistyped_variables(variables) {
        tracing::warn!("{name} is not a setting and does nothing: was {meant} meant?");
    }
    privileges::keep_at_most(if config.demo_data {
        Tier::Nothing
    } else {
        config.privileges
    })
    .map_err(anyhow::Error::from)?;
    if config.confine == Confinement::Auto {
        confine_process().map_err(anyhow::Error::from)?;
    }
    Ceiling::own().set(config.max_memory.clone());
    config.remote_files.choose();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("agent")
        .enable_all()
        .build()
        .context("start the async runtime")?;
    let served = runtime.block_on(serve(config, kernel_side));
    // Work that blocks and does not end must not keep the process alive.
    runtime.shutdown_timeout(LAST_WORK);
    Ok(served?)
}

/// The reader of the program's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    /// A person at a terminal.
    Person,
    /// A file or a pipe: a log, which others may read as well.
    Program,
}

/// The first line of the program, which says where to look.
#[derive(Clone, Debug)]
struct Greeting {
    reader: Reader,
    auth: AuthConfig,
    token_file: Option<PathBuf>,
    read_only_token: Option<PathBuf>,
}

impl Greeting {
    fn new(reader: Reader, config: &ServeConfig) -> Self {
        Self {
            reader,
            auth: config.auth.clone(),
            token_file: config.auth.token_file(&config.data_dir),
            read_only_token: config.read_only_token.clone(),
        }
    }

    /// `url` has the token where the agent made it for this run.
    fn line(&self, url: &str, is_everywhere: bool) -> String {
        let shown = match self.reader {
            Reader::Person => url,
            Reader::Program => url.split('#').next().unwrap_or(url),
        };
        let others = if is_everywhere {
            " and on every other address of this machine"
        } else {
            ""
        };
        let mut parts = vec![format!("listening on {shown}{others}")];
        let is_shown = self.reader == Reader::Person && self.auth == AuthConfig::Fresh;
        if let Some(path) = self.token_file.as_ref().filter(|_| !is_shown) {
            let path = path.display();
            parts.push(format!(
                "the token is in {path} (`profiler-agent url`, with the settings of `serve`, prints the address with it)"
            ));
        }
        if let Some(path) = &self.read_only_token {
            parts.push(format!(
                "a token that may only look is in {}",
                path.display()
            ));
        }
        parts.join("; ") + "\n"
    }
}

async fn serve(
    config: ServeConfig,
    kernel_side: impl FnOnce(&ServeConfig) -> std::io::Result<KernelSide>,
) -> Result<()> {
    // Before anything starts, so that an early signal is not lost.
    let mut interrupt = signal(SignalKind::interrupt()).context("watch for SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("watch for SIGTERM")?;
    let mut config = config;
    // Lives as long as the application.
    let demo = config.demo_data.then(DemoFolder::new).transpose()?;
    let kernel = match &demo {
        Some(folder) => {
            folder.path().clone_into(&mut config.data_dir);
            // Recorded once, it would soon be too old.
            config.retention.age = Duration::MAX;
            config.profile = ContinuousProfile::Off;
            config.network = NetworkMode::Always;
            demo_data::prepare(folder)?
        }
        None => kernel_side(&config).context("start the kernel side")?,
    };
    let reader = if terminal::out_is_terminal() {
        Reader::Person
    } else {
        Reader::Program
    };
    let greeting = Greeting::new(reader, &config);
    let app = App::start(config, kernel)?;
    let line = greeting.line(app.url(), app.origin().is_everywhere());
    terminal::out(&Text::of(&line))?;
    let stop = async move {
        let name = tokio::select! {
            _ = interrupt.recv() => "SIGINT",
            _ = terminate.recv() => "SIGTERM",
        };
        tracing::info!(signal = name, "stopping");
        // A moment before, so that the promise is kept.
        exit::by_force_after(STOP_DEADLINE.saturating_sub(MARGIN));
    };
    Ok(app.run_until(stop).await?)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const URL: &str = "http://127.0.0.1:7117/#token=secret";

    fn greeting(reader: Reader, auth: AuthConfig) -> Greeting {
        Greeting {
            reader,
            token_file: auth.token_file(Path::new("/data")),
            auth,
            read_only_token: None,
        }
    }

    #[test]
    fn a_person_is_shown_the_token_that_was_made() {
        let line = greeting(Reader::Person, AuthConfig::Fresh).line(URL, false);
        assert_eq!(line, format!("listening on {URL}\n"));
    }

    #[test]
    fn a_log_is_told_where_the_token_is() {
        let line = greeting(Reader::Program, AuthConfig::Fresh).line(URL, false);
        assert_eq!(
            line,
            "listening on http://127.0.0.1:7117/; the token is in /data/token (`profiler-agent url`, with the settings of `serve`, prints the address \
             with it)\n"
        );
        let none = greeting(Reader::Program, AuthConfig::None).line("http://127.0.0.1:1/", false);
        assert_eq!(none, "listening on http://127.0.0.1:1/\n");
    }

    #[test]
    fn a_token_that_was_given_is_shown_to_nobody() {
        for reader in [Reader::Person, Reader::Program] {
            let mut greeting = greeting(reader, AuthConfig::File("/t".into()));
            greeting.read_only_token = Some("/r".into());
            let line = greeting.line("https://127.0.0.1:7117/", true);
            assert_eq!(
                line,
                "listening on https://127.0.0.1:7117/ and on every other address of this machine; \
                 the token is in /t (`profiler-agent url`, with the settings of `serve`, prints the address with it); a token that may only look \
                 is in /r\n"
            );
        }
    }
}
