//! The processes and pods of the Envoys that send their access logs.

use profiler_host::process::{ProcessTable, program};
use profiler_model::{
    EnvoyLogs,
    access_log_status::{AccessLogEnvoy, AccessLogStatus, LoggingProcess},
};

use crate::access_log_socket::ReceivedAccessLogs;

pub(in crate::api) fn access_log_status(
    received: &ReceivedAccessLogs,
    table: &ProcessTable,
) -> AccessLogStatus {
    let ReceivedAccessLogs {
        logs,
        listen,
        watch: _,
    } = received;
    let envoys = logs.report();
    let (failed_connections, newest_failure) = logs.failed();
    AccessLogStatus {
        is_on: logs.is_on(),
        listen: listen.map(|address| address.to_string()),
        refused_connections: logs.refused(),
        failed_connections,
        newest_failure,
        stage_seconds: logs.stage_seconds(),
        envoys: envoys.iter().map(|logs| envoy(logs, table)).collect(),
    }
}

fn envoy(logs: &EnvoyLogs, table: &ProcessTable) -> AccessLogEnvoy {
    let found = logs.process.and_then(|key| table.process(key));
    let names = found.as_ref().and_then(|process| table.names_of(process));
    let running = found.as_ref().map(|process| LoggingProcess {
        program: program(process),
        pod: names.as_ref().and_then(|names| names.pod.as_deref()),
    });
    AccessLogEnvoy::new(logs, running)
}

#[cfg(test)]
#[path = "access_logs_tests.rs"]
mod tests;
