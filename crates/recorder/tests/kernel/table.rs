//! The table of programs against the object that is embedded.

use profiler_recorder::bpf::{PROGRAMS, embedded_programs};

#[test]
fn each_program_of_the_object_has_one_row() {
    let mut rows: Vec<&str> = PROGRAMS.iter().map(|row| row.name).collect();
    rows.sort_unstable();
    let programs = embedded_programs().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(programs, rows);
}
