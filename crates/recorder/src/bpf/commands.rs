//! Programs that are never attached: the agent runs them ([`Hook::Command`](super::programs::Hook::Command)).

use std::time::Instant;

use aya::programs::{ProgramError, RawTracePoint};

use super::{load_error::LoadError, loaded_object::LoadedObject, programs::ProgramRow};

impl LoadedObject {
    pub(super) fn load_command(&mut self, row: &'static ProgramRow) -> Result<(), LoadError> {
        self.allow_program(row)?;
        let began = Instant::now();
        self.command(row)?.load().map_err(failed(row))?;
        self.note_load_time(row.name, began.elapsed());
        Ok(())
    }

    pub(super) fn command(
        &mut self,
        row: &'static ProgramRow,
    ) -> Result<&mut RawTracePoint, LoadError> {
        let program = self.ebpf().program_mut(row.name);
        program
            .ok_or(LoadError::NoProgram(row.name))?
            .try_into()
            .map_err(failed(row))
    }

    /// A handle of its own on a program that is loaded, for another thread.
    pub(super) fn shared_command(
        &mut self,
        row: &'static ProgramRow,
    ) -> Result<RawTracePoint, LoadError> {
        let info = self.command(row)?.info().map_err(failed(row))?;
        RawTracePoint::from_program_info(info, row.name.into()).map_err(failed(row))
    }
}

fn failed(row: &'static ProgramRow) -> impl Fn(ProgramError) -> LoadError {
    move |source| LoadError::Program {
        program: row.name,
        source: source.into(),
    }
}
