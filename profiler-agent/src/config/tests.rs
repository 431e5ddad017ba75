use std::{collections::HashMap, io::Write, time::Duration};

use clap::{CommandFactory as _, Parser};

use profiler_memory::cgroup_limit;

use super::{
    ArgumentPolicy, AuthConfig, ContinuousProfile, NetworkMode, OverviewMode, ServeConfig,
    cli::{Cli, Command},
    mistyped_variables, resolve_serve,
};

/// Resolves `flags` (as after `serve`) with an environment and, when not empty, a file.
fn resolve(flags: &str, environment: &[(&str, &str)], file: &str) -> Result<ServeConfig, String> {
    let mut config_file = tempfile::NamedTempFile::new().unwrap();
    config_file.write_all(file.as_bytes()).unwrap();
    let path = config_file.path().to_str().unwrap().to_owned();
    let mut words = vec!["profiler-agent", "serve"];
    words.extend(flags.split_whitespace());
    if !file.is_empty() {
        words.extend(["--config", &path]);
    }
    let cli = Cli::try_parse_from(words).map_err(|error| error.to_string())?;
    let Command::Serve(args) = cli.command else {
        panic!("not serve")
    };
    let environment: HashMap<_, _> = environment.iter().copied().collect();
    let read = |name: &str| environment.get(name).map(|value| (*value).to_owned());
    resolve_serve(&args, cli.log.as_deref(), &read)
        .map_err(|error| error.to_string().replace(&path, "FILE"))
}

fn check_error(flags: &str, environment: &[(&str, &str)], file: &str, expected: &str) {
    assert_eq!(resolve(flags, environment, file).unwrap_err(), expected);
}

#[test]
fn defaults_are_safe() {
    let config = resolve("", &[], "").unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:7117");
    assert_eq!(config.data_dir.to_str(), Some("/var/lib/profiler-agent"));
    assert_eq!(config.auth, AuthConfig::Fresh);
    assert_eq!(config.arguments, ArgumentPolicy::Masked);
    assert_eq!(config.profile, ContinuousProfile::Off);
    assert_eq!(config.network, NetworkMode::Tasks);
    assert_eq!(config.overview, OverviewMode::On);
    assert_eq!(config.network_metrics_edges, 200);
    assert_eq!(config.retention.age, Duration::from_hours(168));
    assert_eq!(config.retention.bytes, 1 << 30);
    assert_eq!(config.max_tasks, 8);
    // Whether there is one depends on where the test runs.
    assert_eq!(config.max_memory, cgroup_limit());
    assert_eq!(config.cpu_budget_percent, None);
    assert_eq!(config.log, "info");
    assert_eq!(config.symbol_dir, None);
    assert_eq!(config.max_symbol_bytes, 4 << 30);
    assert_eq!(config.debuginfod, None);
    assert_eq!(config.access_logs, None);
}

#[test]
fn flags_win_over_environment_over_file() {
    let file = "listen = \"127.0.0.1:1\"\nmax_tasks = 3\nlog = \"warn\"\ncpu_budget = 2.5\n";
    let environment = [
        ("PROFILER_LISTEN", "127.0.0.1:2"),
        ("PROFILER_MAX_TASKS", "4"),
    ];
    let config = resolve("--listen 127.0.0.1:3", &environment, file).unwrap();
    assert_eq!(config.listen.port(), 3);
    assert_eq!(config.max_tasks, 4);
    assert_eq!(config.log, "warn");
    assert_eq!(config.cpu_budget_percent, Some(2.5));
}

