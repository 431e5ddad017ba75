//! Separate debug files of a program: by build-id, and by the link that `.gnu_debuglink` is.
//!
//! They are looked for below the root of the process, where its container's packages put them, and
//! below our own. The link names a file in the program's folder, in `.debug` beside it, or below
//! `/usr/lib/debug`. A file is used when it says what it belongs to: the same build-id, or the
//! checksum that the link asks for. Everything found is as hostile as the program itself, so it is
//! opened like that, and copied before the ELF library sees it.

use std::{
    fs::File,
    io::Read as _,
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
};

use profiler_sandbox::broker;
use rustix::fs::{CWD, Mode, OFlags};

use super::remote_mounts::ProcessMounts;
use super::{
    elf_layout::{Layout, read_range},
    module_file::{Links, ModuleFile, Origin, open_in_root},
};

const FOLDER: &str = "/usr/lib/debug";
/// Largest `.gnu_debuglink`: a file name and a checksum.
const LINK_LIMIT: u64 = 4096;
/// Largest file whose checksum is computed, which takes some tenths of a second. Larger ones are
/// found by their build-id.
const CHECKSUM_LIMIT: u64 = 256 << 20;
const BUFFER_BYTES: usize = 256 * 1024;

/// A debug file with its headers.
#[derive(Debug)]
pub struct DebugFile {
    pub file: File,
    pub layout: Layout,
}

/// What `.gnu_debuglink` asks for.
#[derive(Debug, PartialEq, Eq)]
pub struct Link {
    name: Vec<u8>,
    checksum: u32,
}

/// Finds the debug file of a program.
pub fn find(origin: &Origin, program: &File, layout: &Layout, max_bytes: u64) -> Option<DebugFile> {
    let own = own_root();
    let own_mounts = ProcessMounts::of_agent();
    let roots = [
        Some((origin.root.as_fd(), origin.mounts.as_ref())),
        own.as_ref().map(|own| (own.as_fd(), Some(&own_mounts))),
    ];
    let roots = || roots.iter().flatten().copied();
    if let Some(path) = build_id_path(&layout.build_id) {
        let found = roots()
            .filter_map(|root| open(root, path.as_bytes(), max_bytes))
            .map(|(_, found)| found)
            .find(|found| found.layout.build_id == layout.build_id);
        if found.is_some() {
            return found;
        }
    }
    let link = read_link(program, layout)?;
    let identity = program.metadata().ok();
    roots().find_map(|root| {
        link_paths(&origin.path, &link.name)
            .into_iter()
            .find_map(|path| {
                let (opened, found) = open(root, &path, max_bytes.min(CHECKSUM_LIMIT))?;
                let itself = identity
                    .as_ref()
                    .is_some_and(|identity| opened.is_file(identity));
                let others = !found.layout.build_id.is_empty()
                    && !layout.build_id.is_empty()
                    && found.layout.build_id != layout.build_id;
                (!itself && !others && checksum(&found.file) == Some(link.checksum))
                    .then_some(found)
            })
    })
}

fn own_root() -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(CWD, "/", flags, Mode::empty()).ok()
}

/// Path of the debug file for a build-id, below a root.
fn build_id_path(build_id: &[u8]) -> Option<String> {
    let (first, rest) = build_id.split_first()?;
    if rest.is_empty() {
        return None;
    }
    let rest = super::build_id::hexadecimal(rest);
    Some(format!("{FOLDER}/.build-id/{first:02x}/{rest}.debug"))
}

fn link_paths(program: &[u8], name: &[u8]) -> [Vec<u8>; 3] {
    let folder = program
        .iter()
        .rposition(|byte| *byte == b'/')
        .map_or(&b""[..], |at| &program[..at]);
    [
        [folder, b"/", name].concat(),
        [folder, b"/.debug/", name].concat(),
        [FOLDER.as_bytes(), folder, b"/", name].concat(),
    ]
}

