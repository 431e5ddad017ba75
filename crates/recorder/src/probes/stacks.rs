//! What the kernel sent once and refers to later: stacks by hash, threads by id.

use std::{collections::HashMap, hash::Hash};

/// A table of two generations, so that it stays bounded without losing what is still referred to.
///
/// The kernel side forgets what it sent at each rotation and sends it again with the next use;
/// references that are already on their way find it in the previous generation.
#[derive(Debug)]
pub(super) struct Generations<K, V> {
    current: HashMap<K, V>,
    previous: HashMap<K, V>,
}

impl<K: Eq + Hash, V> Generations<K, V> {
    pub(super) fn new() -> Self {
        Self {
            current: HashMap::new(),
            previous: HashMap::new(),
        }
    }

    pub(super) fn insert(&mut self, key: K, value: V) {
        self.current.insert(key, value);
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.current.get(key).or_else(|| self.previous.get(key))
    }

    /// Moves an entry to the current generation.
    pub(super) fn keep(&mut self, key: &K) {
        if let Some((key, value)) = self.previous.remove_entry(key) {
            self.current.entry(key).or_insert(value);
        }
    }

    /// Entries of the current generation.
    pub(super) fn len(&self) -> usize {
        self.current.len()
    }

    pub(super) fn rotate(&mut self) {
        self.previous = std::mem::take(&mut self.current);
    }
}

#[cfg(test)]
mod tests {
    use super::Generations;

    #[test]
    fn an_entry_survives_one_rotation_and_not_two() {
        let mut table = Generations::new();
        table.insert(1, "one");
        table.rotate();
        assert_eq!(table.get(&1), Some(&"one"));
        table.insert(2, "two");
        table.rotate();
        assert_eq!(table.get(&1), None);
        assert_eq!(table.get(&2), Some(&"two"));
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn an_entry_that_is_kept_survives_every_rotation() {
        let mut table = Generations::new();
        table.insert(1, "one");
        for _ in 0..3 {
            table.rotate();
            table.keep(&1);
            table.keep(&2);
        }
        assert_eq!(table.get(&1), Some(&"one"));
        assert_eq!(table.len(), 1);
    }
}
