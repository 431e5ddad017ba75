//! Which request out belongs to which request in.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;
use profiler_model::MatchClass;

use super::half::Half;

/// Requests in that are looked at for one request out. With more at once pairing is not possible.
const MOST_CANDIDATES: usize = 512;

/// Pairs (the request in first), and what is left.
pub(super) struct PairedRequests {
    pub(super) pairs: Vec<(MatchClass, Half, Half)>,
    pub(super) ins: Vec<Half>,
    pub(super) outs: Vec<Half>,
}

/// Pairs requests, the best evidence first.
pub(super) fn pairs(mut ins: Vec<Half>, mut outs: Vec<Half>) -> PairedRequests {
    ins.sort_by_key(|half| half.begin_ns);
    outs.sort_by_key(|half| half.begin_ns);
    let mut matching = Matching {
        in_pairs: vec![None; ins.len()],
        out_pairs: vec![None; outs.len()],
        doubtful: HashSet::new(),
        ins: &ins,
        outs: &outs,
    };
    matching.by_id(MatchClass::RequestId, |half| half.request_id);
    matching.by_id(MatchClass::TraceId, |half| half.trace_id);
    matching.by_likeness();
    let Matching {
        in_pairs,
        out_pairs,
        doubtful,
        ..
    } = matching;
    for at in doubtful {
        if let Some(half) = ins.get_mut(at) {
            half.is_doubtful = true;
        }
    }
    let is_free = |pairs: &[Option<Pair>], at: usize| pairs.get(at).is_none_or(Option::is_none);
    let mut outs: Vec<Option<Half>> = outs.into_iter().map(Some).collect();
    let mut found = PairedRequests {
        pairs: Vec::new(),
        ins: Vec::new(),
        outs: Vec::new(),
    };
    for (at, inner) in ins.into_iter().enumerate() {
        let pair = in_pairs.get(at).copied().flatten();
        let outer = pair.and_then(|pair| outs.get_mut(pair.other).and_then(Option::take));
        match (pair, outer) {
            (Some(pair), Some(outer)) => found.pairs.push((pair.class, inner, outer)),
            _ => found.ins.push(inner),
        }
    }
    let left = outs.into_iter().enumerate();
    let left = left.filter(|(at, _)| is_free(&out_pairs, *at));
    found.outs = left.filter_map(|(_, half)| half).collect();
    found
}

/// The other one of a pair, by its place.
#[derive(Clone, Copy, Debug)]
struct Pair {
    class: MatchClass,
    other: usize,
}

struct Matching<'a> {
    /// Both in the order of their begins.
    ins: &'a [Half],
    outs: &'a [Half],
    in_pairs: Vec<Option<Pair>>,
    out_pairs: Vec<Option<Pair>>,
    /// Requests in, by their places, that fitted a request out for which others did as well.
    doubtful: HashSet<usize>,
}

