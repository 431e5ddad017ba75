use clap::Parser as _;

use super::*;
use crate::config::cli::{Cli, Command};

fn snippet_of(line: &str) -> Text {
    let words = ["profiler-agent", "access-logs", "snippet"];
    let cli = Cli::parse_from(words.into_iter().chain(line.split_whitespace()));
    let Command::AccessLogs(AccessLogsArgs {
        command: AccessLogsCommand::Snippet(args),
    }) = cli.command
    else {
        panic!("another command")
    };
    configuration(&args)
}

#[test]
fn the_configuration_names_the_agent_as_envoys_reach_it() {
    for (line, expected) in [
        ("--for envoy", "127.0.0.1"),
        (
            "--for envoy --transport otlp --address agent.example:9",
            "agent.example",
        ),
        (
            "--for istio",
            "profiler-agent-access-logs.profiler.svc.cluster.local",
        ),
        ("--for envoy-gateway", "profiler-agent"),
        (
            "--for istio --address other.monitoring.svc:9",
            "other.monitoring",
        ),
    ] {
        let text = snippet_of(line);
        assert!(text.contains(expected), "{line}: {}", &*text);
        assert!(!text.contains("\\x"), "{line}: {}", &*text);
    }
    assert!(snippet_of("--for envoy --transport otlp").contains("open_telemetry"));
    assert!(snippet_of("--for envoy").contains("http_grpc"));
    let has_certificates = |line| snippet_of(line).contains("profiler-access-logs/tls.crt");
    assert!(has_certificates("--for istio --tls") && !has_certificates("--for istio"));
}
