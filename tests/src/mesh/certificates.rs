//! Certificates of the mesh: one authority and one identity for each pod, as SPIFFE URIs.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

/// Identity of a pod's service account.
pub fn identity(pod: &str) -> String {
    format!("spiffe://cluster.local/ns/demo/sa/{pod}")
}

/// Writes `ca.pem` and, for each pod, `POD.pem` and `POD.key` into `folder`.
pub fn write(folder: &Path) -> Result<()> {
    let authority_key = KeyPair::generate().context("make the authority's key")?;
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = authority
        .self_signed(&authority_key)
        .context("sign the authority")?;
    save(folder, "ca.pem", &certificate.pem())?;
    let issuer = Issuer::new(authority, authority_key);
    for pod in ["client", "server"] {
        let key = KeyPair::generate().context("make a pod's key")?;
        let mut leaf = CertificateParams::default();
        let uri = identity(pod)
            .as_str()
            .try_into()
            .context("encode identity")?;
        leaf.subject_alt_names = vec![SanType::URI(uri)];
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        leaf.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let certificate = leaf
            .signed_by(&key, &issuer)
            .context("sign a pod's certificate")?;
        save(folder, &format!("{pod}.pem"), &certificate.pem())?;
        save(folder, &format!("{pod}.key"), &key.serialize_pem())?;
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
