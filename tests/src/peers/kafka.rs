//! Kafka: a broker that is its own controller, its own command-line clients, and kafka-python.
//!
//! The truth is the broker's log of requests: one line for each that it has answered, with API, version,
//! client, connection, what was asked for and the answer. Authentication is not in it.

use std::{
    collections::BTreeSet,
    fs,
    net::TcpStream,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::{asked::Asked, free_port};
use crate::{
    paths,
    process::{Launch, Running},
    wait::wait_until,
};

const LIMIT: Duration = Duration::from_mins(2);
/// Once the broker has closed the connections of clients that have ended, its log has everything when nothing of
/// clients was added for this long.
const SETTLED: Duration = Duration::from_millis(700);

/// A running broker.
#[derive(Debug)]
pub struct Kafka {
    broker: Running,
    pub port: u16,
    /// The listener that wants a user and the password [`Kafka::PASSWORD`].
    pub sasl_port: u16,
    log: PathBuf,
    folder: PathBuf,
}

impl Kafka {
    pub const USER: &'static str = "hidden-user";
    pub const PASSWORD: &'static str = "hidden-password";

    pub fn start(folder: &Path) -> Result<Self> {
        let (port, sasl_port, controller) = (free_port()?, free_port()?, free_port()?);
        let log = folder.join("requests.log");
        let properties = folder.join("server.properties");
        write(
            &properties,
            &server_properties(folder, port, sasl_port, controller),
        )?;
        let logging = folder.join("log4j2.xml");
        write(&logging, &logging_configuration(&log))?;
        let config = properties.display().to_string();
        java(folder, "format", "kafka.tools.StorageTool")?
            .args([
                "format",
                "--cluster-id",
                "AAAAAAAAAAAAAAAAAAAAAA",
                "--config",
                &config,
            ])
            .start()?
            .finish(LIMIT)?;
        let mut broker = Launch::new(Path::new("/usr/bin/java"), "kafka", folder)
            .args(["-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", &class_path()?])
            .args([format!("-Dlog4j2.configurationFile={}", logging.display())])
            .args(["kafka.Kafka", &config])
            .start()?;
        wait_until("the broker listens", LIMIT, || {
            let listens = |port| TcpStream::connect(("127.0.0.1", port)).is_ok();
            !broker.is_running() || (listens(port) && listens(sasl_port))
        })?;
        ensure!(broker.is_running(), "it ended: {}", broker.errors());
        Ok(Self {
            broker,
            port,
            sasl_port,
            log,
            folder: folder.to_path_buf(),
        })
    }

    pub fn pid(&self) -> u32 {
        self.broker.pid()
    }

    /// Runs a program of Kafka's own; its pid.
    pub fn tool(&self, class: &str, arguments: &[&str]) -> Result<u32> {
        let client = java(&self.folder, "kafka-client", class)?.args(arguments);
        finish(client)
    }

    /// Sends lines `key:value` to a topic by the console producer; its pid.
    pub fn produce(&self, port: u16, topic: &str, lines: &[&str], more: &[&str]) -> Result<u32> {
        let messages = self.folder.join("messages");
        write(&messages, &(lines.join("\n") + "\n"))?;
        // It reads its standard input.
        let script = "input=$1; shift; exec /usr/bin/java \"$@\" < \"$input\"";
        let client = Launch::new(Path::new("/bin/sh"), "kafka-client", &self.folder)
            .args(["-c", script, "sh", &messages.display().to_string()])
            .args(JAVA)
            .args([
                "-cp",
                &class_path()?,
                "org.apache.kafka.tools.ConsoleProducer",
            ])
            .args([
                "--bootstrap-server",
                &format!("127.0.0.1:{port}"),
                "--topic",
                topic,
            ])
            .args(["--property", "parse.key=true"])
            .args(["--property", "key.separator=:"])
            .args(more);
        finish(client)
    }

    /// Reads this many messages of a topic by the console consumer; its pid.
    pub fn consume(&self, port: u16, topic: &str, count: u32, more: &[&str]) -> Result<u32> {
        let server = format!("127.0.0.1:{port}");
        let count = count.to_string();
        let mut arguments = vec!["--bootstrap-server", &server, "--topic", topic];
        arguments.extend(["--from-beginning", "--max-messages", &count]);
        arguments.extend(["--timeout-ms", "30000"]);
        arguments.extend(more);
        self.tool(
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            &arguments,
        )
    }

    /// Runs `tests/fixtures/peers/kafka_client.py`; its pid.
    pub fn python(&self, arguments: &[&str]) -> Result<u32> {
        let script = paths::workspace().join("tests/fixtures/peers/kafka_client.py");
        let client = Launch::new(Path::new("/usr/bin/python3"), "kafka-python", &self.folder)
            .args([script])
            .args(["127.0.0.1".to_owned(), self.port.to_string()])
            .args(arguments)
            .env(
                "PYTHONPATH",
                &paths::tool("kafka-python-")?.display().to_string(),
            );
        finish(client)
    }

    /// A file with what clients need for the listener with passwords.
    pub fn credentials(&self) -> Result<String> {
        let path = self.folder.join("credentials.properties");
        let (user, password) = (Self::USER, Self::PASSWORD);
        let text = format!(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={LOGIN} \
             username=\"{user}\" password=\"{password}\";\n"
        );
        write(&path, &text)?;
        Ok(path.display().to_string())
    }

    /// The requests of a listener's clients so far, once they have ended: the broker closes a connection whose client
    /// has ended when it has answered what came over it. With that of passwords also what precedes it on each
    /// connection, which the broker does not log.
    pub fn asked(&self, port: u16) -> Result<Vec<Asked>> {
        let (mut log, mut lines, mut since) = (String::new(), 0, Instant::now());
        wait_until("the broker has answered everything", LIMIT, || {
            let Ok(metadata) = fs::metadata(&self.log) else {
                return false;
            };
            let mut is_busy = [self.port, self.sasl_port]
                .into_iter()
                .any(has_more_to_read);
            if metadata.len() != log.len() as u64 {
                log = fs::read_to_string(&self.log).unwrap_or_default();
                // The broker itself asks its controller all the time. A line that is being written counts, so that
                // there is another look.
                let now = of_clients(&log).count();
                is_busy |= now != lines;
                lines = now;
            }
            if is_busy {
                since = Instant::now();
            }
            since.elapsed() > SETTLED
        })?;
        let with_password = port == self.sasl_port;
        let listener = if with_password { "SASL" } else { "PLAINTEXT" };
        let mut asked = Vec::new();
        let mut connections = BTreeSet::new();
        for line in log.lines() {
            let Some(json) = line.strip_prefix("Completed request:") else {
                continue;
            };
            let request: Value = serde_json::from_str(json).with_context(|| line.to_owned())?;
            if request["listener"] != listener {
                continue;
            }
            let connection = request["connection"].to_string();
            if connections.insert(connection) && with_password {
                let before = ["ApiVersions", "SaslHandshake", "SaslAuthenticate"];
                asked.extend(before.map(|name| Asked::new(name, name, "ok")));
            }
            asked.push(of_log(&request).with_context(|| line.to_owned())?);
        }
        Ok(asked)
    }
}

/// Lines of the log of requests that came from clients.
fn of_clients(log: &str) -> impl Iterator<Item = &str> {
    let is_of_client = |line: &&str| !line.contains("\"listener\":\"CONTROLLER\"");
    log.lines().filter(is_of_client)
}

/// Whether the server at a port has a connection open whose client has ended.
fn has_more_to_read(port: u16) -> bool {
    // `TCP_CLOSE_WAIT`, linux/include/net/tcp_states.h.
    const CLOSED_BY_CLIENT: &str = "08";
    let place = format!(":{port:04X}");
    let is_one = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().take(4).collect();
        matches!(words[..], [_, local, _, CLOSED_BY_CLIENT] if local.ends_with(&place))
    };
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .into_iter()
        .any(|table| {
            let text = fs::read_to_string(table).unwrap_or_default();
            text.lines().any(is_one)
        })
}