#[test]
fn every_key_is_accepted_from_environment_and_file() {
    let environment = [
        ("PROFILER_MAX_MEMORY", "1GiB"),
        ("PROFILER_LISTEN", "0.0.0.0:1"),
        ("PROFILER_DATA_DIR", "/d"),
        ("PROFILER_TOKEN_FILE", "/t"),
        ("PROFILER_READ_ONLY_TOKEN_FILE", "/r"),
        ("PROFILER_TLS_CERT", "/c"),
        ("PROFILER_TLS_KEY", "/k"),
        ("PROFILER_ACCESS_LOGS", "0.0.0.0:2"),
        ("PROFILER_ACCESS_LOGS_TLS_CERT", "/lc"),
        ("PROFILER_ACCESS_LOGS_TLS_KEY", "/lk"),
        ("PROFILER_ACCESS_LOGS_TLS_CLIENT_CA", "/la"),
        ("PROFILER_CPU_BUDGET", "5"),
        ("PROFILER_PROFILE", "always"),
        ("PROFILER_NETWORK", "always"),
        ("PROFILER_NETWORK_METRICS_EDGES", "7"),
        ("PROFILER_SHOW_ARGUMENTS", "true"),
        ("PROFILER_RETENTION_AGE", "12h"),
        ("PROFILER_RETENTION_BYTES", "2GiB"),
        ("PROFILER_MAX_TASKS", "2"),
        ("PROFILER_LOG", "debug"),
        ("PROFILER_DENY_PROBE", "on_cpu,processes"),
        ("PROFILER_BPF_STATS", "1"),
        ("PROFILER_SYMBOL_DIR", "/tmp"),
        ("PROFILER_MAX_SYMBOL_BYTES", "2MiB"),
        (
            "PROFILER_DEBUGINFOD",
            "https://debuginfod.example/x,objects.example:8443",
        ),
        ("PROFILER_IDLE_RULES", "/i"),
        ("PROFILER_DIAGNOSIS_RULES", "/d"),
        ("PROFILER_UNWIND", "frame-pointers"),
    ];
    let config = resolve("", &environment, "").unwrap();
    assert_eq!(config.deny_probes, ["on_cpu", "processes"]);
    assert_eq!(config.retention.bytes, 2 << 30);
    assert!(config.bpf_stats);
    assert_eq!(config.network, NetworkMode::Always);
    assert_eq!(config.network_metrics_edges, 7);
    assert_eq!(config.unwind, profiler_model::UnwindMethod::FramePointers);
    // What is printed is a file that gives the same configuration.
    assert_eq!(resolve("", &[], &config.to_toml()).unwrap(), config);
    let no_auth = resolve("--no-auth --max-memory none", &[], "").unwrap();
    assert_eq!(resolve("", &[], &no_auth.to_toml()).unwrap(), no_auth);
}

#[test]
fn the_ceiling_for_memory_is_a_size_or_none() {
    let limit = |flags: &str| resolve(flags, &[], "").unwrap().max_memory;
    assert_eq!(limit("--max-memory 300MB").bytes, Some(300_000_000));
    assert_eq!(limit("--max-memory none").bytes, None);
    assert_eq!(limit("--max-memory auto"), cgroup_limit());
    check_error(
        "--max-memory 10MiB",
        &[],
        "",
        "--max-memory: \"10MiB\" is too small: give at least 96MiB, which one task after another needs",
    );
    let config = resolve("--max-memory 300MB", &[], "").unwrap();
    assert!(config.to_toml().contains("\nmax_memory = 300000000\n"));
}

#[test]
fn a_mistyped_variable_is_noticed() {
    let names = [
        "PROFILER_LISTE",
        "PROFILER_LISTEN",
        "PROFILER_data_dir",
        "PROFILER_AGENT_SERVICE_HOST",
        "PATH",
    ];
    let noticed = mistyped_variables(names.into_iter().map(str::to_owned));
    let pair = |name: &str, meant: &str| (name.to_owned(), meant.to_owned());
    assert_eq!(
        noticed,
        [
            pair("PROFILER_LISTE", "PROFILER_LISTEN"),
            pair("PROFILER_data_dir", "PROFILER_DATA_DIR"),
        ]
    );
}

#[test]
fn a_folder_of_symbols_must_be_there() {
    check_error(
        "--symbol-dir /nowhere",
        &[],
        "",
        "--symbol-dir: \"/nowhere\" is not a folder that can be read (No such file or directory (os error 2)): \
         give one that is there",
    );
}

