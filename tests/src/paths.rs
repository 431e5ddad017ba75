//! Where programs are found, each with the remedy when it is missing.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

/// The repository's root.
pub fn workspace() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap_or(tests).to_path_buf()
}

/// A program of this package, built next to the running one.
pub fn own_program(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe().context("find own program")?;
    own.ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
        .with_context(|| format!("{name} is not built: run `cargo build -p profiler-tests`"))
}

/// The target directory that the running program was built in.
fn target_directory() -> Result<PathBuf> {
    let own = std::env::current_exe().context("find own program")?;
    own.ancestors()
        .find(|folder| folder.join("CACHEDIR.TAG").is_file())
        .map(Path::to_path_buf)
        .context("the running program does not lie in a cargo target directory")
}

/// Where programs that tests compile are kept between runs.
pub fn workload_directory() -> Result<PathBuf> {
    let folder = target_directory()?.join("workloads");
    std::fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    Ok(folder)
}

/// The agent under test: `PROFILER_AGENT` or the release build.
pub fn agent() -> Result<PathBuf> {
    let path = match std::env::var_os("PROFILER_AGENT") {
        Some(path) => PathBuf::from(path),
        None => target_directory()?.join("release/profiler-agent"),
    };
    ensure!(
        path.is_file(),
        "no agent at {}: run `cargo xtask build` or set PROFILER_AGENT",
        path.display()
    );
    Ok(path)
}

/// An earlier build of the agent that benches compare with, where `PROFILER_BASELINE` names one.
pub fn baseline() -> Result<Option<PathBuf>> {
    let Some(path) = std::env::var_os("PROFILER_BASELINE").map(PathBuf::from) else {
        return Ok(None);
    };
    ensure!(
        path.is_file(),
        "PROFILER_BASELINE names {}, which is not a file",
        path.display()
    );
    Ok(Some(path))
}

/// The Envoy binary: `PROFILER_ENVOY` or what `cargo xtask setup` fetched.
pub fn envoy() -> Result<PathBuf> {
    let path = match std::env::var_os("PROFILER_ENVOY") {
        Some(path) => PathBuf::from(path),
        None => workspace().join("target/tools/envoy-1.40.0/envoy"),
    };
    ensure!(
        path.is_file(),
        "no Envoy at {}: run `cargo xtask setup` or set PROFILER_ENVOY",
        path.display()
    );
    Ok(path)
}

/// One of the Envoys that `cargo xtask test` fetched.
pub fn envoy_release(version: &str) -> Result<PathBuf> {
    let path = workspace().join(format!("target/tools/envoy-{version}/envoy"));
    ensure!(
        path.is_file(),
        "no Envoy {version} at {}: run this step by `cargo xtask test`",
        path.display()
    );
    Ok(path)
}

/// The folder of a tool that `cargo xtask test` fetched, by the beginning of its name.
pub fn tool(prefix: &str) -> Result<PathBuf> {
    let tools = workspace().join("target/tools");
    let entries = std::fs::read_dir(&tools).with_context(|| format!("list {}", tools.display()))?;
    // Of several the one that was fetched last: pins change.
    let fetched = entries.flatten().filter_map(|entry| {
        let name = entry.file_name();
        let stamp = entry.path().join("stamp").metadata().ok()?;
        let fits = name.to_string_lossy().starts_with(prefix);
        fits.then_some((stamp.modified().ok()?, entry.path()))
    });
    let (_, path) = fetched.max().with_context(|| {
        format!(
            "no {prefix} in {}: run this step by `cargo xtask test`",
            tools.display()
        )
    })?;
    Ok(path)
}

/// Fails, rather than skips, where the effective user is not root.
pub fn require_root() -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("this needs root (namespaces, eBPF): run it with sudo");
    }
    Ok(())
}
