//! The headers of a hostile ELF file, read by bounded `pread` calls and never by `mmap`: a file
//! that shrinks under a mapping kills the reader with `SIGBUS`.

use std::{fs::File, io, os::unix::fs::FileExt as _};

use object::{
    Endianness,
    elf::{
        self, FileHeader32, FileHeader64, NT_GNU_BUILD_ID, PF_X, PT_GNU_EH_FRAME, PT_LOAD, PT_NOTE,
        SHT_NOBITS, SHT_NULL,
    },
    pod,
    read::elf::{FileHeader, NoteIterator, ProgramHeader as _, SectionHeader as _},
};

use super::build_id;

/// Program headers that are read; linkers write about a dozen.
const SEGMENTS_LIMIT: usize = 512;
/// Section headers that are read. Executables have some dozens.
const SECTIONS_LIMIT: usize = 8 * 1024;
/// Largest table of section names.
const SECTION_NAMES_LIMIT: u64 = 1 << 20;
/// Largest note segment.
const NOTES_LIMIT: u64 = 64 * 1024;

/// Why an ELF file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ElfError {
    #[error("read: {0}")]
    Read(#[from] io::Error),
    #[error("not a little-endian ELF file")]
    NotElf,
    #[error("{what} is out of bounds")]
    OutOfBounds { what: &'static str },
}

/// An executable `PT_LOAD` segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Segment {
    pub offset: u64,
    pub address: u64,
    pub bytes: u64,
}

impl Segment {
    /// True when all of `[address, address + bytes)` lies inside.
    pub fn contains(&self, address: u64, bytes: u64) -> bool {
        address
            .checked_sub(self.address)
            .and_then(|start| start.checked_add(bytes))
            .is_some_and(|end| end <= self.bytes)
    }
}

/// A section with a content in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    pub name: String,
    /// Where it is linked; 0 when it is not loaded.
    pub address: u64,
    pub offset: u64,
    pub bytes: u64,
    pub compressed: bool,
    /// Index of the related section: the string table of a symbol table.
    pub link: usize,
}

#[derive(Debug, Default)]
pub struct Layout {
    /// 64-bit file.
    pub wide: bool,
    pub machine: u16,
    /// Where the program begins.
    pub entry: u64,
    pub segments: Vec<Segment>,
    /// `.eh_frame_hdr`, by its program header.
    pub eh_frame_header: Option<Segment>,
    /// By section index; `None` for those without content.
    pub sections: Vec<Option<Section>>,
    pub build_id: Vec<u8>,
}

impl Layout {
    pub fn read(file: &File) -> Result<Self, ElfError> {
        let mut ident = [0; 64];
        let count = file.read_at(&mut ident, 0)?;
        let ident = &ident[..count];
        if !ident.starts_with(&elf::ELFMAG) {
            return Err(ElfError::NotElf);
        }
        match ident.get(4) {
            Some(2) => read_class::<FileHeader64<Endianness>>(file, ident),
            Some(1) => read_class::<FileHeader32<Endianness>>(file, ident),
            Some(_) | None => Err(ElfError::NotElf),
        }
    }

    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections
            .iter()
            .flatten()
            .find(|section| section.name == name)
    }

    /// True when the file has neither symbols of its own functions nor debug information.
    pub fn is_stripped(&self) -> bool {
        [".symtab", ".debug_info", ".zdebug_info"]
            .into_iter()
            .all(|name| self.section(name).is_none())
    }

    /// The executable segments if the file holds their content: in a debug file it does not.
    pub fn code_segments(&self) -> Vec<Segment> {
        let holds = |segment: &&Segment| segment.bytes > 0;
        self.segments.iter().filter(holds).copied().collect()
    }

    /// The address at which the file's code at `offset` is linked.
    pub fn segment_of_offset(segments: &[Segment], offset: u64) -> Option<&Segment> {
        segments.iter().find(|segment| {
            offset
                .checked_sub(segment.offset)
                .is_some_and(|inside| inside < segment.bytes)
        })
    }
}

/// Reads a range whose length must not exceed `limit`.
pub fn read_range(
    file: &File,
    offset: u64,
    bytes: u64,
    limit: u64,
    what: &'static str,
) -> Result<Vec<u8>, ElfError> {
    let size = file.metadata()?.len();
    let inside = offset.checked_add(bytes).is_some_and(|end| end <= size);
    let length = usize::try_from(bytes)
        .ok()
        .filter(|_| inside && bytes <= limit);
    let length = length.ok_or(ElfError::OutOfBounds { what })?;
    let mut data = vec![0; length];
    file.read_exact_at(&mut data, offset)?;
    Ok(data)
}

fn read_class<Elf>(file: &File, ident: &[u8]) -> Result<Layout, ElfError>
where
    Elf: FileHeader<Endian = Endianness>,
{
    let header = Elf::parse(ident).map_err(|_| ElfError::NotElf)?;
    let endian = header.endian().map_err(|_| ElfError::NotElf)?;
    if endian != Endianness::Little {
        return Err(ElfError::NotElf);
    }
    let mut layout = Layout {
        wide: header.is_type_64(),
        machine: header.e_machine(endian).0,
        entry: header.e_entry(endian).into(),
        ..Layout::default()
    };
    read_segments(file, header, endian, &mut layout)?;
    // Without section headers (or with damaged ones) there are no names, but still a build-id.
    layout.sections = read_sections(file, header, endian).unwrap_or_default();
    Ok(layout)
}

