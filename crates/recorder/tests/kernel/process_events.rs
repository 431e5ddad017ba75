//! The programs that follow processes.

use profiler_host::process::ProcessTable;
use profiler_recorder::{
    bpf::{Group, programs_of},
    probes::{ProbeStatuses, ProcessEvents},
};
use profiler_recording::{ProbeState, ProbeStatusSource as _};

use super::object::standing;

#[test]
fn each_program_is_attached_without_the_others() {
    for denied in programs_of(&[Group::ProcessEvents]) {
        let (object, failures) = standing(&[denied.name]);
        let failures: Vec<String> = failures.iter().map(ToString::to_string).collect();
        let expected = format!("{} is denied by --deny-probe", denied.name);
        assert_eq!(failures, [expected]);
        let loaded = object.programs();
        for row in programs_of(&[Group::ProcessEvents]) {
            let is_loaded = loaded.iter().any(|program| program.name == row.name);
            assert_eq!(is_loaded, row.name != denied.name, "{}", row.name);
        }
    }
}

#[test]
fn the_status_board_has_what_runs_as_long_as_the_agent() {
    let statuses = ProbeStatuses::default();
    let _events = ProcessEvents::start(ProcessTable::new(), &statuses, &[]).unwrap();
    let board = statuses.probes();
    for row in programs_of(&[Group::ProcessEvents, Group::Standing]) {
        let status = board.iter().find(|status| status.name == row.name);
        let status = status.unwrap_or_else(|| panic!("no {} in {board:?}", row.name));
        assert_eq!(status.state, ProbeState::Attached, "{status:?}");
        assert_eq!(status.minimum_kernel, row.minimum_kernel);
    }
}
