//! The authority and the certificate of the API server, and the key that signs tokens of service accounts.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr},
    path::Path,
};

use anyhow::{Context as _, Result};
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

pub(super) const AUTHORITY: &str = "ca.crt";
pub(super) const SERVER: &str = "server.crt";
pub(super) const SERVER_KEY: &str = "server.key";
/// The public half; the API server does not find it in the other file.
pub(super) const ACCOUNT: &str = "accounts.pub";
pub(super) const ACCOUNT_KEY: &str = "accounts.key";

/// Writes all of them into `folder`; returns the authority as PEM.
pub(super) fn write(folder: &Path) -> Result<String> {
    let authority_key = KeyPair::generate().context("make the authority's key")?;
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = authority
        .self_signed(&authority_key)
        .context("sign the authority")?;
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate().context("make the server's key")?;
    let mut server = CertificateParams::default();
    let name = "kubernetes.default.svc"
        .try_into()
        .context("encode a name")?;
    server.subject_alt_names = vec![
        SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        SanType::DnsName(name),
    ];
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let signed = server
        .signed_by(&key, &issuer)
        .context("sign the server's certificate")?;
    let accounts = KeyPair::generate().context("make the key of service accounts")?;
    for (name, text) in [
        (AUTHORITY, certificate.pem()),
        (SERVER, signed.pem()),
        (SERVER_KEY, key.serialize_pem()),
        (ACCOUNT, accounts.public_key_pem()),
        (ACCOUNT_KEY, accounts.serialize_pem()),
    ] {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(certificate.pem())
}
