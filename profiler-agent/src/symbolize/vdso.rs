//! The vDSO: code that the kernel maps into every process and that is in no file.
//!
//! All processes of one kind share the kernel's one image, so the agent's own serves for all. It is
//! read through `/proc/self/mem`, so that no pointer into the agent's memory has to be made.

use std::{
    fs::File,
    io::{self, Write as _},
    os::unix::fs::FileExt as _,
};

use rustix::fs::MemfdFlags;

use super::{
    elf_copy,
    elf_layout::Layout,
    elf_symbols::Bounds,
    maps::{Backing, read_mappings},
    native::{Image, Names},
};
use crate::model::NameSource;

/// Largest image that is believed.
const SIZE_LIMIT: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Vdso {
    image: Image,
    pub(crate) build_id: Vec<u8>,
    bytes: u64,
}

impl Vdso {
    /// Copies the agent's own vDSO; `None` where there is none.
    pub(crate) fn read() -> Option<Self> {
        let mappings = read_mappings(File::open("/proc/self/maps").ok()?).ok()?;
        let own = mappings
            .into_iter()
            .find(|mapping| mapping.backing == Backing::Vdso)?;
        let bytes = own.end - own.start;
        let file = copy_memory(own.start, bytes).ok()?;
        let layout = Layout::read(&file).ok()?;
        let keys = std::hash::RandomState::new();
        let copy = elf_copy::copy(&file, &layout, &mut Bounds::none(), 0, &keys).ok()?;
        let image = Image::open(&copy, &layout.segments).ok()?;
        Some(Self {
            image,
            build_id: layout.build_id,
            bytes,
        })
    }

    /// Names of an offset in a vDSO mapping of `mapping_bytes`. One of another size is that of
    /// another kind of process (32-bit) or was cut, so its offsets mean something else.
    pub(crate) fn names(&self, offset: u64, mapping_bytes: u64) -> Names {
        if mapping_bytes != self.bytes {
            return Names::none();
        }
        let mut names = self.image.names(offset).unwrap_or_else(|_| Names::none());
        if names.source != NameSource::None {
            names.source = NameSource::Vdso;
        }
        names
    }
}

fn copy_memory(start: u64, bytes: u64) -> io::Result<File> {
    let length = usize::try_from(bytes).ok().filter(|_| bytes <= SIZE_LIMIT);
    let length = length.ok_or(io::ErrorKind::InvalidData)?;
    let mut content = vec![0; length];
    File::open("/proc/self/mem")?.read_exact_at(&mut content, start)?;
    let mut file: File =
        rustix::fs::memfd_create("profiler-agent:vdso", MemfdFlags::CLOEXEC)?.into();
    file.write_all(&content)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_vdso_names_its_functions_and_nothing_between_them() {
        let vdso = Vdso::read().expect("this machine must have a vDSO");
        let names: Vec<String> = (0..vdso.bytes)
            .step_by(16)
            .map(|offset| vdso.names(offset, vdso.bytes))
            .filter(|names| names.source == NameSource::Vdso)
            .map(|names| names.functions[0].name.to_string())
            .collect();
        assert!(
            names.iter().any(|name| name.contains("clock_gettime")),
            "{names:?}"
        );
        // The image begins with its ELF header, which is no function.
        assert_eq!(vdso.names(0, vdso.bytes), Names::none());
        assert_eq!(vdso.names(vdso.bytes, vdso.bytes), Names::none());
        assert!(!vdso.build_id.is_empty());
    }

    #[test]
    fn a_vdso_of_another_size_has_no_names() {
        let vdso = Vdso::read().unwrap();
        assert!(
            (0..vdso.bytes).all(|offset| vdso.names(offset, vdso.bytes - 4096) == Names::none())
        );
    }
}
