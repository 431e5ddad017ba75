//! The manifests in deploy/, and what Helm makes of the chart, against the schemas of Kubernetes and of Compose,
//! without a cluster.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::{
    exec, pins, setup,
    stamp::{self, Stamp},
    test::Tally,
    workspace::Workspace,
};

/// The oldest that knows every field, one in wide use, and the newest that the validator knows.
const KUBERNETES: [&str; 3] = ["1.30", "1.34", "1.37"];

/// What `serve --privileges base` keeps (crates/sandbox/src/privileges.rs).
const BASE: &str =
    "BPF, PERFMON, SYS_PTRACE, NET_ADMIN, SYSLOG, CHECKPOINT_RESTORE, DAC_READ_SEARCH";

/// Fetches what the checks need.
pub(crate) fn prepare(workspace: &Workspace) -> Result<()> {
    Validators::ensure(workspace).map(drop)
}

/// Checks every manifest, and that the checks find what is wrong.
pub(crate) fn run(workspace: &Workspace, tally: &mut Tally) -> Result<()> {
    let validators = Validators::ensure(workspace)?;
    let deploy = workspace.root.join("deploy");
    for manifest in yaml_files(&deploy.join("kubernetes"))? {
        for version in KUBERNETES {
            tally.count(said(validators.kubernetes(version, &manifest)));
        }
    }
    let compose = deploy.join("compose.yaml");
    tally.count(said(validators.compose(&compose)));
    let all = format!("{BASE}, SYS_ADMIN");
    for (manifest, expected) in [
        ("kubernetes/daemonset.yaml", BASE),
        ("kubernetes/sidecar.yaml", BASE),
        ("compose.yaml", &all),
    ] {
        tally.count(said(adds(&deploy.join(manifest), expected)));
    }

    for name in ["base.yaml", "service.yaml"] {
        let file = deploy.join("kubernetes").join(name);
        tally.count(said(reaches(&file, &["API-SERVER-BLOCK"])));
    }

    let access_logs = deploy.join("kubernetes/access-logs.yaml");
    for (name, ports) in [
        ("base.yaml", &[][..]),
        ("service.yaml", &["7117"][..]),
        ("access-logs.yaml", &["7118"][..]),
    ] {
        let file = deploy.join("kubernetes").join(name);
        tally.count(said(lets_in(&file, ports)));
    }

    let scratch = workspace.target.join("manifests");
    fs::create_dir_all(&scratch).with_context(|| format!("create {}", scratch.display()))?;
    chart(workspace, &validators, &scratch, tally)?;
    let wrong = damaged(
        &deploy.join("kubernetes/daemonset.yaml"),
        "hostPID:",
        "hostPid:",
        &scratch,
    )?;
    tally.count(refused(
        "a field of no meaning",
        validators.kubernetes(KUBERNETES[1], &wrong),
    ));
    let ports = "      ports:\n        - port: 7118\n";
    let wrong = damaged(&access_logs, ports, "", &scratch)?;
    tally.count(refused("a rule for all ports", lets_in(&wrong, &["7118"])));
    let wrong = damaged(&access_logs, "    - from:\n", "    - other:\n", &scratch)?;
    tally.count(refused("a rule for all pods", lets_in(&wrong, &["7118"])));
    let wrong = damaged(&compose, "cap_add:", "cap_adds:", &scratch)?;
    tally.count(refused("a key of no meaning", validators.compose(&wrong)));
    ensure!(tally.failed == 0, "{} checks failed", tally.failed);
    Ok(())
}

/// Values with which the chart is rendered, and the capabilities that the profiler gets then.
const CHARTS: [(&str, &[&str], bool); 7] = [
    ("defaults", &[], false),
    ("sys-admin", &["privileges=sys-admin"], true),
    (
        "service",
        &[
            "service.enabled=true",
            "service.existingSecret=profiler-agent",
            "service.readOnlyToken=true",
        ],
        false,
    ),
    (
        "access-logs",
        &[
            "accessLogs.enabled=true",
            "accessLogs.existingSecret=profiler-agent-access-logs",
        ],
        false,
    ),
    (
        "access-logs-plaintext",
        &[
            "accessLogs.enabled=true",
            "accessLogs.plaintext=true",
            "accessLogs.allowedPods.security\\.istio\\.io/tlsMode=istio",
            "service.enabled=true",
            "service.existingSecret=profiler-agent",
        ],
        false,
    ),
    ("unnamed", &["kubernetes.enabled=false"], false),
    (
        "settings",
        &[
            "storage.hostPath=/var/lib/profiler-agent",
            "extraArgs={--allow-tls-capture,--max-tasks=10}",
            "image.tag=1.2.3",
            "podLabels.team=mesh",
            "podAnnotations.note=yes",
            "nodeSelector.mesh=yes",
            "priorityClassName=system-node-critical",
            "imagePullSecrets[0].name=registry",
        ],
        false,
    ),
];

/// Where the API server is said to be, without which names of pods cannot be had.
const API_SERVER: &str = "kubernetes.apiServer.cidrs={192.0.2.1/32,2001:db8::1/128}";
const API_SERVER_CIDRS: [&str; 2] = ["192.0.2.1/32", "2001:db8::1/128"];

