//! Why a file has no inferred names.

/// Why nothing is inferred about a file.
#[derive(Debug, thiserror::Error)]
pub enum NotInferred {
    #[error("read: {0}")]
    Read(#[from] std::io::Error),
    #[error("not a little-endian 64-bit ELF file")]
    NotElf,
    #[error("{what} is out of bounds")]
    OutOfBounds { what: &'static str },
    #[error("{what} exceeds its limit")]
    TooLarge { what: &'static str },
    #[error("the unwind table is missing or malformed")]
    NoFunctions,
}
