//! The page in a real browser against a stand-in for the agent: no kernel, no root.

use profiler_tests::{assert_measured, cleanup::scratch_directory};

use crate::ui::{browse, run_script};

#[test]
fn every_page_holds_against_a_stand_in_with_hostile_text_and_a_troubled_agent() {
    let (folder, _guard) = scratch_directory("stand-in").unwrap();
    browse("mock-run.mjs", "browser", &folder, &[]);
}

#[test]
fn time_is_picked_in_the_strip_and_in_heat_maps_and_compared() {
    let (folder, _guard) = scratch_directory("page-time").unwrap();
    browse("time.mjs", "browser", &folder, &[]);
}

#[test]
fn pods_check_up_palette_keys_and_node_page_hold_against_a_stand_in() {
    let (folder, _guard) = scratch_directory("page-shell").unwrap();
    browse("shell-run.mjs", "browser", &folder, &[]);
}

#[test]
fn the_page_is_small_and_draws_a_million_frames_in_bounded_time_and_memory() {
    let (folder, _guard) = scratch_directory("page-bench").unwrap();
    let measured = run_script("bench.mjs", "browser", &folder, &[("SHORT", "1")]);
    assert_measured!(measured.is_ok(), "{}", measured.unwrap_err());
}
