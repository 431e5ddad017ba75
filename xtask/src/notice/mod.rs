//! Licences of what the shipped program consists of: NOTICE, which is committed, and THIRD-PARTY-LICENSES, which is made
//! with each program.

mod licences;
mod parts;

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context as _, Result, ensure};

use licences::{Licences, terms};
use parts::Part;
pub(crate) use parts::packages_of_page;

use crate::{stamp, workspace::Workspace};

pub(crate) const NOTICE: &str = "NOTICE";
pub(crate) const TEXTS: &str = "THIRD-PARTY-LICENSES";
const LICENCE: &str = "LICENSE";
/// The files that go with the program.
pub(crate) const FILES: [&str; 3] = [LICENCE, NOTICE, TEXTS];

/// The licence of the program's own code.
const OWN: &str = "Apache-2.0";
const WIDTH: usize = 112;

/// What both files say.
pub(crate) struct Notice {
    pub(crate) list: String,
    pub(crate) texts: String,
    /// All licences as one expression of SPDX, as the image names them.
    pub(crate) expression: String,
}

/// `cargo xtask notice`: writes NOTICE into the checkout.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    crate::web::install(workspace)?;
    let made = make(workspace)?;
    let path = workspace.root.join(NOTICE);
    fs::write(&path, made.list).with_context(|| format!("write {}", path.display()))?;
    println!("{} is written; the image's label is", path.display());
    println!(
        "  org.opencontainers.image.licenses=\"{}\"",
        made.expression
    );
    Ok(())
}