#[test]
fn unknown_keys_name_the_key_and_the_file() {
    check_error(
        "",
        &[],
        "lisen = \"x\"",
        "unknown key `lisen` in config file FILE: did you mean `listen`?",
    );
    check_error(
        "",
        &[],
        "data-dir = \"x\"",
        "unknown key `data-dir` in config file FILE: did you mean `data_dir`?",
    );
    check_error(
        "",
        &[],
        "[server]\nport = 1",
        "unknown key `server` in config file FILE: known keys are listen, data_dir, token_file, read_only_token_file, no_auth, \
         tls_cert, tls_key, access_logs, access_logs_tls_cert, access_logs_tls_key, access_logs_tls_client_ca, \
         access_logs_plaintext, cpu_budget, profile, network, overview, network_metrics_edges, \
         show_arguments, allow_tls_capture, allow_bodies, retention_age, retention_bytes, max_tasks, max_memory, symbol_dir, max_symbol_bytes, \
         debuginfod, idle_rules, diagnosis_rules, demo_data, deny_probe, bpf_stats, unwind, off_cpu_mode, envoy_admin, privileges, kubernetes, node_name, runtime_socket, confine, remote_files, log",
    );
}

#[test]
fn errors_name_the_source_the_value_and_the_remedy() {
    check_error(
        "--listen 7117",
        &[],
        "",
        "--listen: \"7117\" is not an IP address and port: write for example 127.0.0.1:PORT or [::1]:PORT",
    );
    check_error(
        "",
        &[("PROFILER_CPU_BUDGET", "0")],
        "",
        "PROFILER_CPU_BUDGET: \"0\" is not a share of one core in percent: give a number above 0, for example 5 or 0.5",
    );
    check_error(
        "--cpu-budget inf",
        &[],
        "",
        "--cpu-budget: \"inf\" is not a share of one core in percent: give a number above 0, for example 5 or 0.5",
    );
    for server in ["ftp://x", "example.org", "https://a https://b", "https://"] {
        let error = resolve("", &[("PROFILER_DEBUGINFOD", server)], "").unwrap_err();
        assert!(error.contains("is not a server: write one URL"), "{error}");
    }
    let error = resolve("--debuginfod https://a,https://b", &[], "").unwrap_err();
    assert!(error.contains("write HOST or HOST:PORT"), "{error}");
    check_error(
        "",
        &[],
        "max_tasks = 0",
        "`max_tasks` in FILE: \"0\" is not a number from 1 to 64",
    );
    check_error(
        "",
        &[],
        "max_tasks = [1]",
        "`max_tasks` in FILE: \"[1]\" has the wrong type: give a string, a number or a boolean",
    );
    check_error(
        "--retention-bytes 1GX",
        &[],
        "",
        "--retention-bytes: \"1GX\" is not a size: write for example 500MB or 1GiB",
    );
    check_error(
        "--retention-bytes 1kB",
        &[],
        "",
        "--retention-bytes: \"1kB\" is too small: give at least 1MiB",
    );
    check_error(
        "--retention-age 0s",
        &[],
        "",
        "--retention-age: \"0s\" is too short: give at least 1s",
    );
    check_error(
        "--profile sometimes",
        &[],
        "",
        "--profile: \"sometimes\" is not known: write always or off",
    );
    check_error(
        "",
        &[("PROFILER_NO_AUTH", "yes")],
        "",
        "PROFILER_NO_AUTH: \"yes\" is not a switch: write true or false",
    );
    check_error(
        "--config /does/not/exist",
        &[],
        "",
        "read config file /does/not/exist: No such file or directory (os error 2)",
    );
}

