//! Names that were found before, bounded in bytes.

use std::{collections::HashMap, hash::Hash, rc::Rc};

use super::native::Names;

/// Bytes that the key, the pointers and the table cost for each entry, about.
const ENTRY_BYTES: usize = 64;

/// A cache of two generations: what is asked for moves to the young one, and when that is full it
/// becomes the old one, whose unused entries are dropped. Each use costs one or two
/// look-ups and no list has to be kept in order.
#[derive(Debug)]
pub(crate) struct NameCache<Key> {
    young: HashMap<Key, Rc<Names>>,
    old: HashMap<Key, Rc<Names>>,
    young_bytes: usize,
    old_bytes: usize,
    limit_bytes: usize,
}

impl<Key: Copy + Eq + Hash> NameCache<Key> {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        let (young, old) = (HashMap::new(), HashMap::new());
        Self {
            young,
            old,
            young_bytes: 0,
            old_bytes: 0,
            limit_bytes,
        }
    }

    pub(crate) fn get(&mut self, key: Key) -> Option<Rc<Names>> {
        if let Some(names) = self.young.get(&key) {
            return Some(Rc::clone(names));
        }
        let names = self.old.remove(&key)?;
        self.old_bytes = self.old_bytes.saturating_sub(names.weight() + ENTRY_BYTES);
        self.insert(key, Rc::clone(&names));
        Some(names)
    }

    pub(crate) fn insert(&mut self, key: Key, names: Rc<Names>) {
        self.young_bytes += names.weight() + ENTRY_BYTES;
        if let Some(replaced) = self.young.insert(key, names) {
            self.young_bytes = self
                .young_bytes
                .saturating_sub(replaced.weight() + ENTRY_BYTES);
        }
        if self.young_bytes > self.limit_bytes / 2 {
            self.old = std::mem::take(&mut self.young);
            self.old_bytes = std::mem::take(&mut self.young_bytes);
        }
    }

    /// Bytes kept, about.
    pub(crate) fn bytes(&self) -> usize {
        self.young_bytes + self.old_bytes
    }
}

#[cfg(test)]
mod tests {
    use profiler_model::NameSource;

    use super::*;

    fn names(text: &str) -> Rc<Names> {
        Rc::new(Names::one(text.to_owned(), NameSource::ElfSymbol))
    }

    #[test]
    fn stays_below_its_limit_and_keeps_what_is_used() {
        let mut cache = NameCache::new(64 * 1024);
        cache.insert(0, names("used"));
        for key in 1..10_000 {
            cache.insert(key, names("some function name"));
            assert!(cache.get(0).is_some(), "{key}");
            assert!(cache.bytes() <= 64 * 1024 + 512, "{}", cache.bytes());
        }
        assert!(cache.get(1).is_none());
        assert_eq!(cache.get(9_999), Some(names("some function name")));
    }
}
