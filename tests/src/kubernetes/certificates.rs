//! The authority and the certificate of the API server, and the key that signs tokens of service accounts.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr},
    path::Path,
};

use anyhow::{Context as _, Result};
use rcgen::{ExtendedKeyUsagePurpose, KeyPair, SanType};

use crate::certificates::Authority;

pub(super) const AUTHORITY: &str = "ca.crt";
pub(super) const SERVER: &str = "server.crt";
pub(super) const SERVER_KEY: &str = "server.key";
/// The public half; the API server does not find it in the other file.
pub(super) const ACCOUNT: &str = "accounts.pub";
pub(super) const ACCOUNT_KEY: &str = "accounts.key";

/// Writes all of them into `folder`; returns the authority as PEM.
pub(super) fn write(folder: &Path) -> Result<String> {
    let authority = Authority::new()?;
    let name = "kubernetes.default.svc"
        .try_into()
        .context("encode a name")?;
    let names = vec![
        SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        SanType::DnsName(name),
    ];
    let (server, key) = authority.sign(names, vec![ExtendedKeyUsagePurpose::ServerAuth])?;
    let accounts = KeyPair::generate().context("make the key of service accounts")?;
    for (name, text) in [
        (AUTHORITY, authority.pem().to_owned()),
        (SERVER, server),
        (SERVER_KEY, key),
        (ACCOUNT, accounts.public_key_pem()),
        (ACCOUNT_KEY, accounts.serialize_pem()),
    ] {
        let path = folder.join(name);
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
    }
    Ok(authority.pem().to_owned())
}
