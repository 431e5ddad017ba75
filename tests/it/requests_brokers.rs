//! Requests to a broker of Kafka and to a server of `MongoDB`'s protocol, by clients of several makes: each is
//! reported once, and no secret with it.

use std::time::Duration;

use profiler_tests::{
    agent::{Agent, ServeOptions},
    cleanup::scratch_directory,
    peers::{
        asked::Asked,
        kafka::Kafka,
        lasting::Lasting,
        mongo::Mongo,
        watch::{Edges, Expected, Watch},
    },
};
use serde_json::{Value, json};

/// The first answer on a connection lists all versions, and replies of `find` end with how they went.
const OPTIONS: [&str; 1] = ["--capture-bytes=16320"];
const LIMIT: Duration = Duration::from_mins(1);

const TOPICS: &str = "org.apache.kafka.tools.TopicCommand";
const PERFORMANCE: &str = "org.apache.kafka.tools.ProducerPerformance";

/// One broker for all tests here: its start takes most of their time. Each has a topic of its own.
fn kafka() -> &'static Kafka {
    static KAFKA: Lasting<Kafka> = Lasting::new();
    KAFKA.get(Kafka::start).unwrap()
}

fn create_topic(kafka: &Kafka, name: &str) -> u32 {
    let server = format!("127.0.0.1:{}", kafka.port);
    let arguments = ["--bootstrap-server", &server, "--create", "--topic", name];
    kafka.tool(TOPICS, &arguments).unwrap()
}

fn count(asked: &[Asked], method: &str) -> usize {
    asked.iter().filter(|one| one.method == method).count()
}

/// Clients send nothing but secrets, names of topics and of collections.
#[track_caller]
fn check_secrets(text: &str) {
    let place = text.find("hidden");
    let around = place.and_then(|place| text.get(place.saturating_sub(200)..place + 100));
    assert_eq!(place, None, "{around:?}");
}

/// Every request that the broker logged for a listener since `before` was reported.
fn check_kafka(
    watch: Watch,
    kafka: &Kafka,
    port: u16,
    clients: &[u32],
    before: usize,
) -> Vec<Asked> {
    let asked = kafka.asked(port).unwrap().split_off(before);
    let report = watch.finish().unwrap();
    report
        .check(&Expected {
            protocol: "kafka",
            tls: false,
            edges: Edges::To(port),
            clients,
            servers: &[kafka.pid()],
            asked: &asked,
        })
        .unwrap();
    check_secrets(&report.json.to_string());
    asked
}

#[test]
fn requests_of_kafkas_own_clients_are_those_that_the_broker_logged() {
    let kafka = kafka();
    let port = kafka.port;
    let before = kafka.asked(port).unwrap().len();
    let watch = Watch::start_with(&[kafka.pid()], &OPTIONS).unwrap();
    let lines = ["hidden-key:hidden-one", "hidden-key:hidden-two"];
    let group = ["--group", "hidden-group"];
    let clients = [
        create_topic(kafka, "orders"),
        kafka.produce(port, "orders", &lines, &[]).unwrap(),
        // No answer.
        kafka
            .produce(port, "orders", &lines, &["--producer-property", "acks=0"])
            .unwrap(),
        kafka.consume(port, "orders", 4, &group).unwrap(),
    ];
    let asked = check_kafka(watch, kafka, port, &clients, before);
    let apis = "CreateTopics Metadata InitProducerId Produce Fetch FindCoordinator JoinGroup SyncGroup \
                OffsetFetch OffsetCommit ListOffsets LeaveGroup ApiVersions";
    for api in apis.split(' ') {
        assert!(count(&asked, api) > 0, "no {api}: {asked:?}");
    }
    let unanswered = asked
        .iter()
        .filter(|one| one.method == "Produce" && one.status == "not known");
    assert!(unanswered.count() > 0, "{asked:?}");
}

#[test]
fn topics_are_told_where_a_client_of_kafka_names_them() {
    const RECORDS: usize = 40;
    let kafka = kafka();
    create_topic(kafka, "invoices");
    let before = kafka.asked(kafka.port).unwrap().len();
    let watch = Watch::start_with(&[kafka.pid()], &OPTIONS).unwrap();
    let records = RECORDS.to_string();
    let clients = [
        &["produce", "invoices", &records][..],
        &["consume", "invoices", &records],
    ]
    .map(|arguments| kafka.python(arguments).unwrap());
    let asked = check_kafka(watch, kafka, kafka.port, &clients, before);
    let about = |route: &str| asked.iter().filter(|one| one.path == route).count();
    assert_eq!(about("Produce invoices"), RECORDS);
    assert!(about("Fetch invoices") > 0, "{asked:?}");
}

