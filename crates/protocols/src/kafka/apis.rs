//! APIs by their keys: names, versions with the flexible form, where an error stands in the answer
//! (kafka.apache.org, "Kafka protocol guide"; the schemas in clients/src/main/resources/common/message).

/// An API that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Api {
    pub(super) key: i16,
    pub(super) name: &'static str,
    /// First version with compact fields and tags; `i16::MAX`: none.
    flexible_from: i16,
    pub(super) error: ErrorPlace,
}

/// Where an answer has the error of the whole request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrorPlace {
    /// In each part of it, or not looked for.
    None,
    /// It comes first.
    First,
    /// Behind the throttle time, which is there from a version on.
    BehindThrottle(i16),
    /// The same from the first version on, and there is none before it.
    From(i16),
    /// Of the first partition of the first topic.
    Produce,
}

pub(super) const PRODUCE: i16 = 0;
pub(super) const FETCH: i16 = 1;
pub(super) const METADATA: i16 = 3;
pub(super) const SASL_HANDSHAKE: i16 = 17;
pub(super) const API_VERSIONS: i16 = 18;

const NEVER: i16 = i16::MAX;

impl Api {
    pub(super) fn of(key: i16) -> Option<Self> {
        let place = usize::try_from(key).ok()?;
        let (name, flexible_from) = *NAMES.get(place)?;
        let error = match key {
            PRODUCE => ErrorPlace::Produce,
            FETCH => ErrorPlace::From(7),
            SASL_HANDSHAKE | API_VERSIONS | 36 => ErrorPlace::First,
            // JoinGroup has the throttle time from version 2 on.
            11 => ErrorPlace::BehindThrottle(2),
            // Heartbeat, LeaveGroup, SyncGroup.
            12..=14 => ErrorPlace::BehindThrottle(1),
            // InitProducerId, AddOffsetsToTxn, EndTxn, ConsumerGroupHeartbeat.
            22 | 25 | 26 | 68 => ErrorPlace::BehindThrottle(0),
            _ => ErrorPlace::None,
        };
        Some(Self {
            key,
            name,
            flexible_from,
            error,
        })
    }

    pub(super) fn is_flexible(self, version: i16) -> bool {
        version >= self.flexible_from
    }
}

const NAMES: [(&str, i16); 93] = [
    ("Produce", 9),
    ("Fetch", 12),
    ("ListOffsets", 6),
    ("Metadata", 9),
    ("LeaderAndIsr", 4),
    ("StopReplica", 2),
    ("UpdateMetadata", 6),
    ("ControlledShutdown", 3),
    ("OffsetCommit", 8),
    ("OffsetFetch", 6),
    ("FindCoordinator", 3),
    ("JoinGroup", 6),
    ("Heartbeat", 4),
    ("LeaveGroup", 4),
    ("SyncGroup", 4),
    ("DescribeGroups", 5),
    ("ListGroups", 3),
    ("SaslHandshake", NEVER),
    ("ApiVersions", 3),
    ("CreateTopics", 5),
    ("DeleteTopics", 4),
    ("DeleteRecords", 2),
    ("InitProducerId", 2),
    ("OffsetForLeaderEpoch", 4),
    ("AddPartitionsToTxn", 3),
    ("AddOffsetsToTxn", 3),
    ("EndTxn", 3),
    ("WriteTxnMarkers", 1),
    ("TxnOffsetCommit", 3),
    ("DescribeAcls", 2),
    ("CreateAcls", 2),
    ("DeleteAcls", 2),
    ("DescribeConfigs", 4),
    ("AlterConfigs", 2),
    ("AlterReplicaLogDirs", 2),
    ("DescribeLogDirs", 2),
    ("SaslAuthenticate", 2),
    ("CreatePartitions", 2),
    ("CreateDelegationToken", 2),
    ("RenewDelegationToken", 2),
    ("ExpireDelegationToken", 2),
    ("DescribeDelegationToken", 2),
    ("DeleteGroups", 2),
    ("ElectLeaders", 2),
    ("IncrementalAlterConfigs", 1),
    ("AlterPartitionReassignments", 0),
    ("ListPartitionReassignments", 0),
    ("OffsetDelete", NEVER),
    ("DescribeClientQuotas", 1),
    ("AlterClientQuotas", 1),
    ("DescribeUserScramCredentials", 0),
    ("AlterUserScramCredentials", 0),
    ("Vote", 0),
    ("BeginQuorumEpoch", 1),
    ("EndQuorumEpoch", 1),
    ("DescribeQuorum", 0),
    ("AlterPartition", 0),
    ("UpdateFeatures", 0),
    ("Envelope", 0),
    ("FetchSnapshot", 0),
    ("DescribeCluster", 0),
    ("DescribeProducers", 0),
    ("BrokerRegistration", 0),
    ("BrokerHeartbeat", 0),
    ("UnregisterBroker", 0),
    ("DescribeTransactions", 0),
    ("ListTransactions", 0),
    ("AllocateProducerIds", 0),
    ("ConsumerGroupHeartbeat", 0),
    ("ConsumerGroupDescribe", 0),
    ("ControllerRegistration", 0),
    ("GetTelemetrySubscriptions", 0),
    ("PushTelemetry", 0),
    ("AssignReplicasToDirs", 0),
    ("ListConfigResources", 0),
    ("DescribeTopicPartitions", 0),
    ("ShareGroupHeartbeat", 0),
    ("ShareGroupDescribe", 0),
    ("ShareFetch", 0),
    ("ShareAcknowledge", 0),
    ("AddRaftVoter", 0),
    ("RemoveRaftVoter", 0),
    ("UpdateRaftVoter", 0),
    ("InitializeShareGroupState", 0),
    ("ReadShareGroupState", 0),
    ("WriteShareGroupState", 0),
    ("DeleteShareGroupState", 0),
    ("ReadShareGroupStateSummary", 0),
    ("StreamsGroupHeartbeat", 0),
    ("StreamsGroupDescribe", 0),
    ("DescribeShareGroupOffsets", 0),
    ("AlterShareGroupOffsets", 0),
    ("DeleteShareGroupOffsets", 0),
];

