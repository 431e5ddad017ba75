//! What the shipped program consists of: crates of the agent and of the eBPF object, and packages of the page, each with
//! the texts of its licences from its own source.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::licences::Licences;
use crate::{exec, workspace::Workspace};

/// What is shipped; the crates are the same where glibc stands in for musl.
const TARGET: &str = "x86_64-unknown-linux-musl";
/// Crates with whose dependencies the program is made; the object is embedded in the agent.
const MADE_OF: [(&str, Option<&str>); 2] =
    [("profiler-agent", Some(TARGET)), ("profiler-ebpf", None)];
/// How names of files with licences begin, in lower case.
const BEGINNINGS: [&str; 6] = [
    "licence",
    "license",
    "copying",
    "copyright",
    "notice",
    "unlicense",
];
/// Folders of a crate whose files do not go into the program.
const ELSEWHERE: [&str; 6] = [
    "tests",
    "examples",
    "benches",
    "fuzz",
    "target",
    "node_modules",
];
/// How deep such files lie: those of C libraries are below their own folders.
const DEPTH: usize = 4;
/// Longer files are not licences.
const MAX_BYTES: u64 = 256 * 1024;
/// Texts of licences that are offered and not used.
const NOT_USED: [(&str, &str); 1] = [("zstd-sys", "zstd/COPYING")];

/// One crate or package.
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) version: String,
    /// What it is used under; all of them hold.
    pub(crate) licences: Vec<String>,
    /// Where its source is.
    pub(crate) source: String,
    pub(crate) texts: Vec<Text>,
}

