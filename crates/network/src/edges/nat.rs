//! Translated addresses: what the server's end of a connection is called where the client is, and
//! the other way round.
//!
//! A packet may be translated several times on its way (in the client's namespace, by the node, in
//! front of the server), so translations are followed one after the other. Where two of them would
//! lead to different ends, because two namespaces use the same addresses, none is taken.

use std::collections::{HashMap, HashSet};

use profiler_model::sockets::{Ends, Tracked, Translation};

/// Translations of one connection that are followed.
const MAX_STEPS: usize = 4;

/// Where following the translations of a connection led.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followed {
    /// Nothing translates it.
    Same,
    To(Ends),
    /// Namespaces with the same addresses translate it differently.
    Unclear,
}

impl Followed {
    pub fn ends(self) -> Option<Ends> {
        match self {
            Self::To(ends) => Some(ends),
            Self::Same | Self::Unclear => None,
        }
    }
}

type Index = HashMap<Ends, Vec<(u32, Ends)>>;

/// Every translation of the node.
#[derive(Clone, Debug, Default)]
pub(super) struct Translations {
    forward: Index,
    backward: Index,
    /// Namespaces whose connection tracking was read to its end.
    whole: HashSet<u32>,
    /// Why others were not.
    failures: HashMap<u32, String>,
    /// Namespaces with more entries than are kept.
    cut: usize,
}

impl Translations {
    /// Takes what a namespace said, or why it said nothing.
    pub(super) fn add(&mut self, network_namespace: u32, tracked: Result<Tracked, String>) {
        let tracked = match tracked {
            Ok(tracked) => tracked,
            Err(reason) => {
                self.failures.insert(network_namespace, reason);
                return;
            }
        };
        if tracked.cut {
            self.cut += 1;
        } else {
            self.whole.insert(network_namespace);
        }
        for Translation { before, after } in tracked.translations {
            let forward = self.forward.entry(before).or_default();
            forward.push((network_namespace, after));
            let backward = self.backward.entry(after).or_default();
            backward.push((network_namespace, before));
        }
    }

    /// Whether the absence of a translation of the namespace means that there is none.
    pub(super) fn knows(&self, network_namespace: u32) -> bool {
        self.whole.contains(&network_namespace)
    }

    /// Why connection tracking could not be read, of one namespace where it could not.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failures.values().next().map(String::as_str)
    }

    /// Namespaces with more entries than are kept.
    pub(super) fn cut(&self) -> usize {
        self.cut
    }

    /// What the server sees of a connection, by what the client sees.
    pub(super) fn server_view(&self, client_namespace: u32, client_view: Ends) -> Followed {
        follow(&self.forward, client_namespace, client_view)
    }

    /// What the client sees of a connection, by what the server sees.
    pub(super) fn client_view(&self, server_namespace: u32, server_view: Ends) -> Followed {
        follow(&self.backward, server_namespace, server_view)
    }
}

fn follow(index: &Index, network_namespace: u32, start: Ends) -> Followed {
    let mut at = start;
    let mut place = network_namespace;
    for _ in 0..MAX_STEPS {
        let Some(found) = index.get(&at) else { break };
        // A packet passes the namespace that it is in first, and does not leave it over loopback.
        let here = found.iter().find(|(namespace, _)| *namespace == place);
        let confined = at.client.ip().is_loopback() || at.server.ip().is_loopback();
        let next = match (here, found.as_slice()) {
            (Some(here), _) => *here,
            (None, _) if confined => break,
            (None, [first, others @ ..]) if others.iter().all(|(_, ends)| *ends == first.1) => {
                *first
            }
            (None, []) => break,
            (None, _) => return Followed::Unclear,
        };
        (place, at) = next;
        if at == start {
            break;
        }
    }
    if at == start {
        Followed::Same
    } else {
        Followed::To(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(client: &str, server: &str) -> Ends {
        Ends {
            client: client.parse().unwrap(),
            server: server.parse().unwrap(),
        }
    }

    /// Both ends as text, the client's first.
    type Text = (&'static str, &'static str);

    fn translations(entries: &[(u32, Text, Text)]) -> Translations {
        let mut all = Translations::default();
        for (namespace, before, after) in entries {
            let tracked = Tracked {
                translations: vec![Translation {
                    before: ends(before.0, before.1),
                    after: ends(after.0, after.1),
                }],
                cut: false,
            };
            all.add(*namespace, Ok(tracked));
        }
        all
    }

    const CLIENT: &str = "10.0.0.1:40000";

    #[test]
    fn translations_are_followed_both_ways_over_the_node_and_in_front_of_the_server() {
        let hidden = ("10.0.1.1:51000", "10.0.1.2:8080");
        let all = translations(&[
            (1, (CLIENT, "10.96.0.1:80"), hidden),
            (2, hidden, (hidden.0, "10.0.1.2:15006")),
        ]);
        let (asked, seen) = (
            ends(CLIENT, "10.96.0.1:80"),
            ends(hidden.0, "10.0.1.2:15006"),
        );
        assert_eq!(all.server_view(7, asked), Followed::To(seen));
        assert_eq!(all.client_view(2, seen), Followed::To(asked));
    }

    #[test]
    fn equal_addresses_in_two_namespaces_are_told_apart_by_the_own_one_or_not_at_all() {
        let all = translations(&[
            (1, (CLIENT, "10.96.0.1:80"), (CLIENT, "127.0.0.1:15001")),
            (2, (CLIENT, "10.96.0.1:80"), (CLIENT, "127.0.0.1:15002")),
        ]);
        let asked = ends(CLIENT, "10.96.0.1:80");
        let to = |port: u16| Followed::To(ends(CLIENT, &format!("127.0.0.1:{port}")));
        assert_eq!(all.server_view(1, asked), to(15001));
        assert_eq!(all.server_view(2, asked), to(15002));
        assert_eq!(all.server_view(3, asked), Followed::Unclear);
    }

    #[test]
    fn loopback_stays_in_its_namespace() {
        let all = translations(&[(
            1,
            ("127.0.0.1:40000", "127.0.0.1:80"),
            ("127.0.0.1:40000", "127.0.0.1:8080"),
        )]);
        let asked = ends("127.0.0.1:40000", "127.0.0.1:80");
        assert_eq!(all.server_view(2, asked), Followed::Same);
        assert!(all.server_view(1, asked).ends().is_some());
    }

    #[test]
    fn translations_that_lead_back_end() {
        let all = translations(&[
            (1, (CLIENT, "10.0.0.2:1"), (CLIENT, "10.0.0.2:2")),
            (1, (CLIENT, "10.0.0.2:2"), (CLIENT, "10.0.0.2:1")),
        ]);
        assert_eq!(
            all.server_view(1, ends(CLIENT, "10.0.0.2:1")),
            Followed::Same
        );
    }
}
