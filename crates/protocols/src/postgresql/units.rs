//! What the server has still to answer.

use std::{collections::HashMap, sync::Arc};

use super::super::{Exchange, sql::Folded};

/// One step that the server answers, in the order of the client's messages.
#[derive(Debug)]
pub(super) enum Unit {
    /// The start of the session, up to the first `ReadyForQuery`.
    Startup(Exchange),
    /// A simple query or a function call, up to `ReadyForQuery`.
    Query(Exchange),
    /// With the statement, in case it fails and nothing else of its group runs.
    Parse(Prepared, Arc<Folded>),
    Bind(Prepared, Arc<Folded>),
    Describe,
    Close,
    Execute(Exchange),
    Sync,
}

/// When a message went by that is not a request by itself, and how long it was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prepared {
    pub(super) begin_ns: u64,
    pub(super) end_ns: u64,
    pub(super) bytes: u64,
}

/// Statements by their names, each folded.
#[derive(Debug)]
pub(super) struct Statements {
    named: HashMap<Vec<u8>, Arc<Folded>>,
    portals: HashMap<Vec<u8>, Arc<Folded>>,
    most: usize,
}

impl Statements {
    pub(super) fn new(most: usize) -> Self {
        Self {
            named: HashMap::new(),
            portals: HashMap::new(),
            most,
        }
    }

    pub(super) fn parse(&mut self, name: &[u8], statement: Arc<Folded>) {
        if self.named.len() >= self.most && !self.named.contains_key(name) {
            // Clients that never close what they prepare: the names are not known from here on.
            self.named.clear();
        }
        self.named.insert(name.to_vec(), statement);
    }

    pub(super) fn bind(&mut self, portal: &[u8], name: &[u8]) -> Option<Arc<Folded>> {
        let statement = self.named.get(name).cloned();
        match &statement {
            Some(statement) => {
                if self.portals.len() >= self.most && !self.portals.contains_key(portal) {
                    self.portals.clear();
                }
                self.portals.insert(portal.to_vec(), Arc::clone(statement));
            }
            // What the portal was bound to before does not hold any longer.
            None => drop(self.portals.remove(portal)),
        }
        statement
    }

    pub(super) fn portal(&self, portal: &[u8]) -> Option<&Folded> {
        self.portals.get(portal).map(Arc::as_ref)
    }

    pub(super) fn close(&mut self, kind: u8, name: &[u8]) {
        match kind {
            b'S' => drop(self.named.remove(name)),
            _ => drop(self.portals.remove(name)),
        }
    }

    /// Messages were missed: names may stand for something else by now.
    pub(super) fn forget(&mut self) {
        self.named.clear();
        self.portals.clear();
    }
}
