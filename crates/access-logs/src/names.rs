//! Envoy's enumerations: one table each with the numbers in messages and the names that command operators write.

/// When an entry was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Stage {
    /// At the start of a stream; more entries follow.
    Start,
    /// During a long stream, with the numbers so far.
    Open,
    /// At the end, with final numbers.
    End,
    /// The log type is not known to this version.
    #[default]
    Unknown,
}

/// The event that wrote an entry: `envoy.data.accesslog.v3.AccessLogType`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LogType {
    /// Envoys before 1.26, and logs of listeners.
    #[default]
    NotSet,
    TcpUpstreamConnected,
    TcpPeriodic,
    TcpConnectionEnd,
    DownstreamStart,
    DownstreamPeriodic,
    DownstreamEnd,
    UpstreamPoolReady,
    UpstreamPeriodic,
    /// One attempt of the router, if `upstream_log` is configured. The request has an entry of its own.
    UpstreamEnd,
    DownstreamTunnelSuccessfullyEstablished,
    UdpTunnelUpstreamConnected,
    UdpPeriodic,
    UdpSessionEnd,
    TcpConnectionStart,
    /// A number or name unknown to this version.
    Unrecognised,
}

/// The subject of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A request of HTTP.
    Http,
    /// A connection of TCP, or a session of UDP.
    #[default]
    Tcp,
}

/// A row of the table of log types.
#[derive(Clone, Copy, Debug)]
pub struct LogTypeRow {
    pub log_type: LogType,
    pub number: i32,
    pub name: &'static str,
    /// For `NotSet` this is `End`, unless `intermediate_log_entry` is set.
    pub stage: Stage,
    /// `None`: of either kind.
    pub kind: Option<Kind>,
}

/// All log types but `Unrecognised`, by number.
pub const LOG_TYPES: [LogTypeRow; 15] = {
    use LogType as T;
    const HTTP: Option<Kind> = Some(Kind::Http);
    const TCP: Option<Kind> = Some(Kind::Tcp);
    [
        log_type(T::NotSet, 0, "NotSet", Stage::End, None),
        log_type(
            T::TcpUpstreamConnected,
            1,
            "TcpUpstreamConnected",
            Stage::Start,
            TCP,
        ),
        log_type(T::TcpPeriodic, 2, "TcpPeriodic", Stage::Open, TCP),
        log_type(T::TcpConnectionEnd, 3, "TcpConnectionEnd", Stage::End, TCP),
        log_type(T::DownstreamStart, 4, "DownstreamStart", Stage::Start, HTTP),
        log_type(
            T::DownstreamPeriodic,
            5,
            "DownstreamPeriodic",
            Stage::Open,
            HTTP,
        ),
        log_type(T::DownstreamEnd, 6, "DownstreamEnd", Stage::End, HTTP),
        log_type(
            T::UpstreamPoolReady,
            7,
            "UpstreamPoolReady",
            Stage::Start,
            HTTP,
        ),
        log_type(
            T::UpstreamPeriodic,
            8,
            "UpstreamPeriodic",
            Stage::Open,
            HTTP,
        ),
        log_type(T::UpstreamEnd, 9, "UpstreamEnd", Stage::End, HTTP),
        log_type(
            T::DownstreamTunnelSuccessfullyEstablished,
            10,
            "DownstreamTunnelSuccessfullyEstablished",
            Stage::Start,
            HTTP,
        ),
        log_type(
            T::UdpTunnelUpstreamConnected,
            11,
            "UdpTunnelUpstreamConnected",
            Stage::Start,
            TCP,
        ),
        log_type(T::UdpPeriodic, 12, "UdpPeriodic", Stage::Open, TCP),
        log_type(T::UdpSessionEnd, 13, "UdpSessionEnd", Stage::End, TCP),
        log_type(
            T::TcpConnectionStart,
            14,
            "TcpConnectionStart",
            Stage::Start,
            TCP,
        ),
    ]
};

const fn log_type(
    log_type: LogType,
    number: i32,
    name: &'static str,
    stage: Stage,
    kind: Option<Kind>,
) -> LogTypeRow {
    LogTypeRow {
        log_type,
        number,
        name,
        stage,
        kind,
    }
}

impl LogType {
    pub fn row(self) -> Option<&'static LogTypeRow> {
        LOG_TYPES.iter().find(|row| row.log_type == self)
    }

    pub fn stage(self) -> Stage {
        self.row().map_or(Stage::Unknown, |row| row.stage)
    }

    pub(crate) fn from_number(number: i32) -> Self {
        let place = usize::try_from(number).ok();
        let row = place.and_then(|place| LOG_TYPES.get(place));
        row.map_or(Self::Unrecognised, |row| row.log_type)
    }

    pub(crate) fn from_name(name: &[u8]) -> Self {
        let row = LOG_TYPES.iter().find(|row| row.name.as_bytes() == name);
        row.map_or(Self::Unrecognised, |row| row.log_type)
    }
}

/// The version of HTTP that the client spoke.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HttpVersion {
    #[default]
    Unknown,
    Http10,
    Http11,
    Http2,
    Http3,
}

