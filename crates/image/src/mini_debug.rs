//! The symbol table that some distributions leave in stripped files: `.gnu_debugdata` is a small
//! ELF file, compressed with xz.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    panic::{AssertUnwindSafe, catch_unwind},
};

use lzma_rust2::XzReader;
use rustix::fs::MemfdFlags;

use super::elf_layout::{Layout, read_range};

/// Largest section; Fedora's largest have 2 MB.
const COMPRESSED_LIMIT: u64 = 16 << 20;
/// Most that is decompressed.
const CONTENT_LIMIT: u64 = 32 << 20;
/// Memory for the decoder's dictionary. `xz -9` needs 65 MiB, the tools that write this section 8.
const MEMORY_LIMIT_KB: u32 = 80 << 10;
const BUFFER_BYTES: usize = 64 * 1024;

/// Decompresses the section into memory of our own; `None` when there is none, or none that is
/// believed.
pub fn open(file: &File, layout: &Layout) -> Option<File> {
    let section = layout.section(".gnu_debugdata")?;
    let compressed = read_range(
        file,
        section.offset,
        section.bytes,
        COMPRESSED_LIMIT,
        ".gnu_debugdata",
    )
    .ok()?;
    // The decoder keeps nothing outside of what is thrown away here when it panics.
    let content = catch_unwind(AssertUnwindSafe(|| decompress(&compressed, CONTENT_LIMIT)));
    match content {
        Ok(Ok(content)) => Some(content),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a .gnu_debugdata is not used");
            None
        }
        Err(_) => {
            tracing::warn!("the xz decoder panicked; the file's .gnu_debugdata is not used");
            None
        }
    }
}

fn decompress(compressed: &[u8], limit: u64) -> std::io::Result<File> {
    let mut content: File =
        rustix::fs::memfd_create("profiler-agent:mini-debug", MemfdFlags::CLOEXEC)?.into();
    let mut decoder = XzReader::new_mem_limit(compressed, false, MEMORY_LIMIT_KB);
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut total = 0;
    loop {
        let count = decoder.read(&mut buffer)?;
        if count == 0 {
            return Ok(content);
        }
        total += count as u64;
        if total > limit {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        content.write_all(&buffer[..count])?;
    }
}

#[cfg(test)]
mod tests {
    use lzma_rust2::{XzOptions, XzWriter};

    use super::*;

    const ROOM: u64 = 1 << 20;

    /// Compresses as xz(1) does.
    fn compress(content: impl Iterator<Item = Vec<u8>>, options: XzOptions) -> Vec<u8> {
        let mut writer = XzWriter::new(Vec::new(), options).unwrap();
        for piece in content {
            writer.write_all(&piece).unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    fn content_comes_back() {
        let stream = compress(
            std::iter::once(b"symbols".to_vec()),
            XzOptions::with_preset(6),
        );
        let mut content = String::new();
        let mut file = decompress(&stream, ROOM).unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        file.read_to_string(&mut content).unwrap();
        assert_eq!(content, "symbols");
    }

    #[test]
    fn broken_streams_are_refused() {
        assert!(decompress(b"", ROOM).is_err());
        assert!(decompress(b"not xz at all, but long enough for a header", ROOM).is_err());
        let sound = compress(
            (0..100).map(|piece| vec![piece; 100]),
            XzOptions::with_preset(1),
        );
        assert!(decompress(&sound[..sound.len() / 2], ROOM).is_err());
        // Whatever byte is damaged: an error or another content, and never a panic.
        for at in 0..sound.len() {
            let mut damaged = sound.clone();
            damaged[at] ^= 0x55;
            drop(decompress(&damaged, ROOM));
        }
    }

    #[test]
    fn endless_streams_and_huge_dictionaries_are_refused() {
        let zeros = || std::iter::repeat_n(vec![0; 1 << 19], 3);
        let bomb = compress(zeros(), XzOptions::with_preset(0));
        assert!(bomb.len() < 1 << 12);
        let error = decompress(&bomb, ROOM).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::FileTooLarge);
        let mut options = XzOptions::with_preset(0);
        options.lzma_options.dict_size = 256 << 20;
        let greedy = compress(std::iter::once(vec![0; 100]), options);
        assert!(decompress(&greedy, ROOM).is_err());
    }
}