#[test]
fn a_thousand_requests_a_second_to_kafka_are_counted_as_the_broker_counts_them() {
    const RECORDS: usize = 5000;
    let kafka = kafka();
    create_topic(kafka, "records");
    let before = kafka.asked(kafka.port).unwrap().len();
    let watch = Watch::start_with(&[kafka.pid()], &[]).unwrap();
    let (records, server) = (
        RECORDS.to_string(),
        format!("bootstrap.servers=127.0.0.1:{}", kafka.port),
    );
    let arguments = ["--topic", "records", "--num-records", &records];
    let rate = ["--throughput", "1000", "--record-size", "100"];
    // Each record in a request of its own.
    let properties = [
        "--producer-props",
        &server,
        "batch.size=0",
        "linger.ms=0",
        "acks=1",
    ];
    let client = kafka.tool(PERFORMANCE, &[&arguments[..], &rate, &properties].concat());
    let asked = check_kafka(watch, kafka, kafka.port, &[client.unwrap()], before);
    assert_eq!(count(&asked, "Produce"), RECORDS);
}

#[test]
fn a_password_for_kafka_is_not_told() {
    let kafka = kafka();
    create_topic(kafka, "letters");
    let credentials = kafka.credentials().unwrap();
    let port = kafka.sasl_port;
    let before = kafka.asked(port).unwrap().len();
    let watch = Watch::start_with(&[kafka.pid()], &OPTIONS).unwrap();
    let lines = ["hidden-key:hidden-one"];
    let clients = [
        kafka.produce(
            port,
            "letters",
            &lines,
            &["--producer.config", &credentials],
        ),
        kafka.consume(port, "letters", 1, &["--consumer.config", &credentials]),
    ]
    .map(Result::unwrap);
    let asked = check_kafka(watch, kafka, port, &clients, before);
    assert!(count(&asked, "SaslAuthenticate") > 2, "{asked:?}");
}

#[test]
fn commands_of_pymongo_are_told_with_their_collections_and_errors() {
    let (folder, _guard) = scratch_directory("mongo").unwrap();
    let mongo = Mongo::start(&folder).unwrap();
    let watch = Watch::start_with(&[mongo.pid()], &OPTIONS).unwrap();
    let (client, asked) = mongo.client().unwrap();
    let report = watch.finish().unwrap();
    report
        .check(&Expected {
            protocol: "mongodb",
            tls: false,
            edges: Edges::To(mongo.port),
            clients: &[client],
            servers: &[mongo.pid()],
            asked: &asked,
        })
        .unwrap();
    check_secrets(&report.json.to_string());
    assert_eq!(report.errors(Edges::To(mongo.port)).unwrap(), 4);
}

/// Messages of Kafka with a password and documents of `MongoDB`, looked for in the API's answer, in the log
/// with everything that there is to log, and in what is kept on disk.
#[test]
fn secrets_of_brokers_are_neither_logged_nor_kept() {
    let (folder, _guard) = scratch_directory("secrets").unwrap();
    let kafka = kafka();
    create_topic(kafka, "parcels");
    let mongo = Mongo::start(&folder).unwrap();
    let credentials = kafka.credentials().unwrap();
    let mut agent = Agent::start_with(ServeOptions::with_arguments(["--log=trace"])).unwrap();
    let specification = json!({
        "kind": "requests",
        "target": {"pids": [kafka.pid(), mongo.pid()]},
        "duration_s": 300,
        "raw_paths": true,
        "samples": "all",
    });
    let task = agent.api.create_task(&specification).unwrap();
    agent.api.wait_sampling(&task, LIMIT).unwrap();
    let lines = ["hidden-key:hidden-one"];
    let arguments = ["--producer.config", &credentials];
    kafka
        .produce(kafka.sasl_port, "parcels", &lines, &arguments)
        .unwrap();
    mongo.client().unwrap();
    agent.api.stop_task(&task).unwrap();
    agent.api.wait_task(&task, &["cancelled"], LIMIT).unwrap();
    let path = format!("/api/v1/tasks/{task}/requests");
    let answer = agent.api.get_json(&path).unwrap();
    let told = |answer: &Value, method: &str| {
        let samples = answer["samples"].as_array().unwrap();
        samples.iter().any(|sample| sample["method"] == method)
    };
    for method in ["SaslAuthenticate", "Produce", "insert", "find"] {
        assert!(told(&answer, method), "no {method}");
    }
    check_secrets(&answer.to_string());
    check_secrets(&agent.log());
    agent.stop().unwrap();
    // What was kept, as the next agent reads it.
    let options = ServeOptions {
        data_dir: Some(agent.data_dir.clone()),
        ..ServeOptions::default()
    };
    let next = Agent::start_with(options).unwrap();
    let kept = next.api.get_json(&path).unwrap();
    assert_eq!(kept["samples"], answer["samples"]);
    check_secrets(&kept.to_string());
}
