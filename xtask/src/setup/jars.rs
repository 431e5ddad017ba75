//! Java programs that tests start, as jars of Maven Central by hash.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use super::kept;
use crate::{
    exec,
    pins::{JavaProgram, MAVEN_DEPENDENCY_PLUGIN},
    progress::Outcome,
    stamp::{Stamp, file_hash},
    workspace::Workspace,
};

/// One line of a list.
#[derive(Debug, PartialEq, Eq)]
struct Jar<'a> {
    sha256: &'a str,
    group: &'a str,
    artifact: &'a str,
    version: &'a str,
}

impl<'a> Jar<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (sha256, name) = line.split_once("  ")?;
        let (group, rest) = name.split_once(':')?;
        let (artifact, version) = rest.split_once(':')?;
        Some(Self {
            sha256,
            group,
            artifact,
            version,
        })
    }

    fn file(&self) -> String {
        format!("{}-{}.jar", self.artifact, self.version)
    }

    /// Alone: what it needs is in the list as well.
    fn dependency(&self) -> String {
        let Self {
            group,
            artifact,
            version,
            ..
        } = self;
        format!(
            "<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>\
             <version>{version}</version><exclusions><exclusion><groupId>*</groupId>\
             <artifactId>*</artifactId></exclusion></exclusions></dependency>\n"
        )
    }
}

fn parse(program: &JavaProgram) -> Result<Vec<Jar<'static>>> {
    let lines = program.jars.lines();
    lines
        .map(|line| Jar::parse(line).with_context(|| format!("jars of {}: {line:?}", program.name)))
        .collect()
}

pub(crate) fn label(program: &JavaProgram) -> String {
    format!("{} {}", program.name, program.version)
}

fn folder(workspace: &Workspace, program: &JavaProgram) -> PathBuf {
    let name = format!("{}-{}", program.name, program.version);
    workspace.tools.join(name)
}

/// Leaves target/tools/NAME-VERSION/*.jar.
pub(crate) fn ensure(workspace: &Workspace, program: &JavaProgram) -> Result<Outcome> {
    let jars = parse(program)?;
    let folder = folder(workspace, program);
    let stamp = Stamp::new(folder.join("stamp"), program.version, program.jars);
    kept::ensure(&folder, &stamp, || {
        fetch(workspace, program, &jars, &folder)
    })
}

fn fetch(
    workspace: &Workspace,
    program: &JavaProgram,
    jars: &[Jar<'_>],
    folder: &Path,
) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("remove {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    let dependencies: String = jars.iter().map(Jar::dependency).collect();
    let project = format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\n<modelVersion>4.0.0</modelVersion>\n\
         <groupId>local</groupId><artifactId>{}</artifactId><version>1</version>\
         <packaging>pom</packaging>\n<dependencies>\n{dependencies}</dependencies>\n</project>\n",
        program.name
    );
    let path = folder.join("pom.xml");
    fs::write(&path, project).with_context(|| format!("write {}", path.display()))?;
    let mut download = Command::new("mvn");
    download
        .args(["--batch-mode", "--quiet", "--file"])
        .arg(&path)
        .arg(format!("{MAVEN_DEPENDENCY_PLUGIN}:copy-dependencies"))
        .arg(format!("-DoutputDirectory={}", folder.display()));
    let log = workspace.logs().join(format!("{}-jars.log", program.name));
    exec::download(&mut download, &log)?;
    for jar in jars {
        check(folder, jar)?;
    }
    Ok(())
}

fn check(folder: &Path, jar: &Jar<'_>) -> Result<()> {
    let path = folder.join(jar.file());
    let found = file_hash(&path)?;
    ensure!(
        found == jar.sha256,
        "{} has the hash {found}, not {}",
        path.display(),
        jar.sha256
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pins;

    #[test]
    fn every_pinned_jar_has_a_hash_and_a_place() {
        for program in [&pins::KAFKA, &pins::MONGO_JAVA_SERVER] {
            let jars = parse(program).unwrap();
            assert!(jars.len() > 10, "{}", program.name);
            for jar in &jars {
                let is_hash = jar.sha256.len() == 64
                    && jar.sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
                assert!(is_hash, "{jar:?}");
            }
        }
    }

    #[test]
    fn a_jar_of_another_content_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a-1.jar"), "abc").unwrap();
        let jar = |sha256| Jar {
            sha256,
            group: "g",
            artifact: "a",
            version: "1",
        };
        let right = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert!(check(folder.path(), &jar(right)).is_ok());
        assert!(check(folder.path(), &jar(&right.replace('b', "c"))).is_err());
    }
}
