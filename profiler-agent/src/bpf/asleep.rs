//! The pass over all threads that finds those which sleep already.

use std::{io::Read as _, time::Instant};

use aya::{
    Btf,
    programs::{Iter, ProgramError},
};

use super::loader::{LoadError, LoadedObject};

const PROGRAM: &str = "off_cpu_asleep";

fn load_failed(source: ProgramError) -> LoadError {
    LoadError::Program {
        program: PROGRAM,
        source: source.into(),
    }
}

fn attach_failed(source: ProgramError) -> LoadError {
    LoadError::Attach {
        program: PROGRAM,
        source: source.into(),
    }
}

impl LoadedObject {
    /// Loads the program, without running it.
    pub(super) fn load_asleep(&mut self, btf: &Btf) -> Result<(), LoadError> {
        self.allow(PROGRAM)?;
        let began = Instant::now();
        self.asleep_program()?
            .load("task", btf)
            .map_err(load_failed)?;
        self.note_load_time(PROGRAM, began.elapsed());
        Ok(())
    }

    /// Puts threads that sleep into the table of waits; call once, when waits are measured and the
    /// clock has started.
    pub fn find_asleep(&mut self) -> Result<(), LoadError> {
        if let Some(error) = self.take_asleep_failure() {
            return Err(error);
        }
        let program = self.asleep_program()?;
        let link = program.attach().map_err(attach_failed)?;
        let link = program.take_link(link).map_err(attach_failed)?;
        let run = |error: std::io::Error| LoadError::Run {
            program: PROGRAM,
            source: error,
        };
        let mut pass = link
            .into_file()
            .map_err(|error| run(std::io::Error::other(error)))?;
        // The program runs inside of the reads and writes nothing.
        let mut nothing = Vec::new();
        pass.read_to_end(&mut nothing).map_err(run)?;
        Ok(())
    }

    fn asleep_program(&mut self) -> Result<&mut Iter, LoadError> {
        self.ebpf()
            .program_mut(PROGRAM)
            .ok_or(LoadError::NoProgram(PROGRAM))?
            .try_into()
            .map_err(load_failed)
    }
}
