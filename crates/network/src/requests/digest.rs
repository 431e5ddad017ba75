//! Numbers that stand for values which are only compared.

use std::{
    hash::{BuildHasher as _, Hash, RandomState},
    sync::OnceLock,
};

/// A number that is the same for the same value as long as the process runs, and for others with a chance of one in 2^64 that nobody
/// can raise.
pub(super) fn digest(value: impl Hash) -> u64 {
    static KEYS: OnceLock<RandomState> = OnceLock::new();
    KEYS.get_or_init(RandomState::new).hash_one(value)
}