const JAVA: [&str; 2] = ["-Xmx128m", "-XX:TieredStopAtLevel=1"];
const LOGIN: &str = "org.apache.kafka.common.security.plain.PlainLoginModule required";

fn class_path() -> Result<String> {
    Ok(format!("{}/*", paths::tool("kafka-4")?.display()))
}

fn java(folder: &Path, label: &str, class: &str) -> Result<Launch> {
    Ok(Launch::new(Path::new("/usr/bin/java"), label, folder)
        .args(JAVA)
        .args(["-cp", &class_path()?, class]))
}

fn finish(client: Launch) -> Result<u32> {
    let client = client.start()?;
    let pid = client.pid();
    client.finish(LIMIT)?;
    Ok(pid)
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("write {}", path.display()))
}

fn server_properties(folder: &Path, port: u16, sasl_port: u16, controller: u16) -> String {
    let (user, password) = (Kafka::USER, Kafka::PASSWORD);
    let listeners = format!("PLAINTEXT://127.0.0.1:{port},SASL://127.0.0.1:{sasl_port}");
    format!(
        "process.roles=broker,controller\n\
         node.id=1\n\
         controller.quorum.voters=1@127.0.0.1:{controller}\n\
         controller.listener.names=CONTROLLER\n\
         listeners={listeners},CONTROLLER://127.0.0.1:{controller}\n\
         advertised.listeners={listeners}\n\
         listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT\n\
         inter.broker.listener.name=PLAINTEXT\n\
         sasl.enabled.mechanisms=PLAIN\n\
         listener.name.sasl.plain.sasl.jaas.config={LOGIN} user_{user}=\"{password}\";\n\
         log.dirs={}\n\
         auto.create.topics.enable=false\n\
         offsets.topic.replication.factor=1\n\
         offsets.topic.num.partitions=1\n\
         transaction.state.log.replication.factor=1\n\
         transaction.state.log.min.isr=1\n\
         group.initial.rebalance.delay.ms=0\n",
        folder.join("kafka-data").display()
    )
}

