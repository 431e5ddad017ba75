//! Certificates of the mesh: one authority and one identity for each pod, as SPIFFE URIs.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use rcgen::{ExtendedKeyUsagePurpose, SanType};

use crate::certificates::Authority;

/// Identity of a pod's service account.
pub fn identity(pod: &str) -> String {
    format!("spiffe://cluster.local/ns/demo/sa/{pod}")
}

/// Writes `ca.pem` and, for each pod, `POD.pem` and `POD.key` into `folder`.
pub fn write(folder: &Path) -> Result<()> {
    let authority = Authority::new()?;
    save(folder, "ca.pem", authority.pem())?;
    for pod in ["client", "server"] {
        let uri = identity(pod)
            .as_str()
            .try_into()
            .context("encode identity")?;
        let uses = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let (certificate, key) = authority.sign(vec![SanType::URI(uri)], uses)?;
        save(folder, &format!("{pod}.pem"), &certificate)?;
        save(folder, &format!("{pod}.key"), &key)?;
    }
    Ok(())
}

fn save(folder: &Path, name: &str, text: &str) -> Result<()> {
    let path = folder.join(name);
    fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
    let user = Some(super::SIDECAR_USER);
    std::os::unix::fs::chown(&path, user, user).context("give it to the sidecar")?;
    rustix::fs::chmod(&path, rustix::fs::Mode::from_raw_mode(0o600)).context("protect it")
}
