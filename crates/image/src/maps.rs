//! The executable mappings of a process, from `/proc/PID/maps`.

use std::io::{BufRead as _, BufReader, Read};

use profiler_sandbox::broker::Device;

/// Largest maps file that is read: 65,530 mappings with long paths fit.
pub const MAPS_LIMIT: usize = 32 << 20;
/// Longest line that is understood; longer ones are skipped.
const LINE_LIMIT: usize = 8 * 1024;
/// Executable mappings that are kept.
const MAPPINGS_LIMIT: usize = 16 * 1024;

/// What an executable mapping shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backing {
    /// A file; the path is as the process's mount namespace (and the process) names it.
    File {
        path: Vec<u8>,
        inode: u64,
    },
    Vdso,
    /// Memory without a file; the label is the kernel's or the process's, or empty.
    Anonymous {
        label: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub start: u64,
    /// First address behind the mapping.
    pub end: u64,
    /// Offset in the file of the first byte.
    pub offset: u64,
    /// File system of the file; 0:0 without one.
    pub device: Device,
    pub backing: Backing,
}

/// Reads mappings, ordered by address. Lines that cannot be understood are skipped.
pub fn read_mappings(reader: impl Read) -> std::io::Result<Vec<Mapping>> {
    let mut reader = BufReader::with_capacity(64 * 1024, reader.take(MAPS_LIMIT as u64));
    let mut mappings: Vec<Mapping> = Vec::new();
    let mut line = Vec::new();
    while mappings.len() < MAPPINGS_LIMIT {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.len() <= LINE_LIMIT
            && let Some(mapping) = parse_line(line.strip_suffix(b"\n").unwrap_or(&line))
        {
            mappings.push(mapping);
        }
    }
    mappings.sort_by_key(|mapping| mapping.start);
    Ok(mappings)
}

/// The mapping of an address, if any.
pub fn find(mappings: &[Mapping], address: u64) -> Option<usize> {
    let after = mappings.partition_point(|mapping| mapping.start <= address);
    let index = after.checked_sub(1)?;
    (address < mappings[index].end).then_some(index)
}

fn parse_line(line: &[u8]) -> Option<Mapping> {
    let mut fields = line.splitn(6, |byte| *byte == b' ');
    let mut text = || std::str::from_utf8(fields.next()?).ok();
    let (range, permissions, offset, device, inode) = (text()?, text()?, text()?, text()?, text()?);
    if permissions.as_bytes().get(2) != Some(&b'x') {
        return None;
    }
    let (start, end) = range.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    let offset = u64::from_str_radix(offset, 16).ok()?;
    let (major, minor) = device.split_once(':')?;
    let device = Device {
        major: u32::from_str_radix(major, 16).ok()?,
        minor: u32::from_str_radix(minor, 16).ok()?,
    };
    let inode: u64 = inode.parse().ok()?;
    let path = fields.next().unwrap_or_default().trim_ascii_start();
    let backing = if path == b"[vdso]" {
        Backing::Vdso
    } else if path.first() == Some(&b'/') && inode != 0 && !is_memory(path) {
        Backing::File {
            path: path.to_vec(),
            inode,
        }
    } else {
        Backing::Anonymous {
            label: String::from_utf8_lossy(path).into_owned(),
        }
    };
    (start < end).then_some(Mapping {
        start,
        end,
        offset,
        device,
        backing,
    })
}

/// Memory that only looks like a file: runtimes map their JIT code so.
fn is_memory(path: &[u8]) -> bool {
    const PREFIXES: [&[u8]; 4] = [b"/memfd:", b"/dev/zero", b"/SYSV", b"/anon_hugepage"];
    PREFIXES.iter().any(|prefix| path.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
55d0c0000000-55d0c0001000 r--p 00000000 08:01 131 /usr/bin/x
55d0c0001000-55d0c0004000 r-xp 00001000 08:01 131                        /usr/bin/a b
7f0000000000-7f0000010000 rwxp 00000000 00:00 0
7f0000020000-7f0000030000 r-xs 00002000 00:01 77                         /memfd:doublemapper (deleted)
7f0000040000-7f0000050000 r-xp 00000000 08:01 9                          /lib/y.so (deleted)
7ffc11c00000-7ffc11c02000 r-xp 00000000 00:00 0                          [vdso]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
";

    fn file(path: &str, inode: u64) -> Backing {
        Backing::File {
            path: path.into(),
            inode,
        }
    }

    fn anonymous(label: &str) -> Backing {
        Backing::Anonymous {
            label: label.into(),
        }
    }

    #[test]
    fn only_executable_mappings_are_kept() {
        let seen = read_mappings(MAPS.as_bytes()).unwrap();
        let backings: Vec<Backing> = seen.iter().map(|mapping| mapping.backing.clone()).collect();
        let expected = [
            file("/usr/bin/a b", 131),
            anonymous(""),
            anonymous("/memfd:doublemapper (deleted)"),
            file("/lib/y.so (deleted)", 9),
            Backing::Vdso,
            anonymous("[vsyscall]"),
        ];
        assert_eq!(backings, expected);
        assert_eq!((seen[0].start, seen[0].offset), (0x55d0_c000_1000, 0x1000));
        let devices: Vec<_> = seen
            .iter()
            .map(|mapping| (mapping.device.major, mapping.device.minor))
            .collect();
        assert_eq!(devices[..3], [(8, 1), (0, 0), (0, 1)]);
    }

    #[test]
    fn addresses_are_found_inside_their_mapping_only() {
        let seen = read_mappings(MAPS.as_bytes()).unwrap();
        assert_eq!(find(&seen, 0x55d0_c000_1000), Some(0));
        assert_eq!(find(&seen, 0x55d0_c000_3fff), Some(0));
        assert_eq!(find(&seen, 0x55d0_c000_4000), None);
        assert_eq!(find(&seen, 0), None);
        assert_eq!(find(&seen, u64::MAX), None);
        assert_eq!(find(&[], 1), None);
    }

    #[test]
    fn hostile_lines_are_skipped() {
        let long = format!("1000-2000 r-xp 0 0:0 5 /{}\n", "x".repeat(LINE_LIMIT));
        let text =
            format!("\nx\n-\n1000-2000\n2000-1000 r-xp 0 0:0 1 /a\n1-2 r-x\n\u{e9} \n{long}");
        assert_eq!(read_mappings(text.as_bytes()).unwrap(), []);
        let odd = b"1000-2000 r-xp 0 00:00 5 /SYSV\xff\n2000-3000 r-xp 0 00:00 5 /\xff\xfe\n";
        let seen = read_mappings(odd.as_slice()).unwrap();
        assert_eq!(
            seen[1].backing,
            Backing::File {
                path: b"/\xff\xfe".to_vec(),
                inode: 5
            }
        );
        let many = "1000-2000 r-xp 0 00:00 0\n".repeat(MAPPINGS_LIMIT + 5);
        assert_eq!(
            read_mappings(many.as_bytes()).unwrap().len(),
            MAPPINGS_LIMIT
        );
    }
}
