//! What the workspace must not become: the description that cargo gives of it, with one thing wrong in each.

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::deny::Deny;

/// A crate of Cargo.lock that is changed, and a version of it that the snapshot lists.
const SLAB: &str = "slab";
const VULNERABLE_SLAB: &str = "0.4.10";
const SLAB_ADVISORY: &str = "RUSTSEC-2025-0047";
/// A crate of Cargo.lock that much uses, and another version that would do for those.
const ITOA: &str = "itoa";
const DUPLICATE_ITOA: &str = "1.0.17";

/// One thing wrong.
pub(super) struct Case {
    what: &'static str,
    change: fn(&mut Value) -> Result<()>,
    /// cargo-deny's word for it.
    code: &'static str,
    /// What it must name.
    names: &'static str,
}

pub(super) const CASES: &[Case] = &[
    Case {
        what: "a version with a known weakness",
        change: |metadata| change_version(metadata, SLAB, VULNERABLE_SLAB),
        code: "vulnerability",
        names: SLAB_ADVISORY,
    },
    Case {
        what: "a licence that is not listed",
        change: |metadata| {
            package(metadata, ITOA)?["license"] = "GPL-3.0-only".into();
            Ok(())
        },
        code: "rejected",
        names: "GPL-3.0-only",
    },
    Case {
        what: "a source that is not a registry",
        change: |metadata| {
            let place = "git+https://github.com/dtolnay/itoa?branch=master#0123456789012345678901234567890123456789";
            package(metadata, ITOA)?["source"] = place.into();
            let old = id(package(metadata, ITOA)?)?;
            let version = package(metadata, ITOA)?["version"].clone();
            let version = version.as_str().context("a version")?;
            replace(metadata, &old, &format!("{place}#{ITOA}@{version}"))
        },
        code: "source-not-allowed",
        names: ITOA,
    },
    Case {
        what: "a second version of a crate",
        change: add_duplicate,
        code: "duplicate",
        names: ITOA,
    },
    Case {
        what: "a second crate that speaks to the kernel",
        change: use_aya_in_analysis,
        code: "banned",
        names: "aya",
    },
];

/// Whether cargo-deny refuses a case, for what is wrong in it.
pub(super) fn check(deny: &Deny<'_>, case: &Case) -> Result<String> {
    let mut metadata = deny.metadata.clone();
    (case.change)(&mut metadata).with_context(|| case.what.to_owned())?;
    let found = deny.check(&metadata)?;
    ensure!(
        found
            .iter()
            .any(|finding| finding.code == case.code && finding.text.contains(case.names)),
        "{}: cargo-deny does not refuse it as `{}` of {}, but says {found:?}",
        case.what,
        case.code,
        case.names
    );
    Ok(format!("{} is refused", case.what))
}

fn package<'a>(metadata: &'a mut Value, name: &str) -> Result<&'a mut Value> {
    let packages = metadata["packages"].as_array_mut().context("packages")?;
    let mut found = packages
        .iter_mut()
        .filter(|package| package["name"] == name);
    found
        .next()
        .with_context(|| format!("{name} is not in Cargo.lock any more: take another crate"))
}

fn id(package: &Value) -> Result<String> {
    let id = package["id"].as_str().context("a package has an id")?;
    Ok(id.to_owned())
}

/// Puts another id wherever one stands.
fn replace(metadata: &mut Value, old: &str, new: &str) -> Result<()> {
    let (old, new) = (Value::from(old).to_string(), Value::from(new).to_string());
    let text = metadata.to_string().replace(&old, &new);
    *metadata = serde_json::from_str(&text).context("replace an id")?;
    Ok(())
}

fn change_version(metadata: &mut Value, name: &str, version: &str) -> Result<()> {
    let package = package(metadata, name)?;
    let old = id(package)?;
    package["version"] = version.into();
    let (registry, _) = old.rsplit_once('@').context("an id ends in a version")?;
    let new = format!("{registry}@{version}");
    replace(metadata, &old, &new)
}