/// Names of errors (org.apache.kafka.common.protocol.Errors); others are shown as numbers.
pub(super) fn error_name(code: i16) -> String {
    let name = match code {
        -1 => "UNKNOWN_SERVER_ERROR",
        1 => "OFFSET_OUT_OF_RANGE",
        2 => "CORRUPT_MESSAGE",
        3 => "UNKNOWN_TOPIC_OR_PARTITION",
        5 => "LEADER_NOT_AVAILABLE",
        6 => "NOT_LEADER_OR_FOLLOWER",
        7 => "REQUEST_TIMED_OUT",
        10 => "MESSAGE_TOO_LARGE",
        14 => "COORDINATOR_LOAD_IN_PROGRESS",
        15 => "COORDINATOR_NOT_AVAILABLE",
        16 => "NOT_COORDINATOR",
        17 => "INVALID_TOPIC_EXCEPTION",
        18 => "RECORD_LIST_TOO_LARGE",
        19 => "NOT_ENOUGH_REPLICAS",
        20 => "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        22 => "ILLEGAL_GENERATION",
        25 => "UNKNOWN_MEMBER_ID",
        27 => "REBALANCE_IN_PROGRESS",
        29 => "TOPIC_AUTHORIZATION_FAILED",
        30 => "GROUP_AUTHORIZATION_FAILED",
        31 => "CLUSTER_AUTHORIZATION_FAILED",
        33 => "UNSUPPORTED_SASL_MECHANISM",
        35 => "UNSUPPORTED_VERSION",
        42 => "INVALID_REQUEST",
        45 => "OUT_OF_ORDER_SEQUENCE_NUMBER",
        56 => "KAFKA_STORAGE_ERROR",
        58 => "SASL_AUTHENTICATION_FAILED",
        70 => "FETCH_SESSION_ID_NOT_FOUND",
        71 => "INVALID_FETCH_SESSION_EPOCH",
        79 => "MEMBER_ID_REQUIRED",
        87 => "INVALID_RECORD",
        other => return other.to_string(),
    };
    name.to_owned()
}

/// Errors that are the broker's, or of what it is made of.
pub(super) fn is_of_server(code: i16) -> bool {
    matches!(code, -1 | 5..=7 | 14..=16 | 19 | 20 | 56)
}
