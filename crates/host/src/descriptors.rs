//! How many files the agent may have open: one for each program and library that it profiles.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files to what this process may have at most.
///
/// The usual limit of 1024 is for programs that use `select`, which the agent does not. A node-wide
/// task can see more files than that. Nothing changes where the kernel refuses.
pub fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}

/// How many files this process may have open; `None`: any number.
pub fn most_open_files() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_files_as_allowed_may_be_open() {
        raise_limit();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}
