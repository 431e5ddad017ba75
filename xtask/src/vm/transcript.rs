//! What a machine reports: sections with an exit status each.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail, ensure};

const BEGIN: &str = "@@@ begin ";
const END: &str = "@@@ end ";

/// The sections by name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Transcript {
    sections: BTreeMap<String, Section>,
}

/// Standard output and exit status of one command.
#[derive(Debug, PartialEq, Eq)]
struct Section {
    status: i32,
    output: String,
}

impl Transcript {
    /// A section that does not end is an error: the machine died in it.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut transcript = Self::default();
        let mut open: Option<(String, String)> = None;
        for line in text.lines().map(|line| line.trim_end_matches('\r')) {
            if let Some(name) = line.strip_prefix(BEGIN) {
                ensure!(open.is_none(), "section {name} begins inside another");
                open = Some((name.to_owned(), String::new()));
            } else if let Some(end) = line.strip_prefix(END) {
                let (name, output) = open
                    .take()
                    .with_context(|| format!("{end:?} ends without a beginning"))?;
                let status = end
                    .strip_prefix(&name)
                    .and_then(|status| status.trim().parse().ok())
                    .with_context(|| format!("{end:?} ends section {name}"))?;
                transcript.sections.insert(name, Section { status, output });
            } else if let Some((_, output)) = &mut open {
                output.push_str(line);
                output.push('\n');
            }
        }
        if let Some((name, _)) = open {
            bail!("section {name} does not end");
        }
        ensure!(!transcript.sections.is_empty(), "nothing was reported");
        Ok(transcript)
    }

    /// The output of a command that ended with status 0.
    pub(super) fn succeeded(&self, name: &str) -> Result<&str> {
        let section = self.section(name)?;
        ensure!(
            section.status == 0,
            "exit status {}: {}",
            section.status,
            section.output.trim()
        );
        Ok(&section.output)
    }

    /// The output of a command, whatever its status.
    pub(super) fn output(&self, name: &str) -> Result<&str> {
        Ok(&self.section(name)?.output)
    }

    fn section(&self, name: &str) -> Result<&Section> {
        self.sections
            .get(name)
            .with_context(|| format!("the machine did not report {name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_keep_output_and_status() {
        let text = "noise\r\n@@@ begin kernel\r\n6.1.0\r\n\r\n@@@ end kernel 0\r\n@@@ begin btf\n\n@@@ end btf 1\n";
        let transcript = Transcript::parse(text).unwrap();
        assert_eq!(transcript.succeeded("kernel").unwrap().trim(), "6.1.0");
        assert!(transcript.succeeded("btf").is_err());
        assert_eq!(transcript.output("btf").unwrap().trim(), "");
        assert!(transcript.output("doctor").is_err());
    }

    #[test]
    fn a_machine_that_died_is_an_error() {
        for text in [
            "",
            "@@@ begin a\n",
            "@@@ end a 0\n",
            "@@@ begin a\n@@@ begin b\n",
            "@@@ begin a\n@@@ end b 0\n",
        ] {
            assert!(Transcript::parse(text).is_err(), "{text:?}");
        }
    }
}
