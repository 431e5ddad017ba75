//! The vDSO: code that the kernel maps into every process and that is in no file.
//!
//! All processes of one kind share the kernel's one image, so the agent's own serves for all.

use profiler_image::{elf_copy, elf_layout::Layout, elf_symbols::Bounds, vdso_image};
use profiler_model::NameSource;

use super::native::{Image, Names};

#[derive(Debug)]
pub(crate) struct Vdso {
    image: Image,
    pub(crate) build_id: Vec<u8>,
    bytes: u64,
}

impl Vdso {
    /// Copies the agent's own vDSO; `None` where there is none.
    pub(crate) fn read() -> Option<Self> {
        let (opened, bytes) = vdso_image::own_image()?;
        let layout = Layout::read(&opened.file).ok()?;
        let keys = std::hash::RandomState::new();
        let copy = elf_copy::copy(&opened.file, &layout, &mut Bounds::none(), 0, &keys).ok()?;
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
        // The image begins with its ELF header, which is not a function.
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