#[test]
fn other_addresses_need_a_token_and_tls() {
    let tls = "--tls-cert c --tls-key k";
    check_error(
        &format!("--listen 0.0.0.0:7117 --no-auth {tls}"),
        &[],
        "",
        "--no-auth is accepted on loopback only, but the agent is to listen on 0.0.0.0:7117: \
         remove --no-auth or listen on 127.0.0.1",
    );
    check_error(
        "--listen [::]:7117",
        &[],
        "",
        "listening on [::]:7117 needs TLS because it is not loopback: \
         give --tls-cert and --tls-key, or listen on 127.0.0.1",
    );
    check_error(
        "--tls-cert c",
        &[],
        "",
        "a TLS certificate is given without its private key: add --tls-key FILE",
    );
    check_error(
        "--tls-key k",
        &[],
        "",
        "a TLS private key is given without its certificate: add --tls-cert FILE",
    );
    check_error(
        "--no-auth --token-file t",
        &[],
        "",
        "--no-auth and --token-file contradict each other: give one of them",
    );
    check_error(
        "--no-auth",
        &[],
        "read_only_token_file = \"r\"",
        "--no-auth and `read_only_token_file` in FILE contradict each other: give one of them",
    );
    assert!(resolve(&format!("--listen 0.0.0.0:7117 {tls}"), &[], "").is_ok());
    assert!(
        resolve("--listen localhost:80 --no-auth", &[], "")
            .unwrap()
            .listen
            .ip()
            .is_loopback()
    );
}

const LOG_TLS: &str =
    "--access-logs-tls-cert c --access-logs-tls-key k --access-logs-tls-client-ca a";

#[test]
fn access_logs_are_received_where_it_is_safe() {
    for (address, more) in [
        ("127.0.0.1", ""),
        ("localhost", ""),
        ("[::1]", ""),
        ("127.0.0.1", LOG_TLS),
        ("127.0.0.1", "--access-logs-plaintext"),
        ("0.0.0.0", LOG_TLS),
        ("0.0.0.0", "--access-logs-plaintext"),
        ("[::]", "--access-logs-plaintext"),
    ] {
        let flags = format!("--access-logs {address}:7118 {more}");
        let config = resolve(&flags, &[], "").unwrap();
        let logs = config.access_logs.clone().unwrap();
        assert_eq!(logs.listen.port(), 7118, "{flags}");
        assert_eq!(logs.tls.is_some(), more == LOG_TLS, "{flags}");
        // What is printed is a file that gives the same.
        let printed = resolve("", &[], &config.to_toml()).unwrap();
        assert_eq!(printed.access_logs, Some(logs), "{flags}");
    }
    let file = "access_logs = \"127.0.0.1:1\"\naccess_logs_plaintext = false\n";
    let environment = [("PROFILER_ACCESS_LOGS", "127.0.0.1:2")];
    let port = |flags: &str, environment: &[(&str, &str)]| {
        let config = resolve(flags, environment, file).unwrap();
        config.access_logs.unwrap().listen.port()
    };
    assert_eq!(port("", &[]), 1);
    assert_eq!(port("", &environment), 2);
    assert_eq!(port("--access-logs 127.0.0.1:3", &environment), 3);
    // A switch that is off is none.
    let off = resolve("", &[], "access_logs_plaintext = false").unwrap();
    assert_eq!(off.access_logs, None);
}

#[test]
fn access_logs_that_are_not_safe_are_refused_with_the_remedy() {
    for address in ["0.0.0.0:7118", "[::]:7118", "10.0.0.1:7118"] {
        check_error(
            &format!("--access-logs {address}"),
            &[],
            "",
            &format!(
                "receiving access logs on {address} needs TLS because it is not loopback: give --access-logs-tls-cert, \
                 --access-logs-tls-key and --access-logs-tls-client-ca, listen on 127.0.0.1, or add \
                 --access-logs-plaintext if only Envoys can reach that address"
            ),
        );
    }
    let error = resolve(
        "--access-logs 0.0.0.0:1",
        &[],
        "access_logs_plaintext = false",
    );
    assert!(error.unwrap_err().contains("needs TLS"));
    check_error(
        &format!("--access-logs 0.0.0.0:7118 --access-logs-plaintext {LOG_TLS}"),
        &[],
        "",
        "--access-logs-plaintext and certificates for access logs contradict each other: give one of them",
    );
    check_error(
        "--access-logs 7118",
        &[],
        "",
        "--access-logs: \"7118\" is not an IP address and port: write for example 127.0.0.1:PORT or [::1]:PORT",
    );
    check_error(
        "--access-logs-plaintext",
        &[],
        "",
        "--access-logs-plaintext is for access logs, which are not received: add --access-logs ADDR:PORT, or remove it",
    );
    check_error(
        "",
        &[("PROFILER_ACCESS_LOGS_TLS_KEY", "k")],
        "",
        "PROFILER_ACCESS_LOGS_TLS_KEY is for access logs, which are not received: add --access-logs ADDR:PORT, or remove it",
    );
}