/// A file with a licence.
pub(crate) struct Text {
    /// Its path in the part.
    pub(crate) name: String,
    pub(crate) text: String,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

/// Crates, then packages, each by name.
pub(super) fn read(workspace: &Workspace, licences: &Licences) -> Result<Vec<Part>> {
    let mut parts = crates(workspace, licences)?;
    parts.extend(packages(workspace, licences)?);
    Ok(parts)
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    #[serde(default)]
    authors: Vec<String>,
    /// None for members of the workspace.
    source: Option<String>,
    manifest_path: PathBuf,
}

fn crates(workspace: &Workspace, licences: &Licences) -> Result<Vec<Part>> {
    let mut metadata = exec::cargo(&workspace.root);
    metadata.args(["metadata", "--format-version", "1", "--locked"]);
    let text = exec::output(&mut metadata)?;
    let metadata: Metadata = serde_json::from_str(&text).context("read cargo's metadata")?;
    let mut known: BTreeMap<(String, String), Package> = metadata
        .packages
        .into_iter()
        .map(|package| ((package.name.clone(), package.version.clone()), package))
        .collect();
    let mut parts = Vec::new();
    for name in names(workspace)? {
        let package = known
            .remove(&name)
            .with_context(|| format!("cargo does not know {} {}", name.0, name.1))?;
        if package.source.is_some() {
            parts.push(part(package, licences)?);
        }
    }
    Ok(parts)
}

/// Names and versions of all crates that the program is compiled from, in order.
fn names(workspace: &Workspace) -> Result<Vec<(String, String)>> {
    let mut names = Vec::new();
    for (package, target) in MADE_OF {
        let mut tree = exec::cargo(&workspace.root);
        tree.args(["tree", "--locked", "--package", package]);
        tree.args(["--edges", "normal", "--prefix", "none", "--format", "{p}"]);
        if let Some(target) = target {
            tree.args(["--target", target]);
        }
        names.extend(exec::output(&mut tree)?.lines().filter_map(named));
    }
    names.sort();
    names.dedup();
    Ok(names)
}

/// `NAME vVERSION` and whatever follows, as `cargo tree` writes a crate.
fn named(line: &str) -> Option<(String, String)> {
    let mut words = line.split_whitespace();
    let name = words.next()?;
    let version = words.next()?.strip_prefix('v')?;
    Some((name.to_owned(), version.to_owned()))
}

fn part(package: Package, licences: &Licences) -> Result<Part> {
    let Package {
        name,
        version,
        license,
        authors,
        manifest_path,
        ..
    } = package;
    let chosen = licences.chosen(&name, license.as_deref().unwrap_or_default())?;
    let folder = manifest_path
        .parent()
        .context("a manifest lies in a folder")?;
    let mut texts = texts_in(folder, &name)?;
    if texts.is_empty() {
        texts = standard_texts(&name, &chosen, &authors)?;
    }
    Ok(Part {
        source: format!("https://crates.io/crates/{name}/{version}"),
        name,
        version,
        licences: chosen,
        texts,
    })
}

/// The texts of a part whose source has none.
fn standard_texts(name: &str, licences: &[String], authors: &[String]) -> Result<Vec<Text>> {
    let authors: Vec<&str> = authors
        .iter()
        .map(|author| author.split('<').next().unwrap_or_default().trim())
        .collect();
    let holder = if authors.is_empty() {
        format!("the authors of {name}")
    } else {
        authors.join(", ")
    };
    let texts = licences.iter().map(|licence| {
        let text = match licence.as_str() {
            "Apache-2.0" => "The text is that of the file LICENSE beside this one.".to_owned(),
            "MIT" => MIT.replace("HOLDER", &holder),
            _ => anyhow::bail!("{name} has no text of {licence} in its source"),
        };
        Ok(Text {
            name: format!("{licence}, without a file in its source"),
            text,
        })
    });
    texts.collect()
}

const MIT: &str = r#"MIT License

Copyright (c) HOLDER

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
"#;

/// An entry of package-lock.json, as far as it matters here.
#[derive(Deserialize)]
struct Locked {
    #[serde(default)]
    version: String,
    #[serde(default)]
    license: String,
    #[serde(default)]
    dev: bool,
}

#[derive(Deserialize)]
struct PackageLock {
    packages: BTreeMap<String, Locked>,
}

/// Paths, versions and licences of the packages that go into the page, from the text of package-lock.json.
pub(crate) fn packages_of_page(lock: &str) -> Result<Vec<(String, String, String)>> {
    let lock: PackageLock = serde_json::from_str(lock).context("parse package-lock.json")?;
    let packages: Vec<_> = lock
        .packages
        .into_iter()
        // The first is the page itself.
        .filter(|(path, package)| !path.is_empty() && !package.dev)
        .map(|(path, package)| (path, package.version, package.license))
        .collect();
    ensure!(!packages.is_empty(), "package-lock.json names no package");
    Ok(packages)
}

fn packages(workspace: &Workspace, licences: &Licences) -> Result<Vec<Part>> {
    let web = workspace.web();
    let lock = web.join("package-lock.json");
    let lock = fs::read_to_string(&lock).with_context(|| format!("read {}", lock.display()))?;
    let mut parts = Vec::new();
    for (path, version, licence) in packages_of_page(&lock)? {
        let (_, name) = path
            .rsplit_once("node_modules/")
            .with_context(|| format!("{path} is not a package"))?;
        let texts = texts_in(&web.join(&path), name)?;
        ensure!(
            !texts.is_empty(),
            "{name} has no licence below {}: run `cargo xtask web`",
            web.join(&path).display()
        );
        parts.push(Part {
            name: name.to_owned(),
            licences: licences.chosen(name, &licence)?,
            source: format!("https://www.npmjs.com/package/{name}/v/{version}"),
            version,
            texts,
        });
    }
    Ok(parts)
}

/// Files with licences below a folder, in order.
fn texts_in(folder: &Path, part: &str) -> Result<Vec<Text>> {
    let mut found = Vec::new();
    if folder.is_dir() {
        collect(folder, folder, DEPTH, &mut found)?;
    }
    found.sort();
    let is_used = |name: &&String| !NOT_USED.contains(&(part, name.as_str()));
    let texts = found.iter().filter(is_used).map(|name| {
        let path = folder.join(name);
        let bytes = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        Ok(Text {
            name: name.clone(),
            text: String::from_utf8_lossy(&bytes).replace('\r', ""),
        })
    });
    texts.collect()
}

fn collect(root: &Path, folder: &Path, depth: usize, found: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        let entry = entry.with_context(|| format!("list {}", folder.display()))?;
        let kind = entry.file_type().context("look at a file")?;
        let (path, name) = (
            entry.path(),
            entry.file_name().to_string_lossy().to_lowercase(),
        );
        if kind.is_dir() {
            if depth > 0 && !name.starts_with('.') && !ELSEWHERE.contains(&name.as_str()) {
                collect(root, &path, depth - 1, found)?;
            }
            continue;
        }
        let is_licence = BEGINNINGS
            .iter()
            .any(|beginning| name.starts_with(beginning));
        let is_text = !["rs", "yml", "json", "toml", "html"]
            .iter()
            .any(|code| path.extension().is_some_and(|found| found == *code));
        let bytes = entry.metadata().context("look at a file")?.len();
        if kind.is_file() && is_licence && is_text && bytes <= MAX_BYTES {
            let relative = path.strip_prefix(root).unwrap_or(&path);
            found.push(relative.to_string_lossy().into_owned());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_of_a_tree_are_read() {
        let version = |line| named(line).map(|(name, version)| format!("{name}={version}"));
        assert_eq!(version("aya v0.14.0").as_deref(), Some("aya=0.14.0"));
        assert_eq!(
            version("serde_derive v1.0.0 (proc-macro) (*)").as_deref(),
            Some("serde_derive=1.0.0")
        );
        assert_eq!(
            version("profiler-common v0.1.0 (/w/profiler-common)").as_deref(),
            Some("profiler-common=0.1.0")
        );
        assert_eq!(version(""), None);
    }

    #[test]
    fn licences_are_found_with_those_of_c_libraries_and_without_tests() {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("LICENSE-MIT", "m\r\n"),
            ("zstd/LICENSE", "z"),
            ("zstd/COPYING", "g"),
            ("tests/LICENSE", "t"),
            ("src/license.rs", "r"),
            ("README.md", "x"),
        ] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let names = |part| -> Vec<String> {
            let texts = texts_in(folder.path(), part).unwrap();
            texts
                .into_iter()
                .map(|text| text.name + &text.text)
                .collect()
        };
        assert_eq!(
            names("other"),
            ["LICENSE-MITm\n", "zstd/COPYINGg", "zstd/LICENSEz"]
        );
        assert_eq!(names("zstd-sys"), ["LICENSE-MITm\n", "zstd/LICENSEz"]);
    }

    #[test]
    fn a_part_without_a_text_gets_that_of_its_licence_or_is_an_error() {
        let licences = |names: &[&str]| {
            names
                .iter()
                .map(|&name| name.to_owned())
                .collect::<Vec<_>>()
        };
        let authors = ["A <a@example.org>".to_owned(), "B".to_owned()];
        let texts = standard_texts("x", &licences(&["MIT"]), &authors).unwrap();
        assert!(
            texts[0].text.contains("Copyright (c) A, B\n"),
            "{}",
            texts[0].text
        );
        let texts = standard_texts("x", &licences(&["MIT"]), &[]).unwrap();
        assert!(
            texts[0].text.contains("the authors of x"),
            "{}",
            texts[0].text
        );
        assert!(standard_texts("x", &licences(&["MIT", "MPL-2.0"]), &authors).is_err());
    }

    #[test]
    fn packages_that_only_build_the_page_are_left_out() {
        let lock = r#"{ "packages": {
            "": { "version": "0.1.0", "license": "Apache-2.0" },
            "node_modules/preact": { "version": "11.2.0", "license": "MIT" },
            "node_modules/vite": { "version": "8.3.8", "license": "MIT", "dev": true }
        } }"#;
        let found = packages_of_page(lock).unwrap();
        let expected = ["node_modules/preact", "11.2.0", "MIT"].map(str::to_owned);
        assert_eq!(found, [expected.into()]);
        assert!(packages_of_page("{\"packages\": {}}").is_err());
    }
}