fn read_segments<Elf>(
    file: &File,
    header: &Elf,
    endian: Endianness,
    layout: &mut Layout,
) -> Result<(), ElfError>
where
    Elf: FileHeader<Endian = Endianness>,
{
    let count = usize::from(header.e_phnum(endian));
    let entry = size_of::<Elf::ProgramHeader>();
    if count > SEGMENTS_LIMIT || usize::from(header.e_phentsize(endian)) != entry {
        return Err(ElfError::OutOfBounds {
            what: "program headers",
        });
    }
    let bytes = (count * entry) as u64;
    let data = read_range(
        file,
        header.e_phoff(endian).into(),
        bytes,
        bytes,
        "program headers",
    )?;
    let (headers, _) = pod::slice_from_bytes::<Elf::ProgramHeader>(&data, count).map_err(|()| {
        ElfError::OutOfBounds {
            what: "program headers",
        }
    })?;
    for program in headers {
        let (offset, bytes) = program.file_range(endian);
        if program.p_type(endian) == PT_LOAD && program.p_flags(endian).0 & PF_X.0 != 0 {
            let address = program.p_vaddr(endian).into();
            // Later sums of address and size must not overflow.
            if address.checked_add(bytes).is_some() && offset.checked_add(bytes).is_some() {
                layout.segments.push(Segment {
                    offset,
                    address,
                    bytes,
                });
            }
        } else if program.p_type(endian) == PT_GNU_EH_FRAME {
            layout.eh_frame_header = Some(Segment {
                offset,
                address: program.p_vaddr(endian).into(),
                bytes,
            });
        } else if program.p_type(endian) == PT_NOTE && layout.build_id.is_empty() {
            let Ok(notes) = read_range(file, offset, bytes, NOTES_LIMIT, "notes") else {
                continue;
            };
            let align = program.p_align(endian);
            layout.build_id = find_build_id::<Elf>(endian, align, &notes).unwrap_or_default();
        }
    }
    Ok(())
}

/// The build-id in the content of a note segment or section.
fn find_build_id<Elf>(endian: Endianness, align: Elf::Word, notes: &[u8]) -> Option<Vec<u8>>
where
    Elf: FileHeader<Endian = Endianness>,
{
    let mut notes = NoteIterator::<Elf>::new(endian, align, notes).ok()?;
    while let Some(note) = notes.next().ok()? {
        if note.name() == elf::ELF_NOTE_GNU && note.n_type(endian) == NT_GNU_BUILD_ID {
            let id = note.desc();
            return (!id.is_empty() && id.len() <= build_id::LIMIT).then(|| id.to_vec());
        }
    }
    None
}

/// The build-id in notes of this machine's own kernel, as in `/sys/kernel/notes`.
pub fn kernel_build_id(notes: &[u8]) -> Vec<u8> {
    find_build_id::<FileHeader64<Endianness>>(Endianness::Little, 4, notes).unwrap_or_default()
}

fn read_sections<Elf>(
    file: &File,
    header: &Elf,
    endian: Endianness,
) -> Result<Vec<Option<Section>>, ElfError>
where
    Elf: FileHeader<Endian = Endianness>,
{
    let what = "section headers";
    let count = usize::from(header.e_shnum(endian));
    let entry = size_of::<Elf::SectionHeader>();
    if count > SECTIONS_LIMIT || usize::from(header.e_shentsize(endian)) != entry {
        return Err(ElfError::OutOfBounds { what });
    }
    let bytes = (count * entry) as u64;
    let data = read_range(file, header.e_shoff(endian).into(), bytes, bytes, what)?;
    let (headers, _) = pod::slice_from_bytes::<Elf::SectionHeader>(&data, count)
        .map_err(|()| ElfError::OutOfBounds { what })?;
    let names = headers
        .get(usize::from(header.e_shstrndx(endian).0))
        .ok_or(ElfError::OutOfBounds {
            what: "section names",
        })?;
    let (offset, bytes) = (names.sh_offset(endian).into(), names.sh_size(endian).into());
    let names = read_range(file, offset, bytes, SECTION_NAMES_LIMIT, "section names")?;
    let sections = headers.iter().map(|section| {
        let kind = section.sh_type(endian);
        if kind == SHT_NULL || kind == SHT_NOBITS {
            return None;
        }
        Some(Section {
            name: text_at(&names, section.sh_name(endian) as usize)?.to_owned(),
            address: section.sh_addr(endian).into(),
            offset: section.sh_offset(endian).into(),
            bytes: section.sh_size(endian).into(),
            compressed: section.sh_flags(endian).0 & elf::SHF_COMPRESSED.0 != 0,
            link: section.sh_link(endian) as usize,
        })
    });
    Ok(sections.collect())
}

/// The zero-terminated UTF-8 text at `start`.
pub fn text_at(table: &[u8], start: usize) -> Option<&str> {
    let rest = table.get(start..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&rest[..end]).ok()
}
