//! Questions to a stripped file that are about particular texts and classes rather than about all
//! of its functions.

use std::fs::File;

use super::{
    NotInferred, classes::Classes, code::scan_section, input::Input, memory::Memory, relocations,
    sections::Machine, sections::Sections, table::mangled_name, vtables,
};

/// Bytes of all code that is searched. Envoy has 68 MB.
const CODE_LIMIT: u64 = 256 << 20;
/// Texts that one question may find.
const TEXTS_LIMIT: usize = 64;
/// References that one question may find.
const REFERENCES_LIMIT: usize = 100_000;

/// A text of the file's data: where it ends, and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundText {
    /// Address behind its last byte.
    pub end: u64,
    pub text: Vec<u8>,
}

impl FoundText {
    /// Where a text that this one ends in begins; linkers keep only the longer one.
    pub fn start_of_last(&self, bytes: usize) -> u64 {
        self.end.wrapping_sub(bytes as u64)
    }
}

/// Code that takes an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoundReference {
    pub from: u64,
    pub target: u64,
}

#[derive(Debug)]
pub struct SearchedFile<'file> {
    input: Input<'file>,
    sections: Sections,
    memory: Memory,
}

impl<'file> SearchedFile<'file> {
    pub fn read(file: &'file File) -> Result<Self, NotInferred> {
        let mut input = Input::file(file)?;
        let sections = Sections::read(&mut input)?;
        let memory = Memory::load(&mut input, &sections)?;
        Ok(Self {
            input,
            sections,
            memory,
        })
    }

    pub fn is_x86_64(&self) -> bool {
        self.sections.machine == Machine::X86_64
    }

    /// The zero-terminated texts that are wanted.
    pub fn texts(&self, wanted: &dyn Fn(&[u8]) -> bool) -> Vec<FoundText> {
        let mut found = Vec::new();
        for region in &self.memory.regions {
            let mut start = region.address;
            for text in region.bytes.split(|byte| *byte == 0) {
                let end = start.wrapping_add(text.len() as u64);
                if !text.is_empty() && wanted(text) && found.len() < TEXTS_LIMIT {
                    found.push(FoundText {
                        end,
                        text: text.to_vec(),
                    });
                }
                start = end.wrapping_add(1);
            }
        }
        found
    }

    /// The instructions that take one of some addresses, in order.
    pub fn references(&mut self, targets: &[u64]) -> Result<Vec<FoundReference>, NotInferred> {
        let mut sorted = targets.to_vec();
        sorted.sort_unstable();
        let mut found = Vec::new();
        let (Some(first), Some(last)) = (sorted.first().copied(), sorted.last().copied()) else {
            return Ok(found);
        };
        let mut left = CODE_LIMIT;
        for section in self.sections.code() {
            left = left
                .checked_sub(section.bytes)
                .ok_or(NotInferred::TooLarge { what: "code" })?;
            let mut take = |from, target| {
                if (first..=last).contains(&target)
                    && sorted.binary_search(&target).is_ok()
                    && found.len() < REFERENCES_LIMIT
                {
                    found.push(FoundReference { from, target });
                }
            };
            scan_section(&mut self.input, section, self.sections.placement, &mut take)?;
        }
        found.sort_unstable();
        // Pieces of code that are read overlap.
        found.dedup();
        Ok(found)
    }

    /// The functions in the tables of a class, by its mangled name; none when there is no such
    /// class.
    pub fn methods(&mut self, class: &str) -> Result<Vec<u64>, NotInferred> {
        let links = relocations::apply(&mut self.input, &self.sections, &mut self.memory)?;
        let classes = Classes::find(&self.memory, &links);
        let is_wanted = |id: u32| mangled_name(&self.memory, &classes, id) == class;
        let count = u32::try_from(classes.all.len()).unwrap_or(u32::MAX);
        let wanted: Vec<u32> = (0..count).filter(|id| is_wanted(*id)).collect();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let slots = vtables::slots(&self.memory, &classes, &self.sections);
        let mut functions: Vec<u64> = slots
            .iter()
            .filter(|slot| wanted.contains(&slot.class))
            .map(|slot| slot.function)
            .collect();
        functions.sort_unstable();
        functions.dedup();
        Ok(functions)
    }
}
