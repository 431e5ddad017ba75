//! What makes connections one edge, as it is kept with each connection and each request is counted by it.

use std::{
    hash::{Hash, Hasher},
    ops::Deref,
    sync::Arc,
};

use profiler_model::EdgeKey;

use super::digest::digest;

/// An [`EdgeKey`] with its hash, which connections share: an edge is looked up several times for each request, and has two names
/// and a dozen numbers.
#[derive(Clone, Debug)]
pub(super) struct SharedEdge(Arc<Hashed>);

#[derive(Debug)]
struct Hashed {
    hash: u64,
    key: EdgeKey,
}

impl SharedEdge {
    pub(super) fn new(key: EdgeKey) -> Self {
        let hash = digest(&key);
        Self(Arc::new(Hashed { hash, key }))
    }
}

impl Deref for SharedEdge {
    type Target = EdgeKey;

    fn deref(&self) -> &EdgeKey {
        &self.0.key
    }
}

impl PartialEq for SharedEdge {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.hash == other.0.hash && self.0.key == other.0.key)
    }
}

impl Eq for SharedEdge {}

impl Hash for SharedEdge {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}
