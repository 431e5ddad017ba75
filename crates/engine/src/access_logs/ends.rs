//! Which processes of this node are at the other ends of Envoys' connections.

use profiler_host::{envoy_admin::is_envoy, process::ProcessTable, sockets::Owners};
use profiler_model::{Address, Endpoint, Process, ProcessKey};
use profiler_network::requests::{OtherEnd, UnknownEnd};

use super::peers::{self, Holder, Listings, Sought};

/// Where an end is looked for.
pub(super) fn sought(end: &UnknownEnd) -> Sought {
    Sought {
        end: end.end,
        other: end.envoy,
        namespace: end.namespace,
        may_listen: !end.is_client,
    }
}

/// The processes of ends, in the order of `sought`. Blocks.
pub(super) fn find(
    sought: &[Sought],
    listings: &Listings,
    table: &ProcessTable,
    owners: &mut Owners,
) -> Vec<Option<OtherEnd>> {
    let found = peers::find(sought, listings, table, owners);
    let process = |holder: Option<Holder>| {
        let Holder { process, is_exact } = holder?;
        // By one address alone it may be the application behind the sidecar that the connection was redirected to.
        let end = other_end(process, table)?;
        Some(OtherEnd {
            may_report: end.may_report || !is_exact,
            ..end
        })
    };
    found.into_iter().map(process).collect()
}

/// A process that has both addresses of a connection.
pub(super) fn other_end(process: ProcessKey, table: &ProcessTable) -> Option<OtherEnd> {
    let process = table.process(process)?;
    Some(OtherEnd {
        process: endpoint(&process),
        may_report: is_envoy(&process),
    })
}

/// A process as the end of an edge, without an address.
pub(super) fn endpoint(process: &Process) -> Endpoint {
    Endpoint {
        pid: Some(process.key.pid),
        start_ticks: Some(process.key.start_ticks),
        comm: process.comm.clone(),
        container: process
            .container
            .as_ref()
            .map(|container| container.id.clone()),
        address: NOWHERE,
    }
}

/// In place of an address that entries name.
pub(super) const NOWHERE: Address = Address::Unix(String::new());
