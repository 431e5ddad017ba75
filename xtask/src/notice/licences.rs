//! Which licences may be used, from deny.toml, and which of several a part is used under.

use std::fs;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use crate::workspace::Workspace;

/// Licences that ask for more than their text to be handed on, and how that is done here.
const TERMS: [(&str, &str); 3] = [
    (
        "LGPL-2.1-or-later",
        "Compiled into a static program. Whoever has that may put a changed copy of this library in its place: all sources are \
         public, `[patch.crates-io]` in Cargo.toml takes the copy, and `cargo xtask dist` links the program anew.",
    ),
    (
        "CDDL-1.0",
        "Used unchanged. The licence is that of its own files alone, whose source is public.",
    ),
    (
        "MPL-2.0",
        "Used unchanged. The licence is that of its own files alone, whose source is public.",
    ),
];

/// The part of deny.toml that is read here; cargo-deny reads all of it.
#[derive(Deserialize)]
struct File {
    licenses: Licences,
}

/// Licences for every part, the preferred one first, and some for one part alone.
#[derive(Deserialize)]
pub(crate) struct Licences {
    allow: Vec<String>,
    exceptions: Vec<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: Vec<String>,
}

impl Licences {
    pub(crate) fn read(workspace: &Workspace) -> Result<Self> {
        let path = workspace.root.join("deny.toml");
        let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        Self::parse(&text)
    }

    pub(crate) fn parse(text: &str) -> Result<Self> {
        let file: File = toml::from_str(text).context("parse the licences of deny.toml")?;
        for exception in &file.licenses.exceptions {
            for licence in &exception.allow {
                ensure!(
                    terms(licence).is_some(),
                    "{}: what {licence} asks for is not written down: add it to TERMS in \
                     xtask/src/notice/licences.rs",
                    exception.name
                );
            }
        }
        Ok(file.licenses)
    }

    /// The licences that a part is used under: of each group of alternatives the first that is allowed. Groups are what
    /// lies between ` AND `, which is stricter than SPDX for `A OR B AND C` and the same for all expressions in use.
    pub(crate) fn chosen(&self, name: &str, expression: &str) -> Result<Vec<String>> {
        let plain = expression.replace(" / ", " OR ").replace('/', " OR ");
        let exception = self
            .exceptions
            .iter()
            .find(|exception| exception.name == name);
        let own = exception.map_or(&[][..], |exception| exception.allow.as_slice());
        let mut chosen = Vec::new();
        for group in plain.split(" AND ") {
            let offered: Vec<&str> = group
                .split(" OR ")
                .map(|licence| licence.trim_matches([' ', '(', ')']))
                .collect();
            let mut allowed = self.allow.iter().chain(own);
            let Some(licence) = allowed.find(|licence| offered.contains(&licence.as_str())) else {
                bail!(
                    "{name}: the licence {expression:?} is not allowed: see [licenses] in deny.toml"
                );
            };
            chosen.push(licence.clone());
        }
        Ok(chosen)
    }
}

/// How the terms of a licence are kept that asks for more than its text to be handed on.
pub(super) fn terms(licence: &str) -> Option<&'static str> {
    let found = TERMS.iter().find(|(known, _)| *known == licence);
    found.map(|(_, terms)| *terms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn licences() -> Licences {
        let text = r#"
[licenses]
allow = ["Apache-2.0", "MIT", "Unicode-3.0"]
exceptions = [{ crate = "c", allow = ["LGPL-2.1-or-later"] }]
"#;
        Licences::parse(text).unwrap()
    }

    #[test]
    fn the_preferred_of_the_alternatives_is_used() {
        for (name, expression, expected) in [
            ("a", "MIT", "MIT"),
            ("a", "MIT OR Apache-2.0", "Apache-2.0"),
            ("a", "MIT OR GPL-3.0", "MIT"),
            ("a", "MIT/Apache-2.0", "Apache-2.0"),
            ("a", "Apache-2.0 / MIT", "Apache-2.0"),
            ("a", "(MIT OR ISC) AND Unicode-3.0", "MIT, Unicode-3.0"),
            ("c", "LGPL-2.1-or-later", "LGPL-2.1-or-later"),
        ] {
            let chosen = licences().chosen(name, expression).unwrap();
            assert_eq!(chosen.join(", "), expected, "{expression}");
        }
    }

    #[test]
    fn an_exception_whose_terms_nobody_has_read_is_refused() {
        let text = "[licenses]\nallow = []\nexceptions = [{ crate = \"c\", allow = [\"GPL-3.0-only\"] }]\n";
        let error = Licences::parse(text).err().unwrap().to_string();
        assert!(error.contains("c: what GPL-3.0-only asks for"), "{error}");
    }

    #[test]
    fn other_licences_are_refused() {
        for (name, expression) in [
            ("a", ""),
            ("a", "GPL-3.0-only"),
            ("a", "MIT AND GPL-3.0-only"),
            ("a", "Apache-2.0 WITH LLVM-exception"),
            ("a", "LGPL-2.1-or-later"),
        ] {
            assert!(licences().chosen(name, expression).is_err(), "{expression}");
        }
    }
}
