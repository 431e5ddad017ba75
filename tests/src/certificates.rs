//! Certificates that tests make: an authority, and what it signs.

use anyhow::{Context as _, Result};
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

/// An authority that is made anew for each test.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    pub(crate) fn new() -> Result<Self> {
        let key = KeyPair::generate().context("make the authority's key")?;
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let certificate = authority.self_signed(&key).context("sign the authority")?;
        Ok(Self {
            issuer: Issuer::new(authority, key),
            pem: certificate.pem(),
        })
    }

    /// Its own certificate.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// A certificate of these names and uses, and its key, as PEM.
    pub(crate) fn sign(
        &self,
        names: Vec<SanType>,
        uses: Vec<ExtendedKeyUsagePurpose>,
    ) -> Result<(String, String)> {
        let key = KeyPair::generate().context("make a key")?;
        let mut leaf = CertificateParams::default();
        leaf.subject_alt_names = names;
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        leaf.extended_key_usages = uses;
        let certificate = leaf
            .signed_by(&key, &self.issuer)
            .context("sign a certificate")?;
        Ok((certificate.pem(), key.serialize_pem()))
    }
}
