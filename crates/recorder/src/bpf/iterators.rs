//! Passes over all threads: which of them sleep already, and where those sleep that still do.

use std::time::Instant;

use aya::{
    Btf,
    programs::{Iter, ProgramError},
};

use super::{
    load_error::LoadError,
    loaded_object::LoadedObject,
    programs::{ProgramRow, row},
};

/// Puts threads that sleep into the table of waits.
const ASLEEP: &ProgramRow = row("off_cpu_asleep");

/// Takes the kernel stacks of threads in that table.
const SLEEPERS: &ProgramRow = row("off_cpu_sleepers");

impl LoadedObject {
    /// Loads the program of [`Self::find_asleep`], without running it.
    pub(super) fn load_asleep(&mut self, btf: &Btf) -> Result<(), LoadError> {
        self.allow_program(ASLEEP)?;
        let began = Instant::now();
        self.load_iterator(ASLEEP, btf)?;
        self.note_load_time(ASLEEP.name, began.elapsed());
        Ok(())
    }

    /// Puts threads that sleep into the table of waits; call once, when waits are measured and the
    /// clock has started.
    pub fn find_asleep(&mut self) -> Result<(), LoadError> {
        if let Some(error) = self.take_asleep_failure() {
            return Err(error);
        }
        self.run_iterator(ASLEEP.name)
    }

    /// Loads the program of [`Self::visit_sleepers`], without running it.
    pub(super) fn load_sleepers(&mut self, btf: &Btf) -> Result<(), LoadError> {
        self.load_iterator(SLEEPERS, btf)
    }

    /// Has the kernel stacks taken of threads that are off the CPU now; those of others are taken
    /// when they come back.
    pub fn visit_sleepers(&mut self) -> Result<(), LoadError> {
        self.run_iterator(SLEEPERS.name)
    }

    fn load_iterator(&mut self, row: &'static ProgramRow, btf: &Btf) -> Result<(), LoadError> {
        let visited = row.hook.target().ok_or(LoadError::NoProgram(row.name))?;
        self.iterator(row.name)?
            .load(visited, btf)
            .map_err(|source| load_failed(row.name, source))
    }

    fn run_iterator(&mut self, name: &'static str) -> Result<(), LoadError> {
        let attach_failed = |source: ProgramError| LoadError::Attach {
            program: name,
            source: source.into(),
        };
        let run_failed = |source: std::io::Error| LoadError::Run {
            program: name,
            source,
        };
        let program = self.iterator(name)?;
        let link = program.attach().map_err(attach_failed)?;
        let link = program.take_link(link).map_err(attach_failed)?;
        let mut pass = link
            .into_file()
            .map_err(|error| run_failed(std::io::Error::other(error)))?;
        // The program runs inside of the reads and writes nothing.
        std::io::copy(&mut pass, &mut std::io::sink()).map_err(run_failed)?;
        Ok(())
    }

    fn iterator(&mut self, name: &'static str) -> Result<&mut Iter, LoadError> {
        self.ebpf()
            .program_mut(name)
            .ok_or(LoadError::NoProgram(name))?
            .try_into()
            .map_err(|source| load_failed(name, source))
    }
}

fn load_failed(program: &'static str, source: ProgramError) -> LoadError {
    LoadError::Program {
        program,
        source: source.into(),
    }
}