impl Matching<'_> {
    /// Pairs what has the same id. Several requests in may have it when they are part of one another, as
    /// a request to an application and one that comes back from it: then the innermost is meant.
    fn by_id(&mut self, class: MatchClass, id_of: impl Fn(&Half) -> Option<u64>) {
        for (ins, outs) in self.groups(id_of) {
            let longest_ns = self.longest_ns(&ins);
            let mut wanted: HashMap<usize, Vec<usize>> = HashMap::new();
            for out in outs {
                let candidates = self.containing(&ins, longest_ns, out);
                let Some(innermost) = candidates.last().copied() else {
                    continue;
                };
                if self.is_nested(&candidates) {
                    wanted.entry(innermost).or_default().push(out);
                }
            }
            for (inner, outs) in wanted {
                // One that was sent several times, or several that were sent for one, is not a pair.
                if let [out] = outs.as_slice() {
                    self.join(class, inner, *out);
                }
            }
        }
    }

    /// Pairs what is alike. Where several fit, the one that began first is taken, which is reported.
    fn by_likeness(&mut self) {
        for (ins, outs) in self.groups(|half| half.alike) {
            let longest_ns = self.longest_ns(&ins);
            let mut tied = HashSet::new();
            let mut several = HashSet::new();
            for out in outs {
                let candidates = self.containing(&ins, longest_ns, out);
                // What order has decided might as well be otherwise.
                let is_open = |inner: &usize| self.is_free_in(*inner) || tied.contains(inner);
                let fitting: Vec<usize> = candidates.iter().copied().filter(is_open).collect();
                let Some(first) = candidates.iter().find(|inner| self.is_free_in(**inner)) else {
                    several.extend(candidates);
                    continue;
                };
                let was_doubtful = self.ins.get(*first).is_some_and(|half| half.is_doubtful);
                let class = if fitting.len() == 1 && !was_doubtful {
                    MatchClass::Fingerprint
                } else {
                    tied.insert(*first);
                    MatchClass::Order
                };
                self.join(class, *first, out);
                if fitting.len() > 1 {
                    self.doubtful.extend(fitting);
                }
            }
            // One for which several went out is not a pair.
            for inner in several.difference(&tied) {
                self.part(*inner);
            }
        }
    }

    /// Those that are free and have the same key, by their places, in order.
    fn groups(&self, key_of: impl Fn(&Half) -> Option<u64>) -> Vec<(Vec<usize>, Vec<usize>)> {
        let mut groups: HashMap<u64, (Vec<usize>, Vec<usize>), RandomState> = HashMap::default();
        for (at, half) in self.ins.iter().enumerate() {
            if let Some(key) = key_of(half).filter(|_| self.is_free_in(at)) {
                groups.entry(key).or_default().0.push(at);
            }
        }
        for (at, half) in self.outs.iter().enumerate() {
            let is_free = self.out_pairs.get(at).is_some_and(Option::is_none);
            if let Some((_, outs)) = key_of(half)
                .filter(|_| is_free)
                .and_then(|key| groups.get_mut(&key))
            {
                outs.push(at);
            }
        }
        groups.into_values().collect()
    }

    /// How long the longest request in of a group took.
    fn longest_ns(&self, group: &[usize]) -> u64 {
        let group = group.iter().filter_map(|inner| self.ins.get(*inner));
        group.map(Half::duration_ns).max().unwrap_or(0)
    }

    /// Requests in of a group that may have led to the request out, in the order of their begins; none of them took longer than
    /// `longest_ns`.
    fn containing(&self, group: &[usize], longest_ns: u64, out: usize) -> Vec<usize> {
        let Some(outer) = self.outs.get(out) else {
            return Vec::new();
        };
        let begins_before = |inner: &usize| {
            self.ins
                .get(*inner)
                .is_some_and(|half| half.begin_ns <= outer.begin_ns)
        };
        let is_over = |inner: &usize| {
            self.ins
                .get(*inner)
                .is_some_and(|half| half.begin_ns.saturating_add(longest_ns) < outer.end_ns)
        };
        let end = group.partition_point(begins_before);
        let begin = group.partition_point(is_over);
        let recent = group.get(begin.max(end.saturating_sub(MOST_CANDIDATES))..end);
        let fits = |inner: &&usize| {
            self.ins
                .get(**inner)
                .is_some_and(|half| half.contains(outer))
        };
        recent
            .unwrap_or_default()
            .iter()
            .filter(fits)
            .copied()
            .collect()
    }

    /// Whether each contains the next.
    fn is_nested(&self, ins: &[usize]) -> bool {
        ins.windows(2).all(|two| match two {
            [a, b] => match (self.ins.get(*a), self.ins.get(*b)) {
                (Some(a), Some(b)) => a.contains(b),
                _ => false,
            },
            _ => true,
        })
    }

    fn is_free_in(&self, inner: usize) -> bool {
        self.in_pairs.get(inner).is_some_and(Option::is_none)
    }

    fn join(&mut self, class: MatchClass, inner: usize, outer: usize) {
        if let Some(place) = self.in_pairs.get_mut(inner) {
            *place = Some(Pair {
                class,
                other: outer,
            });
        }
        if let Some(place) = self.out_pairs.get_mut(outer) {
            *place = Some(Pair {
                class,
                other: inner,
            });
        }
    }

    fn part(&mut self, inner: usize) {
        let pair = self.in_pairs.get_mut(inner).and_then(Option::take);
        if let Some(place) = pair.and_then(|pair| self.out_pairs.get_mut(pair.other)) {
            *place = None;
        }
    }
}
