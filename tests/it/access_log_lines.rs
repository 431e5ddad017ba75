//! What the decoder makes of an Envoy's messages, beside the lines that the same Envoy writes into a file.

use std::{collections::BTreeMap, time::Duration};

use hyper::body::Bytes;
use profiler_access_logs::{
    Entry, Limits, Timing, decode,
    otlp::{ATTRIBUTES, decode_records},
};
use profiler_tests::{
    cleanup::scratch_directory,
    peers::{
        h2load::{self, Load},
        log_sink::{LogSink, Logged},
        logging_envoy::{Logger, LoggingEnvoy, Options},
        nginx::{Nginx, Speaks},
    },
    wait::wait_for,
};
use prost::Message;
use serde_json::Value;

const REQUESTS: u32 = 2_000;
/// Requests that are answered with 404, in bodies of this many bytes.
const BODIES: [usize; 5] = [0, 1, 100, 10_000, 100_000];
/// The file is written each 200 ms and messages are sent each second.
const SETTLED: Duration = Duration::from_secs(30);

/// `opentelemetry.proto.collector.logs.v1.ExportLogsServiceRequest`, down to texts.
#[derive(Message)]
struct Export {
    #[prost(message, repeated, tag = "1")]
    resources: Vec<ResourceLogs>,
}

#[derive(Message)]
struct ResourceLogs {
    #[prost(message, repeated, tag = "2")]
    scopes: Vec<ScopeLogs>,
}

#[derive(Message)]
struct ScopeLogs {
    #[prost(message, repeated, tag = "2")]
    records: Vec<LogRecord>,
}

#[derive(Message)]
struct LogRecord {
    #[prost(message, repeated, tag = "6")]
    attributes: Vec<KeyValue>,
}

#[derive(Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Message)]
struct AnyValue {
    #[prost(string, tag = "1")]
    text: String,
}

/// The entry of a line, whose fields have the names and texts of records of OpenTelemetry.
fn of_line(line: &Value) -> Entry {
    let fields = line.as_object().unwrap().iter();
    let attributes = fields.filter_map(|(name, value)| {
        let text = match value {
            Value::Null => return None,
            Value::String(text) => text.clone(),
            // Envoy 1.36 and 1.39 write 100000 as 1e5.
            Value::Number(number) if number.is_f64() => {
                format!("{:.0}", number.as_f64().unwrap())
            }
            other => other.to_string(),
        };
        Some(KeyValue {
            key: name.clone(),
            value: Some(AnyValue { text }),
        })
    });
    let record = LogRecord {
        attributes: attributes.collect(),
    };
    let scopes = vec![ScopeLogs {
        records: vec![record],
    }];
    let export = Export {
        resources: vec![ResourceLogs { scopes }],
    };
    let mut entries = Vec::new();
    let counts = decode_records(
        &export.encode_to_vec().into(),
        &Limits::default(),
        |_, entry| entries.push(entry),
    );
    assert_eq!(counts.unwrap().malformed_values, 0, "{line}");
    let [entry] = <[Entry; 1]>::try_from(entries).unwrap();
    entry
}

/// Entries by stream, each once.
fn by_stream(entries: Vec<Entry>) -> BTreeMap<Bytes, Entry> {
    let number = entries.len();
    let named = entries
        .into_iter()
        .map(|entry| (entry.stream_id.clone(), entry));
    let named: BTreeMap<Bytes, Entry> = named.collect();
    assert_eq!(named.len(), number, "a stream has several entries");
    named
}

fn received(sink: &LogSink) -> Vec<Entry> {
    let mut entries = Vec::new();
    for message in sink.messages() {
        let counts = match message {
            Logged::Stream(message) => {
                let take = |entry| entries.push(entry);
                decode(&message, &Limits::default(), take).unwrap().counts
            }
            Logged::Export(message) => {
                let take = |_: &_, entry| entries.push(entry);
                decode_records(&message, &Limits::default(), take).unwrap()
            }
        };
        assert_eq!(counts.malformed_values, 0, "{counts:?}");
    }
    entries
}

fn check(version: &str, logger: Logger) {
    let (folder, _guard) = scratch_directory("access-log-lines").unwrap();
    let nginx = Nginx::start(&folder, Speaks::Http1).unwrap();
    let sink = LogSink::start().unwrap();
    let attributes: Vec<(&str, &str)> = ATTRIBUTES
        .iter()
        .map(|row| (row.name, row.operator))
        .collect();
    let options = Options {
        version,
        logger,
        server: nginx.port,
        http2: false,
        sink: sink.port,
        buffer_bytes: 262_144,
        attributes: &attributes,
        file: true,
    };
    let envoy = LoggingEnvoy::start(&folder, &options).unwrap();
    let base = format!("http://127.0.0.1:{}", envoy.port);
    let load = Load {
        base: &base,
        paths: &["/files/700", "/files/0?token=canary"],
        requests: REQUESTS,
        connections: 8,
        streams: 1,
        rate: None,
        http1: true,
        probed: false,
    };
    h2load::run(&folder, load).unwrap();
    for bytes in BODIES {
        let answer = ureq::post(&format!("{base}/nothing%20%C3%A4/{bytes}"))
            .config()
            .http_status_as_error(false)
            .build()
            .send(vec![b'x'; bytes]);
        assert!(answer.unwrap().status().is_client_error());
    }
    let all = REQUESTS as usize + BODIES.len();
    let whole = wait_for("all requests are told twice", SETTLED, || {
        let (lines, entries) = (envoy.lines().unwrap(), received(&sink));
        (lines.len() >= all && entries.len() >= all).then_some((lines, entries))
    });
    let (lines, entries) = whole.unwrap();
    let lines = by_stream(lines.iter().map(of_line).collect());
    let entries = by_stream(entries);
    assert_eq!((lines.len(), entries.len()), (all, all));
    for (stream, line) in lines {
        let entry = &entries[&stream];
        match logger {
            Logger::OpenTelemetry => assert_eq!(*entry, line),
            Logger::Grpc => assert_eq!(as_text(entry), line),
        }
    }
}

/// What a line says of the same request: texts have whole milliseconds of the duration.
fn as_text(entry: &Entry) -> Entry {
    let whole = |ns: u64| ns / 1_000_000 * 1_000_000;
    Entry {
        timing: Timing {
            duration_ns: entry.timing.duration_ns.map(whole),
            ..entry.timing
        },
        ..entry.clone()
    }
}

#[test]
fn messages_of_envoy_1_36_are_its_lines() {
    check("1.36.4", Logger::Grpc);
}

#[test]
fn messages_of_envoy_1_39_are_its_lines() {
    check("1.39.0", Logger::Grpc);
}

#[test]
fn messages_of_envoy_1_40_are_its_lines() {
    check("1.40.0", Logger::Grpc);
}

/// Both go through the same decoder: that records come whole, each once, and with the texts of the file.
#[test]
fn records_of_envoy_1_40_are_its_lines() {
    check("1.40.0", Logger::OpenTelemetry);
}
