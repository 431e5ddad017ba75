//! Network namespaces of our own, joined by veth pairs that live inside them only.

use std::{
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use anyhow::{Context as _, Result, anyhow, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::cleanup::{Guard, Resource, guard, unique_name};

/// A network namespace, removed with everything in it when dropped.
#[derive(Debug)]
pub struct Netns {
    name: String,
    _guard: Guard,
}

impl Netns {
    /// Makes a namespace with its loopback up. `what` is the last part of its name.
    pub fn create(what: &str) -> Result<Self> {
        let name = free_name(what);
        let guard = guard(Resource::Netns(name.clone()));
        ip(&["netns", "add", &name])?;
        ip(&["-n", &name, "link", "set", "lo", "up"])?;
        Ok(Self {
            name,
            _guard: guard,
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn path(&self) -> PathBuf {
        PathBuf::from("/run/netns").join(&self.name)
    }

    /// Joins two namespaces: `eth0` in each, with the given addresses (`a.b.c.d/len`).
    pub fn join(left: (&Self, &str), right: (&Self, &str)) -> Result<()> {
        let (left_name, right_name) = (left.0.name(), right.0.name());
        ip(&[
            "link", "add", "eth0", "netns", left_name, "type", "veth", "peer", "name", "eth0",
            "netns", right_name,
        ])?;
        for (netns, address) in [left, right] {
            ip(&["-n", netns.name(), "address", "add", address, "dev", "eth0"])?;
            ip(&["-n", netns.name(), "link", "set", "eth0", "up"])?;
        }
        Ok(())
    }

    /// Joins it with the machine's own namespace by a link of that name at both ends (at most 15 bytes), with the given addresses
    /// (`a.b.c.d/len`). The link goes with the namespace.
    pub fn join_host(&self, link: &str, own: &str, hosts: &str) -> Result<()> {
        ip(&[
            "link", "add", link, "type", "veth", "peer", "name", link, "netns", &self.name,
        ])?;
        ip(&["address", "add", hosts, "dev", link])?;
        ip(&["link", "set", link, "up"])?;
        ip(&["-n", &self.name, "address", "add", own, "dev", link])?;
        ip(&["-n", &self.name, "link", "set", link, "up"])?;
        Ok(())
    }

    /// Runs a command inside and returns its standard output.
    pub fn run(&self, command: &[&str]) -> Result<String> {
        let mut arguments = vec!["netns", "exec", &self.name];
        arguments.extend_from_slice(command);
        ip(&arguments)
    }

    /// Runs `work` on a thread that has moved into the namespace.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        within(&self.path(), work)
    }
}

/// Runs `work` on a thread that has moved into the namespace of a file.
pub fn within<T: Send>(path: &Path, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    let file = std::fs::File::open(path)
        .with_context(|| format!("open network namespace {}", path.display()))?;
    thread::scope(|scope| {
        let worker = scope.spawn(move || {
            use std::os::fd::AsFd as _;
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
                .context("enter network namespace")?;
            work()
        });
        worker
            .join()
            .map_err(|_| anyhow!("work inside {} panicked", path.display()))?
    })
}

/// The first of `what`, `what-2`, ... that this run has no namespace of: a run may have several meshes.
fn free_name(what: &str) -> String {
    let is_taken = |name: &String| Path::new("/run/netns").join(name).exists();
    let mut name = unique_name(what);
    let mut number = 1;
    while is_taken(&name) {
        number += 1;
        name = unique_name(&format!("{what}-{number}"));
    }
    name
}

/// Runs `ip` and returns its standard output.
pub fn ip(arguments: &[&str]) -> Result<String> {
    let output = Command::new("ip")
        .args(arguments)
        .output()
        .context("run ip (Debian package iproute2)")?;
    ensure!(
        output.status.success(),
        "ip {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
