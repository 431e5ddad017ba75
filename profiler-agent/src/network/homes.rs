//! Which edge single connections belong to, for what is known of them and not of edges.
//!
//! Edges keep sums only. Where somebody wants it, the book remembers of connections that have ended
//! where they belonged, until it is asked.

use std::collections::HashMap;

use super::book::{Book, Pair};
use crate::model::EdgeKey;

/// Ended connections that may wait to be asked for; more are not told apart any more.
const MOST: usize = 262_144;

/// Ended connections, by the cookies of their sockets.
#[derive(Clone, Debug, Default)]
pub(super) struct Homes {
    ended: HashMap<u64, Pair>,
}

impl Book {
    /// From now on it is remembered where connections belonged that have ended.
    pub(crate) fn remember_homes(&mut self) {
        self.homes.get_or_insert_default();
    }

    pub(super) fn note_home(&mut self, cookie: u64, pair: Pair) {
        if let Some(homes) = &mut self.homes
            && homes.ended.len() < MOST
        {
            homes.ended.insert(cookie, pair);
        }
    }

    /// The edges of connections that ended since the last call, and of those that were met just now.
    pub(crate) fn take_homes(&mut self, met: &[(u64, Pair)]) -> HashMap<u64, EdgeKey> {
        let ended = self
            .homes
            .as_mut()
            .map(|homes| std::mem::take(&mut homes.ended));
        let all = ended.into_iter().flatten().chain(met.iter().copied());
        let mut keys: HashMap<Pair, EdgeKey> = HashMap::new();
        all.map(|(cookie, pair)| {
            let key = keys.entry(pair).or_insert_with(|| self.key(pair));
            (cookie, key.clone())
        })
        .collect()
    }
}