/// Writes what goes with the program into its folder.
pub(crate) fn write(workspace: &Workspace, folder: &Path) -> Result<()> {
    let made = make(workspace)?;
    let licence = workspace.root.join(LICENCE);
    let licence =
        fs::read_to_string(&licence).with_context(|| format!("read {}", licence.display()))?;
    for (name, text) in FILES.into_iter().zip([licence, made.list, made.texts]) {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(())
}

pub(crate) fn make(workspace: &Workspace) -> Result<Notice> {
    let licences = Licences::read(workspace)?;
    let parts = parts::read(workspace, &licences)?;
    ensure!(!parts.is_empty(), "the program consists of nothing");
    Ok(Notice {
        list: notice(&parts),
        texts: texts(&parts),
        expression: expression(&parts),
    })
}

fn expression(parts: &[Part]) -> String {
    let all: BTreeSet<&str> = parts
        .iter()
        .flat_map(|part| part.licences.iter().map(String::as_str))
        .filter(|licence| *licence != OWN)
        .collect();
    [OWN]
        .into_iter()
        .chain(all)
        .collect::<Vec<_>>()
        .join(" AND ")
}

/// The file for people: what asks for more than its text to be handed on, then every part under its licence.
fn notice(parts: &[Part]) -> String {
    let mut text = vec![HEAD.to_owned()];
    for part in parts {
        let mut terms = part.licences.iter().filter_map(|licence| terms(licence));
        if let Some(terms) = terms.next() {
            text.push(format!("\n{part} ({})\n", part.licences.join(" AND ")));
            text.push(wrapped(&format!("{terms} Source: {}", part.source)));
        }
    }
    text.push(BELOW.to_owned());
    let mut groups: BTreeSet<&[String]> = BTreeSet::new();
    groups.extend(parts.iter().map(|part| part.licences.as_slice()));
    for group in groups {
        let members: Vec<String> = parts
            .iter()
            .filter(|part| part.licences == *group)
            .map(ToString::to_string)
            .collect();
        text.push(format!("\n{}\n", group.join(" AND ")));
        text.push(wrapped(&members.join(", ")));
    }
    text.concat()
}

const HEAD: &str = "\
profiler-agent

The program's own code is licensed under the Apache License, Version 2.0: see LICENSE. The program contains third-party
software under the licences below. Their texts are in THIRD-PARTY-LICENSES, which lies beside the program.

This file is made by `cargo xtask notice` from Cargo.lock and web/package-lock.json; do not edit it.

Licences that ask for more than their text to be handed on
----------------------------------------------------------
";

const BELOW: &str = "
The program is linked statically
--------------------------------

  Rust's standard library (MIT OR Apache-2.0, Copyright (c) The Rust Project Contributors).
  The C library: musl (MIT, Copyright (c) 2005-2025 Rich Felker, et al.), or, where `profiler-agent --version` says
  x86_64-unknown-linux-gnu, the GNU C Library (LGPL-2.1-or-later), which can be replaced by building again.

All parts, by licence; where a part offers several, the one that is used
------------------------------------------------------------------------
";

/// Every text once, behind the parts that it was found in.
fn texts(parts: &[Part]) -> String {
    let head = "Licences of what profiler-agent consists of, from the sources of its parts.\n\n";
    let mut text = vec![head.to_owned()];
    for part in parts {
        text.push(format!("  {part}: {}\n", part.licences.join(" AND ")));
    }
    // In the order in which they are met first.
    let mut found: Vec<(String, &str, Vec<String>)> = Vec::new();
    for part in parts {
        for file in &part.texts {
            let words: Vec<&str> = file.text.split_whitespace().collect();
            let hash = stamp::text_hash(&words.join(" "));
            let place = format!("{part} ({})", file.name);
            match found.iter_mut().find(|(known, ..)| *known == hash) {
                Some((_, _, places)) => places.push(place),
                None => found.push((hash, &file.text, vec![place])),
            }
        }
    }
    for (_, content, places) in found {
        let rule = "=".repeat(WIDTH);
        text.push(format!(
            "\n{rule}\n{}{rule}\n\n",
            wrapped(&places.join(", "))
        ));
        text.push(format!("{}\n", content.trim_end()));
    }
    text.concat()
}

/// Words in lines of bounded length, each a little to the right.
fn wrapped(words: &str) -> String {
    let mut text = Vec::new();
    let mut line = String::from(" ");
    for word in words.split_whitespace() {
        if line.len() + 1 + word.len() > WIDTH && line.len() > 1 {
            text.push(format!("{line}\n"));
            " ".clone_into(&mut line);
        }
        line.push(' ');
        line.push_str(word);
    }
    text.push(format!("{line}\n"));
    text.concat()
}

#[cfg(test)]
mod tests {
    use super::{parts::Text, *};

    fn part(name: &str, licences: &[&str], texts: &[(&str, &str)]) -> Part {
        Part {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            licences: licences.iter().map(|&name| name.to_owned()).collect(),
            source: format!("https://crates.io/crates/{name}/1.0.0"),
            texts: texts
                .iter()
                .map(|&(name, text)| Text {
                    name: name.to_owned(),
                    text: text.to_owned(),
                })
                .collect(),
        }
    }

    #[test]
    fn a_text_stands_once_behind_all_that_have_it() {
        let parts = [
            part("a", &["MIT"], &[("LICENSE", "Permission\n is granted")]),
            part(
                "b",
                &["MIT"],
                &[("LICENSE-MIT", "Permission is\ngranted\n")],
            ),
            part("c", &["ISC"], &[("LICENSE", "Permission to use")]),
        ];
        let texts = texts(&parts);
        assert_eq!(texts.matches("granted").count(), 1, "{texts}");
        assert!(
            texts.contains("a 1.0.0 (LICENSE), b 1.0.0 (LICENSE-MIT)"),
            "{texts}"
        );
        assert!(texts.contains("  c 1.0.0: ISC\n"), "{texts}");
        assert_eq!(expression(&parts), "Apache-2.0 AND ISC AND MIT");
    }

    #[test]
    fn what_asks_for_more_is_named_with_its_version_and_source() {
        let parts = [
            part("a", &["MIT"], &[]),
            part("c", &["LGPL-2.1-or-later"], &[]),
        ];
        let notice = notice(&parts);
        assert!(
            notice.contains("\nc 1.0.0 (LGPL-2.1-or-later)\n  Compiled into a static program."),
            "{notice}"
        );
        assert!(
            notice.contains("https://crates.io/crates/c/1.0.0\n"),
            "{notice}"
        );
        assert!(notice.contains("\nMIT\n  a 1.0.0\n"), "{notice}");
    }

    #[test]
    fn lines_are_bounded_and_no_word_is_lost() {
        let words = ["word"; 100].join(" ");
        let text = wrapped(&words);
        assert!(text.lines().all(|line| line.len() <= WIDTH));
        assert_eq!(text.split_whitespace().count(), 100);
    }
}
