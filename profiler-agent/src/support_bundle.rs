//! What the agent knows about itself as one archive, for a report about it. The caller says what goes in; this
//! file sees to it that no secret does.

use std::io;

use flate2::{Compression, write::GzEncoder};

/// Stands where a secret was.
const MASK: &str = "***";

/// One file of the archive.
#[derive(Clone, Debug)]
pub(crate) struct BundleFile {
    pub(crate) name: &'static str,
    pub(crate) content: String,
}

/// Text for the reader of an archive; the first file in it.
const README: &str = "\
What profiler-agent knows about itself. Made by GET /api/v1/support-bundle or `profiler-agent support-bundle`.

meta.json      version, machine, limits
probes.json    what each probe can do, and why not
features.json  what this kernel and these privileges allow
kernel.json    programs and maps in the kernel
self.json      the agent's own cost, and what it has lost
config.toml    the configuration in force; secrets of URLs are masked, files are named and not included
tasks.json     tasks with their targets, states, losses and remarks; no profiles
log.txt        the last lines of the log

Names of processes, containers and cgroups are in it, as targets of tasks and in the log. Stacks, command lines,
payload of connections, and the token are not.
";

/// The archive, compressed. Each of `secrets` is masked wherever it stands.
pub(crate) fn archive(
    folder: &str,
    files: &[BundleFile],
    secrets: &[&str],
    now_s: u64,
) -> io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    let readme = BundleFile {
        name: "README.txt",
        content: README.to_owned(),
    };
    for BundleFile { name, content } in std::iter::once(&readme).chain(files) {
        let text = without(content, secrets);
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(now_s);
        header.set_entry_type(tar::EntryType::Regular);
        archive.append_data(&mut header, format!("{folder}/{name}"), text.as_bytes())?;
    }
    archive.into_inner()?.finish()
}

fn without(text: &str, secrets: &[&str]) -> String {
    secrets
        .iter()
        .filter(|secret| !secret.is_empty())
        .fold(text.to_owned(), |text, secret| text.replace(secret, MASK))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn files_are_read_back_and_secrets_are_masked() {
        let file = BundleFile {
            name: "log.txt",
            content: "token abc123 was refused\n".to_owned(),
        };
        let bytes = archive("bundle", &[file], &["abc123", ""], 1_700_000_000).unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes.as_slice()));
        let mut found = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let name = entry.path().unwrap().to_string_lossy().into_owned();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            found.push((name, text));
        }
        assert_eq!(found[0].0, "bundle/README.txt");
        assert_eq!(
            found[1],
            ("bundle/log.txt".into(), "token *** was refused\n".into())
        );
    }
}