/// A crate in another version beside its own, for one of those that use it.
fn add_duplicate(metadata: &mut Value) -> Result<()> {
    let mut copy = package(metadata, ITOA)?.clone();
    let old = id(&copy)?;
    let (registry, _) = old.rsplit_once('@').context("an id ends in a version")?;
    let new = format!("{registry}@{DUPLICATE_ITOA}");
    copy["id"] = new.as_str().into();
    copy["version"] = DUPLICATE_ITOA.into();
    let packages = metadata["packages"].as_array_mut().context("packages")?;
    packages.push(copy);
    let nodes = metadata["resolve"]["nodes"]
        .as_array_mut()
        .context("nodes")?;
    let own = nodes.iter().find(|node| node["id"] == *old);
    let mut copy = own.context("the crate has a node")?.clone();
    copy["id"] = new.as_str().into();
    // One of those that use it uses the other one from now on.
    let users = nodes
        .iter_mut()
        .filter_map(|node| node["deps"].as_array_mut());
    let mut uses = users.flatten().filter(|used| used["pkg"] == *old);
    let Some(used) = uses.next() else {
        bail!("nothing uses {ITOA}");
    };
    used["pkg"] = new.into();
    nodes.push(copy);
    Ok(())
}

/// Gives a pure stage a dependency of the recorder: in its manifest, and in what was made of it.
fn use_aya_in_analysis(metadata: &mut Value) -> Result<()> {
    const FROM: &str = "profiler-recorder";
    const TO: &str = "profiler-analysis";
    let of_aya = |list: &Value| {
        let entries = list.as_array().into_iter().flatten();
        let mut found = entries.filter(|entry| entry["name"] == "aya");
        found
            .next()
            .cloned()
            .with_context(|| format!("{FROM} uses aya"))
    };
    let add = |list: &mut Value, entry: Value| -> Result<()> {
        list.as_array_mut().context("a list")?.push(entry);
        Ok(())
    };
    let required = of_aya(&package(metadata, FROM)?["dependencies"])?;
    let (from, to) = (id(package(metadata, FROM)?)?, id(package(metadata, TO)?)?);
    add(&mut package(metadata, TO)?["dependencies"], required)?;
    let used = of_aya(&node(metadata, &from)?["deps"])?;
    let node = node(metadata, &to)?;
    add(&mut node["dependencies"], used["pkg"].clone())?;
    add(&mut node["deps"], used)
}

/// What was made of the manifest of a package.
fn node<'a>(metadata: &'a mut Value, id: &str) -> Result<&'a mut Value> {
    let nodes = metadata["resolve"]["nodes"].as_array_mut();
    let mut found = nodes.into_iter().flatten();
    found
        .find(|node| node["id"] == *id)
        .with_context(|| format!("{id} has no node"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metadata() -> Value {
        let id = |name: &str| {
            format!("registry+https://github.com/rust-lang/crates.io-index#{name}@1.0.0")
        };
        let package = |name: &str, needed: &[&str]| {
            let needed: Vec<Value> = needed.iter().map(|name| json!({ "name": name })).collect();
            json!({
                "name": name, "version": "1.0.0", "id": id(name), "license": "MIT", "dependencies": needed,
            })
        };
        let node = |name: &str, needed: &[&str]| {
            let ids: Vec<String> = needed.iter().map(|name| id(name)).collect();
            let used = needed
                .iter()
                .map(|name| json!({ "name": name, "pkg": id(name) }));
            json!({ "id": id(name), "dependencies": ids, "deps": used.collect::<Vec<_>>() })
        };
        let all: [(&str, &[&str]); 5] = [
            (ITOA, &[]),
            (SLAB, &[ITOA]),
            ("aya", &[]),
            ("profiler-recorder", &["aya"]),
            ("profiler-analysis", &[]),
        ];
        json!({
            "packages": all.map(|(name, needed)| package(name, needed)),
            "resolve": { "nodes": all.map(|(name, needed)| node(name, needed)) },
        })
    }

    #[test]
    fn every_case_changes_the_description_and_keeps_it_whole() {
        for case in CASES {
            let mut changed = metadata();
            (case.change)(&mut changed).unwrap();
            assert_ne!(changed, metadata(), "{}", case.what);
            let ids: Vec<&Value> = changed["packages"]
                .as_array()
                .unwrap()
                .iter()
                .map(|package| &package["id"])
                .collect();
            for node in changed["resolve"]["nodes"].as_array().unwrap() {
                assert!(ids.contains(&&node["id"]), "{}: {node}", case.what);
                for used in node["deps"].as_array().unwrap() {
                    assert!(ids.contains(&&used["pkg"]), "{}: {used}", case.what);
                }
            }
        }
    }

    #[test]
    fn a_crate_that_is_gone_is_said() {
        let error = package(&mut metadata(), "gone").unwrap_err().to_string();
        assert!(error.contains("take another crate"), "{error}");
    }
}