#[test]
fn certificates_for_access_logs_need_all_three_files() {
    for given in 1..7 {
        let (mut flags, mut missing) = (Vec::new(), Vec::new());
        for (index, file) in ["cert", "key", "client-ca"].into_iter().enumerate() {
            if given & (1 << index) != 0 {
                flags.push(format!("--access-logs-tls-{file} f"));
            } else {
                missing.push(format!("--access-logs-tls-{file} FILE"));
            }
        }
        for address in ["127.0.0.1:7118", "0.0.0.0:7118"] {
            check_error(
                &format!("--access-logs {address} {}", flags.join(" ")),
                &[],
                "",
                &format!(
                    "TLS for access logs needs a certificate, its key and the authority of the clients: add {}",
                    missing.join(" and ")
                ),
            );
        }
    }
}

#[test]
fn a_broken_file_says_where() {
    let error = resolve("", &[], "listen = ").unwrap_err();
    assert!(
        error.starts_with("config file FILE is not valid TOML: TOML parse error at line 1"),
        "{error}"
    );
}

#[test]
fn commands_parse_as_documented() {
    let parse = |line: &str| Cli::try_parse_from(line.split_whitespace());
    let record = "profiler-agent record --format folded --output -";
    assert!(
        parse(&format!(
            "{record} --pid 1 --pid 2,3 --duration 10s --frequency 99"
        ))
        .is_ok()
    );
    for target in ["--container abc", "--comm x", "--cgroup /a", "--all"] {
        assert!(parse(&format!("{record} {target}")).is_ok(), "{target}");
    }
    assert!(parse(record).is_err(), "a target is needed");
    assert!(
        parse(&format!("{record} --all --comm x")).is_err(),
        "one target only"
    );
    assert!(parse(&format!("{record} --all --frequency 0")).is_err());
    assert!(parse(&format!("{record} --all --frequency 5000")).is_err());
    for line in [
        "ps",
        "ps --json",
        "doctor",
        "doctor --json --url http://127.0.0.1:1 --token-file t",
        "openapi",
        "url --read-only --read-only-token-file r --listen 127.0.0.1:1",
        "access-logs snippet --for istio --tls",
        "access-logs snippet --for envoy-gateway --transport otlp --address agent.profiler.svc:7118",
        "access-logs status",
        "access-logs status --url http://127.0.0.1:1 --token-file t --json",
        "--log debug ps",
    ] {
        assert!(parse(&format!("profiler-agent {line}")).is_ok(), "{line}");
    }
    for line in [
        "access-logs",
        "access-logs snippet",
        "access-logs snippet --for linkerd",
        "access-logs snippet --for envoy --address 7118",
        // Only `serve` receives.
        "url --access-logs 127.0.0.1:7118",
        "url --access-logs-plaintext",
    ] {
        assert!(parse(&format!("profiler-agent {line}")).is_err(), "{line}");
    }
}

#[test]
fn the_help_says_how_many_series_an_edge_has() {
    let mut command = Cli::command();
    let serve = command.find_subcommand_mut("serve").unwrap();
    let help = serve.render_long_help().to_string();
    let help: Vec<&str> = help.split_whitespace().collect();
    let series = profiler_engine::edge_metrics::SERIES_OF_EDGE;
    let expected = format!("about {series} series each");
    assert!(help.join(" ").contains(&expected), "{help:?}");
}
