//! A real API server of Kubernetes with its store, on loopback: no scheduler, no controllers, no kubelet. What
//! these would do (bind pods, report their containers, remove them) the tests do themselves.

mod certificates;
pub mod client;
pub mod manifests;
pub mod objects;

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

pub use client::Client;

use crate::{
    cleanup::{Guard, scratch_directory},
    paths,
    peers::free_port,
    process::{Launch, Running},
    wait::wait_until,
};

const START_LIMIT: Duration = Duration::from_mins(1);
/// The token of the administrator. Only this API server takes it.
const ADMIN_TOKEN: &str = "administrator-of-this-test";
/// What service accounts get their tokens from.
const ISSUER: &str = "https://kubernetes.default.svc";
/// Both programs; they end when it is dropped.
#[derive(Debug)]
pub struct Cluster {
    // The API server ends before its store: fields drop in this order.
    api_server: Running,
    _etcd: Running,
    /// May do everything.
    pub admin: Client,
    pub address: SocketAddr,
    /// What signed the API server's certificate, as PEM.
    pub authority: String,
    store: SocketAddr,
    folder: PathBuf,
    _folder_guard: Guard,
}

impl Cluster {
    /// Starts both and returns when the API server is ready.
    pub fn start() -> Result<Self> {
        let (folder, folder_guard) = scratch_directory("kubernetes")?;
        let authority = certificates::write(&folder)?;
        let tokens = format!("{ADMIN_TOKEN},admin,admin,\"system:masters\"\n");
        write(&folder.join("tokens.csv"), &tokens)?;
        let [address, store, peers] = free_addresses()?;
        let etcd = start_etcd(&folder, store, peers)?;
        let api_server = start_api_server(&folder, address, store)?;
        let admin = Client::new(address, ADMIN_TOKEN, &authority)?;
        let mut cluster = Self {
            api_server,
            _etcd: etcd,
            admin,
            address,
            authority,
            store,
            folder,
            _folder_guard: folder_guard,
        };
        cluster.wait_until_ready()?;
        Ok(cluster)
    }

    /// Ends the API server and starts it again on the same data. It then knows nothing of changes before: whoever
    /// watches from an older version is told that this version is gone.
    pub fn restart(&mut self) -> Result<()> {
        self.stop_api_server()?;
        self.api_server = start_api_server(&self.folder, self.address, self.store)?;
        self.wait_until_ready()
    }

    /// Ends the API server; its address has no listener until [`Self::restart`].
    pub fn stop_api_server(&mut self) -> Result<()> {
        self.api_server.stop().map(drop)
    }

    /// A token as a pod of this service account gets it; valid for ten minutes, the shortest there is.
    pub fn token(&self, namespace: &str, account: &str) -> Result<String> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let request = json!({ "spec": { "expirationSeconds": 600 } });
        let answer = self.admin.post(&path, &request)?;
        let token = answer["status"]["token"].as_str();
        Ok(token
            .with_context(|| format!("no token in {answer}"))?
            .to_owned())
    }

    /// A client that may do what this service account may.
    pub fn client(&self, namespace: &str, account: &str) -> Result<Client> {
        let token = self.token(namespace, account)?;
        Client::new(self.address, &token, &self.authority)
    }

    /// Writes a kubeconfig with `token` that leads to `address`: the API server's, or that of a way to it.
    pub fn kubeconfig(&self, path: &Path, address: SocketAddr, token: &str) -> Result<()> {
        let authority = self.folder.join(certificates::AUTHORITY);
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "test", "cluster": {
                "server": format!("https://{address}"), "certificate-authority": authority,
            } }],
            "users": [{ "name": "test", "user": { "token": token } }],
            "contexts": [{ "name": "test", "context": { "cluster": "test", "user": "test" } }],
            "current-context": "test",
        });
        // All JSON is YAML.
        write(path, &format!("{config:#}\n"))?;
        rustix::fs::chmod(path, rustix::fs::Mode::from_raw_mode(0o600)).context("protect it")
    }

    /// Writes what the kubelet puts into a pod at /var/run/secrets/kubernetes.io/serviceaccount: token, authority and
    /// namespace.
    pub fn account_folder(&self, folder: &Path, namespace: &str, token: &str) -> Result<()> {
        fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
        write(&folder.join("token"), token)?;
        write(&folder.join("ca.crt"), &self.authority)?;
        write(&folder.join("namespace"), namespace)
    }

    /// What the API server has logged, for messages.
    pub fn log(&self) -> String {
        self.api_server.errors()
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let ready = wait_until("the API server is ready", START_LIMIT, || {
            !self.api_server.is_running() || self.admin.is_ready()
        });
        let log = self.log();
        let last: Vec<&str> = log.lines().rev().take(20).collect();
        ready.with_context(|| format!("the last of its log first: {last:#?}"))?;
        ensure!(
            self.api_server.is_running(),
            "the API server ended; the last of its log first: {last:#?}"
        );
        Ok(())
    }
}

fn start_etcd(folder: &Path, address: SocketAddr, peers: SocketAddr) -> Result<Running> {
    Launch::new(&program("etcd")?, "etcd", folder)
        .args([
            format!("--data-dir={}", folder.join("etcd").display()),
            format!("--listen-client-urls=http://{address}"),
            format!("--advertise-client-urls=http://{address}"),
            format!("--listen-peer-urls=http://{peers}"),
            format!("--initial-advertise-peer-urls=http://{peers}"),
            format!("--initial-cluster=default=http://{peers}"),
            // What is lost with the machine is lost with the test.
            "--unsafe-no-fsync".to_owned(),
        ])
        .start()
}

fn start_api_server(folder: &Path, address: SocketAddr, store: SocketAddr) -> Result<Running> {
    let file = |name: &str| folder.join(name).display().to_string();
    Launch::new(&program("kube-apiserver")?, "kube-apiserver", folder)
        .args([
            format!("--etcd-servers=http://{store}"),
            format!("--bind-address={}", address.ip()),
            format!("--secure-port={}", address.port()),
            format!("--tls-cert-file={}", file(certificates::SERVER)),
            format!("--tls-private-key-file={}", file(certificates::SERVER_KEY)),
            format!("--cert-dir={}", file("certificates")),
            format!("--token-auth-file={}", file("tokens.csv")),
            "--authorization-mode=RBAC".to_owned(),
            format!("--service-account-key-file={}", file(certificates::ACCOUNT)),
            format!(
                "--service-account-signing-key-file={}",
                file(certificates::ACCOUNT_KEY)
            ),
            format!("--service-account-issuer={ISSUER}"),
            "--service-cluster-ip-range=10.96.0.0/24".to_owned(),
            // It wants the accounts that a controller makes in every namespace.
            "--disable-admission-plugins=ServiceAccount".to_owned(),
        ])
        .start()
}

fn program(name: &str) -> Result<PathBuf> {
    let path = paths::tool("kubernetes-")?.join(name);
    ensure!(
        path.is_file(),
        "no {name} at {}: run this step by `cargo xtask test`",
        path.display()
    );
    Ok(path)
}

/// Unused addresses: neither program reports the port that it was given.
fn free_addresses<const N: usize>() -> Result<[SocketAddr; N]> {
    let mut addresses = [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)); N];
    for address in &mut addresses {
        address.set_port(free_port()?);
    }
    Ok(addresses)
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("write {}", path.display()))
}

/// The `items` of a list.
pub fn items(list: &Value) -> Result<&Vec<Value>> {
    list["items"]
        .as_array()
        .with_context(|| format!("no list: {list}"))
}