/// Versions of HTTP with their numbers in messages (`HTTPAccessLogEntry.HTTPVersion`) and as `%PROTOCOL%` writes them.
const HTTP_VERSIONS: [(HttpVersion, i32, &str); 4] = [
    (HttpVersion::Http10, 1, "HTTP/1.0"),
    (HttpVersion::Http11, 2, "HTTP/1.1"),
    (HttpVersion::Http2, 3, "HTTP/2"),
    (HttpVersion::Http3, 4, "HTTP/3"),
];

impl HttpVersion {
    pub fn name(self) -> Option<&'static str> {
        let row = HTTP_VERSIONS.iter().find(|(version, ..)| *version == self);
        row.map(|(_, _, name)| *name)
    }

    pub(crate) fn from_number(number: i32) -> Self {
        let row = HTTP_VERSIONS.iter().find(|(_, own, _)| *own == number);
        row.map_or(Self::Unknown, |(version, ..)| *version)
    }

    pub(crate) fn from_name(name: &[u8]) -> Self {
        let mut rows = HTTP_VERSIONS.iter();
        let row = rows.find(|(_, _, own)| own.as_bytes() == name);
        row.map_or(Self::Unknown, |(version, ..)| *version)
    }
}

/// The version of TLS on a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TlsVersion {
    /// No TLS, or none that is known.
    #[default]
    Unknown,
    Tls10,
    Tls11,
    Tls12,
    Tls13,
}

/// Versions of TLS with their numbers in messages (`TLSProperties.TLSVersion`) and as `%DOWNSTREAM_TLS_VERSION%` writes them.
const TLS_VERSIONS: [(TlsVersion, i32, &str); 4] = [
    (TlsVersion::Tls10, 1, "TLSv1"),
    (TlsVersion::Tls11, 2, "TLSv1.1"),
    (TlsVersion::Tls12, 3, "TLSv1.2"),
    (TlsVersion::Tls13, 4, "TLSv1.3"),
];

impl TlsVersion {
    pub fn name(self) -> Option<&'static str> {
        let row = TLS_VERSIONS.iter().find(|(version, ..)| *version == self);
        row.map(|(_, _, name)| *name)
    }

    pub(crate) fn from_number(number: i32) -> Self {
        let row = TLS_VERSIONS.iter().find(|(_, own, _)| *own == number);
        row.map_or(Self::Unknown, |(version, ..)| *version)
    }

    pub(crate) fn from_name(name: &[u8]) -> Self {
        let mut rows = TLS_VERSIONS.iter();
        let row = rows.find(|(_, _, own)| own.as_bytes() == name);
        row.map_or(Self::Unknown, |(version, ..)| *version)
    }
}

/// Methods in the order of their numbers in `envoy.config.core.v3.RequestMethod`. Envoy sends 0 for all others.
const METHODS: [&str; 10] = [
    "", "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH",
];

/// The method of a number; empty if it is unknown.
pub(crate) fn method_name(number: i32) -> &'static str {
    let method = usize::try_from(number)
        .ok()
        .and_then(|number| METHODS.get(number));
    method.copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{HttpVersion, LOG_TYPES, LogType, Stage, TlsVersion, method_name};

    #[test]
    fn a_log_type_is_found_by_number_and_name() {
        for (number, row) in LOG_TYPES.iter().enumerate() {
            assert_eq!(usize::try_from(row.number), Ok(number));
            assert_eq!(LogType::from_number(row.number), row.log_type);
            assert_eq!(LogType::from_name(row.name.as_bytes()), row.log_type);
            assert_eq!(format!("{:?}", row.log_type), row.name);
        }
        assert_eq!(LogType::from_number(15), LogType::Unrecognised);
        assert_eq!(LogType::from_name(b"downstreamend"), LogType::Unrecognised);
        assert_eq!(LogType::Unrecognised.stage(), Stage::Unknown);
    }

    #[test]
    fn the_stage_is_that_of_the_name() {
        for row in &LOG_TYPES {
            let expected = match row.name {
                "NotSet" => Stage::End,
                name if name.ends_with("End") => Stage::End,
                name if name.ends_with("Periodic") => Stage::Open,
                _ => Stage::Start,
            };
            assert_eq!(row.stage, expected, "{}", row.name);
        }
    }

    #[test]
    fn versions_are_found_by_number_and_name() {
        for number in 1..=4 {
            let http = HttpVersion::from_number(number);
            assert_eq!(
                HttpVersion::from_name(http.name().unwrap().as_bytes()),
                http
            );
            let tls = TlsVersion::from_number(number);
            assert_eq!(TlsVersion::from_name(tls.name().unwrap().as_bytes()), tls);
        }
        for number in [-1, 0, 5] {
            assert_eq!(HttpVersion::from_number(number).name(), None);
            assert_eq!(TlsVersion::from_number(number).name(), None);
        }
        assert_eq!(HttpVersion::from_name(b"HTTP/1"), HttpVersion::Unknown);
    }

    #[test]
    fn methods_have_names() {
        let names: Vec<&str> = [-1, 0, 1, 3, 9, 10].map(method_name).to_vec();
        assert_eq!(names, ["", "", "GET", "POST", "PATCH", ""]);
    }
}
