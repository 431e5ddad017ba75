//! What a client asks for (`enum_server_command` in `my_command.h`; of MariaDB `mysql_com.h`).

/// Commands whose answers are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Quit,
    InitDb,
    Query,
    FieldList,
    Refresh,
    Shutdown,
    Statistics,
    ProcessInfo,
    ProcessKill,
    Debug,
    Ping,
    ChangeUser,
    Prepare,
    Execute,
    SendLongData,
    CloseStatement,
    ResetStatement,
    SetOption,
    Fetch,
    ResetConnection,
    /// Commands that make the connection one for replication.
    Replication,
    /// MariaDB's `COM_STMT_BULK_EXECUTE`.
    BulkExecute,
}

impl Command {
    pub(super) fn of(kind: u8) -> Option<Self> {
        Some(match kind {
            0x01 => Self::Quit,
            0x02 => Self::InitDb,
            0x03 => Self::Query,
            0x04 => Self::FieldList,
            0x07 => Self::Refresh,
            0x08 => Self::Shutdown,
            0x09 => Self::Statistics,
            0x0a => Self::ProcessInfo,
            0x0c => Self::ProcessKill,
            0x0d => Self::Debug,
            0x0e => Self::Ping,
            0x11 => Self::ChangeUser,
            0x12 | 0x13 | 0x15 | 0x1e => Self::Replication,
            0x16 => Self::Prepare,
            0x17 => Self::Execute,
            0x18 => Self::SendLongData,
            0x19 => Self::CloseStatement,
            0x1a => Self::ResetStatement,
            0x1b => Self::SetOption,
            0x1c => Self::Fetch,
            0x1f => Self::ResetConnection,
            0xfa => Self::BulkExecute,
            _ => return None,
        })
    }

    /// Shown where no statement says more.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Quit => "QUIT",
            Self::InitDb => "USE",
            Self::Query => "QUERY",
            Self::FieldList => "FIELDS",
            Self::Refresh => "REFRESH",
            Self::Shutdown => "SHUTDOWN",
            Self::Statistics => "STATISTICS",
            Self::ProcessInfo => "PROCESSES",
            Self::ProcessKill => "KILL",
            Self::Debug => "DEBUG",
            Self::Ping => "PING",
            Self::ChangeUser => "CHANGE USER",
            Self::Prepare => "PREPARE",
            Self::Execute | Self::BulkExecute => "EXECUTE",
            Self::SendLongData => "SEND LONG DATA",
            Self::CloseStatement => "CLOSE STATEMENT",
            Self::ResetStatement => "RESET STATEMENT",
            Self::SetOption => "SET OPTION",
            Self::Fetch => "FETCH",
            Self::ResetConnection => "RESET CONNECTION",
            Self::Replication => "REPLICATION",
        }
    }

    /// These get no answer.
    pub(super) fn is_silent(self) -> bool {
        matches!(self, Self::Quit | Self::SendLongData | Self::CloseStatement)
    }
}