/// Values that the chart must not take.
const WRONG_VALUES: [&str; 13] = [
    "kubernetes.apiServer.cidrs={192.0.2.1}",
    "kubernetes.apiServer.cidrs={kubernetes.default/32}",
    "kubernetes.enabled=maybe",
    "privileges=all",
    "service.enabled=true",
    "storage.hostPath=relative",
    "storage.hostPath=/",
    "extraArgs={--listen=0.0.0.0:7117}",
    "accessLogs.enabled=true",
    "accessLogs.enabled=true,accessLogs.existingSecret=tls,accessLogs.plaintext=true",
    "extraArgs={--access-logs-plaintext}",
    "podLabels.app\\.kubernetes\\.io/name=other",
    "colour=red",
];

/// How the chart is rendered. A Helm that is built like ours takes the cluster for an old one unless told.
const TEMPLATE: [&str; 6] = [
    "template",
    "mesh",
    "--namespace",
    "profiler",
    "--kube-version",
    "1.34.0",
];

/// Renders the chart in every way and checks what comes out.
fn chart(
    workspace: &Workspace,
    validators: &Validators,
    scratch: &Path,
    tally: &mut Tally,
) -> Result<()> {
    let helm = setup::helm_path(workspace);
    let chart = workspace.root.join("deploy/helm/profiler-agent");
    let command = |verb: &[&str], values: &[&str]| {
        let mut command = Command::new(&helm);
        command.args(verb).arg(&chart).args(["--set", API_SERVER]);
        for value in values {
            command.args(["--set", value]);
        }
        command
    };
    let lint = exec::output(&mut command(&["lint", "--strict", "--quiet"], &[]));
    tally.count(said(lint.map(|_| "helm lint --strict".to_owned())));
    for (name, values, is_admin) in CHARTS {
        let rendered = exec::output(&mut command(&TEMPLATE, values))?;
        let file = scratch.join(format!("chart-{name}.yaml"));
        fs::write(&file, rendered).with_context(|| format!("write {}", file.display()))?;
        for version in KUBERNETES {
            tally.count(said(validators.kubernetes(version, &file)));
        }
        let expected = if is_admin {
            format!("{BASE}, SYS_ADMIN")
        } else {
            BASE.to_owned()
        };
        tally.count(said(adds(&file, &expected)));
        let reached: &[&str] = if name == "unnamed" {
            &[]
        } else {
            &API_SERVER_CIDRS
        };
        tally.count(said(reaches(&file, reached)));
        let ports = [
            ("service.enabled=true", "7117"),
            ("accessLogs.enabled=true", "7118"),
        ];
        let ports = ports.iter().filter(|(value, _)| values.contains(value));
        let ports: Vec<&str> = ports.map(|(_, port)| *port).collect();
        tally.count(said(lets_in(&file, &ports)));
    }
    for value in WRONG_VALUES {
        let result = exec::output(&mut command(&TEMPLATE, &[value]));
        tally.count(refused(value, result));
    }
    let nowhere = "kubernetes.apiServer.cidrs=null";
    let result = exec::output(&mut command(&TEMPLATE, &[nowhere]));
    tally.count(said(says_what_is_missing(result)));
    Ok(())
}

/// Whether the chart without the API server's addresses says which value they are.
fn says_what_is_missing(result: Result<String>) -> Result<String> {
    let Err(error) = result else {
        bail!("the chart is rendered without the addresses of the API server");
    };
    let error = format!("{error:#}");
    ensure!(
        error.contains("kubernetes.apiServer.cidrs is empty: "),
        "the chart does not say what is missing: {error}"
    );
    Ok("without the addresses of the API server the chart says what is missing".to_owned())
}

/// Programs in Python that carry the schemas with them.
struct Validators {
    folder: PathBuf,
    logs: PathBuf,
}

impl Validators {
    fn ensure(workspace: &Workspace) -> Result<Self> {
        let folder = workspace.tools.join("validators");
        let validators = Self {
            folder: folder.clone(),
            logs: workspace.logs(),
        };
        let hash = stamp::text_hash(pins::VALIDATORS);
        let stamp = Stamp::new(folder.join("stamp"), "1", &hash);
        setup::ensure_kept(&folder, &stamp, || {
            let requirements = workspace.tools.join("validators.txt");
            fs::write(&requirements, pins::VALIDATORS)
                .with_context(|| format!("write {}", requirements.display()))?;
            if folder.exists() {
                fs::remove_dir_all(&folder)
                    .with_context(|| format!("remove {}", folder.display()))?;
            }
            let mut install = Command::new("python3");
            install
                .args(["-m", "pip", "install", "--only-binary=:all:", "--no-deps"])
                .args([
                    "--require-hashes",
                    "--disable-pip-version-check",
                    "--target",
                ])
                .arg(&folder)
                .arg("--requirement")
                .arg(&requirements);
            exec::download(&mut install, &workspace.logs().join("validators.log"))
        })?;
        Ok(validators)
    }