/// Size and place identify a file well enough to see that a link names the program itself.
struct Opened {
    device: u64,
    inode: u64,
}

impl Opened {
    fn is_file(&self, metadata: &std::fs::Metadata) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        (self.device, self.inode) == (metadata.dev(), metadata.ino())
    }
}

/// A root directory and what is mounted below it.
type Root<'a> = (BorrowedFd<'a>, Option<&'a ProcessMounts>);

fn open((root, mounts): Root<'_>, path: &[u8], max_bytes: u64) -> Option<(Opened, DebugFile)> {
    let opened = open_in_root(root, path, max_bytes, Links::Follow, mounts).ok()?;
    let ModuleFile { file, key, .. } = opened;
    broker::reads_also(key.device);
    let layout = Layout::read(&file).ok()?;
    let opened = Opened {
        device: key.device,
        inode: key.inode,
    };
    Some((opened, DebugFile { file, layout }))
}

pub fn read_link(program: &File, layout: &Layout) -> Option<Link> {
    let section = layout.section(".gnu_debuglink")?;
    let data = read_range(
        program,
        section.offset,
        section.bytes,
        LINK_LIMIT,
        ".gnu_debuglink",
    )
    .ok()?;
    parse_link(&data)
}

/// A name that ends in a zero, padding to a multiple of four, the checksum.
fn parse_link(data: &[u8]) -> Option<Link> {
    let end = data.iter().position(|byte| *byte == 0)?;
    let name = &data[..end];
    let at = (end + 1).next_multiple_of(4);
    let checksum: [u8; 4] = data.get(at..at.checked_add(4)?)?.try_into().ok()?;
    // A name, not a path: the folders are ours to choose.
    let plain = !name.is_empty() && !name.contains(&b'/') && name != b"." && name != b"..";
    plain.then(|| Link {
        name: name.to_vec(),
        checksum: u32::from_le_bytes(checksum),
    })
}

/// CRC-32 of the whole file, as zlib computes it.
fn checksum(file: &File) -> Option<u32> {
    let mut crc = flate2::Crc::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut file = file;
    let mut left = CHECKSUM_LIMIT;
    loop {
        let count = file.read(&mut buffer).ok()?;
        if count == 0 {
            return Some(crc.sum());
        }
        // A file that grows while it is read has no end.
        left = left.checked_sub(count as u64)?;
        crc.update(&buffer[..count]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_names_with_a_checksum() {
        let link = |data: &[u8]| parse_link(data);
        let expected = Link {
            name: b"a.debug".to_vec(),
            checksum: 0x0403_0201,
        };
        assert_eq!(link(b"a.debug\0\x01\x02\x03\x04"), Some(expected));
        assert_eq!(link(b"ab\0\0\x01\0\0\0").map(|link| link.checksum), Some(1));
        for refused in [
            &b""[..],
            b"a",
            b"a\0",
            b"a\0\0\0\x01\0\0",
            b"\0\0\0\0\x01\0\0\0",
            b"../../etc/x\0\x01\0\0\0",
            b"..\0\0\x01\0\0\0",
        ] {
            assert_eq!(link(refused), None, "{refused:?}");
        }
    }

    #[test]
    fn paths_follow_the_conventions() {
        let text = |path: Vec<u8>| String::from_utf8(path).unwrap();
        assert_eq!(
            link_paths(b"/usr/bin/x", b"x.debug").map(text),
            [
                "/usr/bin/x.debug",
                "/usr/bin/.debug/x.debug",
                "/usr/lib/debug/usr/bin/x.debug"
            ]
        );
        assert_eq!(
            build_id_path(&[0xab, 0x01, 0xff]).unwrap(),
            "/usr/lib/debug/.build-id/ab/01ff.debug"
        );
        assert_eq!(build_id_path(&[0xab]), None);
        assert_eq!(build_id_path(&[]), None);
    }
}