fn logging_configuration(log: &Path) -> String {
    format!(
        "<Configuration status=\"warn\"><Appenders>\n\
         <File name=\"requests\" fileName=\"{}\"><PatternLayout pattern=\"%m%n\"/></File>\n\
         <Console name=\"rest\" target=\"SYSTEM_ERR\"><PatternLayout pattern=\"%p %c %m%n\"/></Console>\n\
         </Appenders><Loggers>\n\
         <Logger name=\"kafka.request.logger\" level=\"debug\" additivity=\"false\">\
         <AppenderRef ref=\"requests\"/></Logger>\n\
         <Root level=\"warn\"><AppenderRef ref=\"rest\"/></Root>\n\
         </Loggers></Configuration>\n",
        log.display()
    )
}

/// A request of the broker's log as it must be reported.
fn of_log(request: &Value) -> Result<Asked> {
    let key = request["requestHeader"]["requestApiKeyName"].as_str();
    let name = api_name(key.context("no name of an API")?);
    let (question, answer) = (&request["request"], &request["response"]);
    let topic = only_topic(&name, question);
    let route = topic.map_or_else(|| name.clone(), |topic| format!("{name} {topic}"));
    let code = match name.as_str() {
        // Behind a list of brokers and topics: it is not looked for.
        "Metadata" => None,
        "Produce" => answer["responses"][0]["partitionResponses"][0]["errorCode"].as_i64(),
        _ => answer["errorCode"].as_i64(),
    };
    let status = match code {
        None => "not known".to_owned(),
        Some(0) => "ok".to_owned(),
        Some(3) => "UNKNOWN_TOPIC_OR_PARTITION".to_owned(),
        Some(14) => "COORDINATOR_LOAD_IN_PROGRESS".to_owned(),
        Some(15) => "COORDINATOR_NOT_AVAILABLE".to_owned(),
        Some(79) => "MEMBER_ID_REQUIRED".to_owned(),
        Some(code) => code.to_string(),
    };
    Ok(Asked::new(&name, &route, &status))
}

/// `INIT_PRODUCER_ID`: `InitProducerId`.
fn api_name(key: &str) -> String {
    let word = |word: &str| {
        let (first, rest) = word.split_at(1.min(word.len()));
        first.to_owned() + &rest.to_ascii_lowercase()
    };
    key.split('_').map(word).collect()
}

/// The topic of a request, when it is about one and names it: newer clients give its id only.
fn only_topic<'a>(api: &str, request: &'a Value) -> Option<&'a str> {
    let (list, name) = match api {
        "Produce" => ("topicData", "name"),
        "Fetch" => ("topics", "topic"),
        "Metadata" => ("topics", "name"),
        _ => return None,
    };
    let topics = request[list].as_array()?;
    let [topic] = topics.as_slice() else {
        return None;
    };
    topic[name].as_str().filter(|name| !name.is_empty())
}
