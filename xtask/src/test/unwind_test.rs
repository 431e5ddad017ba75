//! The step `unwind`: the unwinder's tables against gimli, and on hostile files.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use super::{Tally, binaries};
use crate::{
    debian::{self, Package},
    exec,
    pins::{ARM64_LIBC, ARM64_LIBC_SUITE, ENVOY},
    setup,
    workspace::Workspace,
};

/// Libraries whose tables are compared, where the machine does not have them.
pub(super) const PACKAGES: [Package; 3] = [
    Package {
        name: "libstdc++6",
        evidence: "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    },
    Package {
        name: "libssl3",
        evidence: "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
    },
    Package {
        name: "musl-tools",
        evidence: "/usr/bin/musl-gcc",
    },
];

/// Used where no other Go is in the path.
const GO: Package = Package {
    name: "golang-go",
    evidence: "/usr/bin/go",
};

const GO_PROGRAM: &str = "\
package main

import (
\t\"fmt\"
\t\"net/http\"
)

func main() {
\tfmt.Println(http.ListenAndServe(\"127.0.0.1:0\", nil))
}
";

/// It starts a thread, so that musl's `__clone` is in it.
const MUSL_PROGRAM: &str = "\
#include <pthread.h>

static void *run(void *argument) { return argument; }

int main(void) {
    pthread_t thread;
    return pthread_create(&thread, 0, run, 0) || pthread_join(thread, 0);
}
";

pub(super) fn run(workspace: &Workspace, tally: &mut Tally) -> Result<()> {
    let folder = workspace.tools.join("unwind");
    fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
    let libc = arm64_libc(workspace, &folder)?;
    let go = go_program(workspace, &folder)?;
    let musl = musl_program(&folder)?;
    let node = exec::output(Command::new("node").args(["-p", "process.execPath"]))
        .context("node is a prerequisite")?;
    binaries::checked(
        workspace,
        "unwind",
        &[
            ("PROFILER_ENVOY", &setup::envoy_path(workspace, &ENVOY)),
            ("PROFILER_ARM64_LIBC", &libc),
            ("PROFILER_GO_PROGRAM", &go),
            ("PROFILER_MUSL_PROGRAM", &musl),
            ("PROFILER_NODE", Path::new(node.trim())),
        ],
        tally,
    )
}

fn arm64_libc(workspace: &Workspace, folder: &Path) -> Result<PathBuf> {
    let package = match debian::fetch(workspace, &ARM64_LIBC, folder) {
        Ok(package) => package,
        Err(error) => {
            println!("note: {error:#}; taking the newest of {ARM64_LIBC_SUITE} instead");
            debian::fetch_newest_foreign(workspace, ARM64_LIBC_SUITE, "libc6", "arm64", folder)?
        }
    };
    let unpacked = folder.join("arm64");
    debian::unpack(&package, &unpacked)?;
    Ok(unpacked.join("lib/aarch64-linux-gnu/libc.so.6"))
}

/// A program whose DWARF descriptions are the truth for its own tables.
fn go_program(workspace: &Workspace, folder: &Path) -> Result<PathBuf> {
    if !exec::in_path("go") {
        debian::install(workspace, &[GO])?;
    }
    let source = folder.join("main.go");
    fs::write(&source, GO_PROGRAM).with_context(|| format!("write {}", source.display()))?;
    let program = folder.join("go-program");
    let mut build = Command::new("go");
    build
        .args(["build", "-ldflags=-compressdwarf=false", "-o"])
        .arg(&program)
        .arg("main.go")
        .env("GOCACHE", folder.join("go-cache"))
        .env("GOFLAGS", "-mod=mod")
        .current_dir(folder);
    exec::to_log(&mut build, &workspace.logs().join("go-build.log"))?;
    Ok(program)
}

/// A static program with musl, whose start code has no descriptions.
fn musl_program(folder: &Path) -> Result<PathBuf> {
    let source = folder.join("musl.c");
    fs::write(&source, MUSL_PROGRAM).with_context(|| format!("write {}", source.display()))?;
    let program = folder.join("musl-program");
    let mut compile = Command::new("musl-gcc");
    compile
        .args(["-static", "-O2", "-o"])
        .arg(&program)
        .arg(&source);
    exec::output(&mut compile)?;
    Ok(program)
}