    fn kubernetes(&self, version: &str, manifest: &Path) -> Result<String> {
        let arguments = ["--strict", "--kubernetes-version", version];
        self.python("kubernetes_validate", &arguments, manifest)
    }

    fn compose(&self, manifest: &Path) -> Result<String> {
        let arguments = ["--builtin-schema", "vendor.compose-spec"];
        self.python("check_jsonschema", &arguments, manifest)
    }

    /// What it was asked about, and its log where it found something wrong.
    fn python(&self, module: &str, arguments: &[&str], manifest: &Path) -> Result<String> {
        let mut command = Command::new("python3");
        command
            .args(["-m", module])
            .args(arguments)
            .arg(manifest)
            .env("PYTHONPATH", &self.folder);
        exec::to_log(&mut command, &self.logs.join("manifests.log"))?;
        Ok(format!("{} {}", manifest.display(), arguments.join(" ")))
    }
}

/// Whether a manifest asks for these capabilities and no others, wherever it asks.
fn adds(manifest: &Path, expected: &str) -> Result<String> {
    let text =
        fs::read_to_string(manifest).with_context(|| format!("read {}", manifest.display()))?;
    let found: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_once("add: [")?.1.strip_suffix(']'))
        .collect();
    ensure!(
        !found.is_empty() && found.iter().all(|list| *list == expected),
        "{} adds {found:?}, not {expected}",
        manifest.display()
    );
    Ok(format!("{} adds a tier's capabilities", manifest.display()))
}

/// Whether a manifest lets the profiler connect to these blocks of addresses and no others, and its role list and watch
/// alone.
fn reaches(manifest: &Path, expected: &[&str]) -> Result<String> {
    let text =
        fs::read_to_string(manifest).with_context(|| format!("read {}", manifest.display()))?;
    let values = |key: &str| -> Vec<&str> {
        let lines = text.lines().filter_map(|line| line.split_once(key));
        lines.map(|(_, value)| value.trim_matches('"')).collect()
    };
    let found = values(" cidr: ");
    ensure!(
        found == expected,
        "{} lets it connect to {found:?}, not {expected:?}",
        manifest.display()
    );
    // Egress without `to` is egress to every address.
    let rules = text.matches("    - ports:").count();
    ensure!(
        expected.is_empty() != text.contains("  egress:") && rules == 0,
        "{} lets it connect to every address",
        manifest.display()
    );
    let verbs = values(" verbs: ");
    ensure!(
        verbs.iter().all(|verbs| *verbs == "[list, watch]"),
        "the role in {} may {verbs:?}",
        manifest.display()
    );
    Ok(format!(
        "{} reaches the API server alone",
        manifest.display()
    ))
}

/// Whether a manifest lets others connect to these ports and no more, each for pods that its rule names.
fn lets_in(manifest: &Path, expected: &[&str]) -> Result<String> {
    let text =
        fs::read_to_string(manifest).with_context(|| format!("read {}", manifest.display()))?;
    let mut ports = Vec::new();
    for document in text.split("\n---") {
        let Some((_, rules)) = document.split_once("\n  ingress:\n") else {
            continue;
        };
        let rules = rules.split("\n  egress:\n").next().unwrap_or(rules);
        let count = |start: &str| rules.lines().filter(|line| line.starts_with(start)).count();
        // A rule without `from` is one for everybody, one without ports for all ports.
        let all = count("    - ");
        ensure!(
            all == count("    - from:") && all == count("      ports:"),
            "a rule in {} lacks who may connect or where",
            manifest.display()
        );
        ports.extend(
            rules
                .lines()
                .filter_map(|line| line.strip_prefix("        - port: ")),
        );
    }
    ensure!(
        ports == expected,
        "{} lets others connect to {ports:?}, not {expected:?}",
        manifest.display()
    );
    Ok(format!("{} lets in by port {ports:?}", manifest.display()))
}

/// Prints a result; whether it is a good one.
fn said(result: Result<String>) -> bool {
    match &result {
        Ok(what) => println!("ok {what}"),
        Err(error) => println!("failed {error:#}"),
    }
    result.is_ok()
}

/// Prints whether the checks found what is wrong.
fn refused(what: &str, result: Result<String>) -> bool {
    let refused = result.is_err();
    let verdict = if refused { "ok" } else { "failed" };
    println!("{verdict} {what} is refused");
    refused
}

fn yaml_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("list {}", folder.display()))? {
        let path = entry
            .with_context(|| format!("list {}", folder.display()))?
            .path();
        if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
        {
            files.push(path);
        }
    }
    if files.is_empty() {
        bail!("no manifests in {}", folder.display());
    }
    files.sort();
    Ok(files)
}

fn damaged(manifest: &Path, right: &str, wrong: &str, folder: &Path) -> Result<PathBuf> {
    let text =
        fs::read_to_string(manifest).with_context(|| format!("read {}", manifest.display()))?;
    ensure!(
        text.contains(right),
        "{} does not hold {right}",
        manifest.display()
    );
    let name = manifest.file_name().context("a manifest has a name")?;
    let path = folder.join(name);
    fs::write(&path, text.replace(right, wrong))
        .with_context(|| format!("write {}", path.display()))?;
    Ok(path)
}
