use std::process::Command;

use rustls::{
    ClientConfig,
    pki_types::ServerName,
    version::{TLS12, TLS13},
};
use tokio::io::duplex;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::*;

/// An authority with certificates that it has signed, and another one.
struct Certificates {
    folder: tempfile::TempDir,
}

impl Certificates {
    fn make() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let made = Command::new("sh")
            .args(["-e", "-c", MAKE])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&made.stderr);
        assert!(
            made.status.success(),
            "openssl is needed (apt-get install openssl): {said}"
        );
        Self { folder }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn config(&self) -> MutualTlsConfig {
        MutualTlsConfig {
            server: TlsConfig {
                cert: self.file("server.pem"),
                key: self.file("server.key"),
            },
            client_ca: self.file("ca.pem"),
        }
    }

    /// A client with the certificate of that name.
    fn client(
        &self,
        version: &'static rustls::SupportedProtocolVersion,
        name: Option<&str>,
    ) -> ClientConfig {
        let mut trusted = RootCertStore::empty();
        trusted
            .add(CertificateDer::from_pem_file(self.file("ca.pem")).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(trusted);
        let mut client = match name {
            None => client.with_no_client_auth(),
            Some(name) => {
                let chain = CertificateDer::from_pem_file(self.file(&format!("{name}.pem")));
                let key = PrivateKeyDer::from_pem_file(self.file(&format!("{name}.key")));
                client
                    .with_client_auth_cert(vec![chain.unwrap()], key.unwrap())
                    .unwrap()
            }
        };
        client.alpn_protocols = vec![b"h2".to_vec()];
        client
    }
}

/// Certificates NAME.pem with keys NAME.key.
const MAKE: &str = r#"
key="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
printf 'subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n' > names
for ca in ca other; do
    openssl req -x509 $key -days 2 -subj /CN=$ca -keyout $ca.key -out $ca.pem
done
sign() {
    openssl req -new $key -subj /CN=$1 -keyout $1.key -out $1.csr
    openssl x509 -req -in $1.csr -CA $2.pem -CAkey $2.key -CAcreateserial -days 2 -extfile names -out $1.pem
}
sign server ca
sign client ca
sign stranger other
"#;

/// What the server has agreed on with the client, or why it did not let it in.
async fn handshake(server: Arc<ServerConfig>, client: ClientConfig) -> Result<Vec<u8>, String> {
    let (near, far) = duplex(1 << 16);
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let asks = TlsConnector::from(Arc::new(client)).connect(name, near);
    let (_, accepted) = tokio::join!(asks, TlsAcceptor::from(server).accept(far));
    let stream = accepted.map_err(|error| error.to_string())?;
    Ok(stream
        .get_ref()
        .1
        .alpn_protocol()
        .unwrap_or_default()
        .to_vec())
}

#[tokio::test(flavor = "multi_thread")]
async fn only_clients_with_a_certificate_of_the_authority_are_let_in() {
    let made = Certificates::make();
    let server = load_mutual(&made.config()).unwrap();
    for version in [&TLS12, &TLS13] {
        let ask = |name| handshake(Arc::clone(&server), made.client(version, name));
        assert_eq!(ask(Some("client")).await, Ok(b"h2".to_vec()), "{version:?}");
        for (name, expected) in [
            (None, "peer sent no certificates"),
            (Some("stranger"), "UnknownIssuer"),
        ] {
            let refused = ask(name).await.unwrap_err();
            assert!(
                refused.contains(expected),
                "{version:?} {name:?}: {refused}"
            );
        }
    }
}

#[test]
fn errors_of_the_authority_name_the_file_and_the_fault() {
    let made = Certificates::make();
    let check = |file: PathBuf, expected: &str| {
        let config = MutualTlsConfig {
            client_ca: file.clone(),
            ..made.config()
        };
        let error = load_mutual(&config).unwrap_err().to_string();
        let expected = expected.replace("FILE", file.to_str().unwrap());
        assert!(error.starts_with(&expected), "{error}");
    };
    check(
        made.file("none.pem"),
        "read TLS client CA FILE: No such file or directory",
    );
    check(
        made.file("server.key"),
        "TLS client CA FILE holds no certificate: give a PEM file with",
    );
    std::fs::write(
        made.file("broken.pem"),
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    )
    .unwrap();
    check(
        made.file("broken.pem"),
        "TLS client CA FILE cannot be used: ",
    );
}
