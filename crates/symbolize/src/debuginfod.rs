//! Debug files from a debuginfod server, where the user has named one (`--debuginfod URL`).
//!
//! Off by default: it tells the server which programs run here. The server is asked once for each
//! build-id whose file has neither debug information nor Go's table; the answer is bounded in size
//! and time, kept beside the uploaded packs, and used when it carries the build-id that was asked
//! for. Names of samples that were taken before it came are found when their result is read. Redirects lead where
//! `debuginfod_server` lets them.

use std::{
    fs::File,
    io::{self, Read, Write as _},
    sync::mpsc::{Receiver, sync_channel},
    time::{Duration, Instant},
};

use http::{Response, header::LOCATION};
use profiler_image::build_id;
use profiler_sandbox::{broker, confine::Reach};

use super::{
    debuginfod_server::{DebuginfodServer, RedirectError},
    pack_file::PackError,
    packs::SymbolPacks,
};

/// Build-ids that wait; more are asked for when their program is seen again.
const QUEUE: usize = 256;
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Longest time for one file.
const FETCH_LIMIT: Duration = Duration::from_mins(10);
/// Most redirects for one file; servers make one or two.
const MAX_REDIRECTS: usize = 5;

#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error("the server has no file for it")]
    Unknown,
    #[error("ask the server: {0}")]
    Request(#[from] ureq::Error),
    #[error("ask the server: {0}")]
    Redirect(#[from] RedirectError),
    #[error("the answer exceeds {0} bytes")]
    TooLarge(u64),
    #[error("read the answer: {0}")]
    Read(#[from] io::Error),
    #[error(transparent)]
    Pack(#[from] PackError),
}

/// Starts the thread that fetches; it ends when the last user of the packs is gone.
pub fn start(server: &DebuginfodServer, packs: &SymbolPacks) -> io::Result<()> {
    let (sender, wanted) = sync_channel(QUEUE);
    packs.set_fetcher(sender);
    let agent = agent();
    let server = server.clone();
    let folder = packs.made_folder()?;
    // The thread must not keep alive what its end waits for.
    let packs = packs.downgrade();
    // It understands what a server sends.
    let reach = match folder {
        Some(folder) => Reach::Folder(folder),
        None => Reach::Servers(Vec::new()),
    };
    broker::start_after("debuginfod", reach, broker::keep_none, move |()| {
        serve(&wanted, &agent, &server, &packs);
    })?;
    Ok(())
}

fn agent() -> ureq::Agent {
    ureq::Agent::config_builder()
        .timeout_connect(Some(CONNECT_LIMIT))
        // Each is looked at before it is followed.
        .max_redirects(0)
        .user_agent(concat!("profiler-agent/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

fn serve(
    wanted: &Receiver<Vec<u8>>,
    agent: &ureq::Agent,
    server: &DebuginfodServer,
    packs: &super::packs::WeakPacks,
) {
    while let Ok(id) = wanted.recv() {
        let Some(packs) = packs.upgrade() else { return };
        let text = build_id::hexadecimal(&id);
        match fetch(agent, server, &id, &packs) {
            Ok(bytes) => tracing::info!(build_id = text, bytes, "fetched a debug file"),
            Err(FetchError::Unknown) => {
                tracing::debug!(build_id = text, "the debuginfod server has no such file");
            }
            Err(error) => tracing::warn!(build_id = text, %error, "fetch a debug file"),
        }
    }
}

fn fetch(
    agent: &ureq::Agent,
    server: &DebuginfodServer,
    id: &[u8],
    packs: &SymbolPacks,
) -> Result<u64, FetchError> {
    let mut response = ask(agent, server, &build_id::hexadecimal(id))?;
    let written = packs.begin()?;
    let file = File::options().write(true).open(written.path())?;
    copy(
        &mut response.body_mut().as_reader(),
        &file,
        packs.max_bytes(),
    )?;
    Ok(packs.take_fetched(written, id)?.bytes)
}

/// The answer of the server, or of the host that it redirects to.
fn ask(
    agent: &ureq::Agent,
    server: &DebuginfodServer,
    build_id: &str,
) -> Result<Response<ureq::Body>, FetchError> {
    let began = Instant::now();
    let mut url = server.debug_file(build_id);
    for _ in 0..=MAX_REDIRECTS {
        let left = FETCH_LIMIT.saturating_sub(began.elapsed());
        let request = agent.get(&url).config().timeout_global(Some(left)).build();
        let response = match request.call() {
            Ok(response) => response,
            Err(ureq::Error::StatusCode(404)) => return Err(FetchError::Unknown),
            Err(error) => return Err(error.into()),
        };
        if !response.status().is_redirection() {
            return Ok(response);
        }
        let location = response.headers().get(LOCATION);
        let location = location.and_then(|location| location.to_str().ok());
        url = server.redirect(&url, location.ok_or(RedirectError::Unreadable)?)?;
    }
    Err(RedirectError::TooMany(MAX_REDIRECTS).into())
}

/// Copies up to `limit` bytes; more are an error, and so is an answer that ends early.
fn copy(from: &mut impl Read, mut to: &File, limit: u64) -> Result<(), FetchError> {
    let mut buffer = vec![0; 64 * 1024];
    let mut total = 0u64;
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        total += count as u64;
        if total > limit {
            return Err(FetchError::TooLarge(limit));
        }
        to.write_all(&buffer[..count])?;
    }
}

#[cfg(test)]
#[path = "debuginfod_tests.rs"]
mod tests;
