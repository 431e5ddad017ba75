//! The classes of the program: its `type_info` objects, with their names and bases.
//!
//! The C++ ABI of all x86-64 and aarch64 Unix systems lays them out as words: a pointer into the
//! table of the kind of type information, a pointer to the mangled name, then what the kind adds:
//! nothing, one base, or flags with a counted list of bases.

use super::{
    class_kind::{ClassKind, KINDS_LIMIT},
    memory::Memory,
    relocations::Links,
    sections::{u32_at, u64_at},
};

/// Classes that are kept. Envoy has 26,000.
const CLASSES_LIMIT: usize = 300_000;
/// Bases of all classes.
const ALL_BASES_LIMIT: usize = 1_000_000;
/// Bytes of names that are looked at. Those of Envoy have 3.5 MB.
const NAMES_LIMIT: usize = 64 << 20;
/// Direct bases of one class that are read.
const BASES_LIMIT: u32 = 256;
/// Longest mangled name of a class.
pub(super) const NAME_LIMIT: usize = 8 * 1024;

/// Index of a class.
pub(super) type ClassId = u32;

#[derive(Debug)]
pub(super) struct Class {
    /// Address of the `type_info` object.
    pub(super) address: u64,
    /// Address of the mangled name.
    pub(super) name: u64,
    /// Where the bases are in [`Classes::bases`].
    first_base: u32,
    bases: u32,
    /// Length of the longest way up to a class without bases.
    depth: u32,
}

/// All classes, in order of the addresses of their type information.
#[derive(Debug, Default)]
pub(super) struct Classes {
    pub(super) all: Vec<Class>,
    bases: Vec<ClassId>,
}

impl Classes {
    pub(super) fn find(memory: &Memory, links: &Links) -> Self {
        let mut kinds = links.kinds.clone();
        kinds.extend(own_kinds(memory));
        kinds.truncate(KINDS_LIMIT);
        let mut all = Vec::new();
        let mut kind_of = Vec::new();
        let mut left = NAMES_LIMIT;
        for (address, value) in memory.pointers() {
            let Some((_, kind)) = kinds.iter().find(|(table, _)| *table == value) else {
                continue;
            };
            if all.len() >= CLASSES_LIMIT || left == 0 {
                break;
            }
            let Some(name) = memory.pointer(address.wrapping_add(8)) else {
                continue;
            };
            let text = memory.text(name, NAME_LIMIT);
            left = left.saturating_sub(text.map_or(NAME_LIMIT, str::len));
            if text.is_some_and(is_class_name) {
                kind_of.push(*kind);
                all.push(Class {
                    address,
                    name,
                    first_base: 0,
                    bases: 0,
                    depth: 0,
                });
            }
        }
        let mut classes = Self {
            all,
            bases: Vec::new(),
        };
        for (index, kind) in kind_of.into_iter().enumerate() {
            classes.read_bases(memory, index, kind);
        }
        classes.measure_depths();
        classes
    }

    fn read_bases(&mut self, memory: &Memory, index: usize, kind: ClassKind) {
        let start = self.bases.len();
        let address = self.all[index].address;
        let mut add = |place: u64| {
            let base = memory.pointer(place).and_then(|base| self.at(base));
            // A class that is its own base is not a class.
            let base = base.filter(|base| *base as usize != index);
            if self.bases.len() < ALL_BASES_LIMIT {
                self.bases.extend(base);
            }
        };
        match kind {
            ClassKind::Plain => {}
            ClassKind::Single => add(address.wrapping_add(16)),
            ClassKind::Multiple => {
                let count = memory
                    .bytes(address.wrapping_add(20))
                    .and_then(|bytes| u32_at(bytes, 0));
                for base in 0..u64::from(count.unwrap_or(0).min(BASES_LIMIT)) {
                    add(address.wrapping_add(24 + base * 16));
                }
            }
        }
        let class = &mut self.all[index];
        class.first_base = u32::try_from(start).unwrap_or(u32::MAX);
        class.bases = u32::try_from(self.bases.len() - start).unwrap_or(0);
    }

    /// Fills in the depths. A class on a circle of bases keeps depth 0.
    fn measure_depths(&mut self) {
        let mut done = vec![Progress::New; self.all.len()];
        let mut path: Vec<ClassId> = Vec::new();
        for first in 0..u32::try_from(self.all.len()).unwrap_or(u32::MAX) {
            path.push(first);
            while let Some(id) = path.last().copied() {
                let index = id as usize;
                match done[index] {
                    Progress::New => {
                        done[index] = Progress::Open;
                        let new = |base: &ClassId| done[*base as usize] == Progress::New;
                        path.extend(self.bases(id).iter().copied().filter(new));
                    }
                    Progress::Open => {
                        let depth = |base: &ClassId| match done[*base as usize] {
                            Progress::Done => self.all[*base as usize].depth.saturating_add(1),
                            Progress::New | Progress::Open => 0,
                        };
                        let depth = self.bases(id).iter().map(depth).max();
                        self.all[index].depth = depth.unwrap_or(0);
                        done[index] = Progress::Done;
                        path.pop();
                    }
                    Progress::Done => {
                        path.pop();
                    }
                }
            }
        }
    }

    /// The class whose type information is at an address.
    pub(super) fn at(&self, address: u64) -> Option<ClassId> {
        let index = self
            .all
            .binary_search_by_key(&address, |class| class.address);
        u32::try_from(index.ok()?).ok()
    }

    pub(super) fn bases(&self, id: ClassId) -> &[ClassId] {
        let Some(class) = self.all.get(id as usize) else {
            return &[];
        };
        let start = class.first_base as usize;
        self.bases
            .get(start..start.saturating_add(class.bases as usize))
            .unwrap_or_default()
    }

    pub(super) fn depth(&self, id: ClassId) -> u32 {
        self.all.get(id as usize).map_or(0, |class| class.depth)
    }

    /// The class and all that it derives from, itself first, at most `limit` of them; `None` when
    /// there are more.
    pub(super) fn lineage(&self, id: ClassId, limit: usize) -> Option<Vec<ClassId>> {
        let mut found = vec![id];
        let mut next = 0;
        while let Some(class) = found.get(next).copied() {
            next += 1;
            for base in self.bases(class) {
                if !found.contains(base) {
                    if found.len() >= limit {
                        return None;
                    }
                    found.push(*base);
                }
            }
        }
        Some(found)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    New,
    Open,
    Done,
}

/// Tables of the kinds inside the file itself, where the C++ runtime is linked in: the runtime's
/// own classes have names and type information like all others.
fn own_kinds(memory: &Memory) -> Vec<(u64, ClassKind)> {
    let names = own_kind_names(memory);
    if names.is_empty() {
        return Vec::new();
    }
    let mut infos: Vec<(u64, ClassKind)> = Vec::new();
    for (address, value) in memory.pointers() {
        if let Some((_, kind)) = names.iter().find(|(name, _)| *name == value)
            && infos.len() < KINDS_LIMIT
        {
            infos.push((address.wrapping_sub(8), *kind));
        }
    }
    let mut tables = Vec::new();
    for (address, value) in memory.pointers() {
        if let Some((_, kind)) = infos.iter().find(|(info, _)| *info == value)
            && memory.integer(address.wrapping_sub(8)) == Some(0)
            && tables.len() < KINDS_LIMIT
        {
            tables.push((address.wrapping_add(8), *kind));
        }
    }
    tables
}

/// Where the names of the runtime's own classes are.
fn own_kind_names(memory: &Memory) -> Vec<(u64, ClassKind)> {
    const PREFIX: [u8; 8] = *b"N10__cxx";
    let prefix = u64::from_le_bytes(PREFIX);
    let mut found = Vec::new();
    for region in &memory.regions {
        let bytes = &region.bytes;
        let mut at = 0;
        while let Some(skip) = bytes
            .get(at..)
            .and_then(|rest| rest.iter().position(|byte| *byte == PREFIX[0]))
        {
            let start = at + skip;
            at = start + 1;
            if u64_at(bytes, start) != Some(prefix) {
                continue;
            }
            let rest = &bytes[start..];
            let kind = ClassKind::ALL.into_iter().find(|kind| {
                rest.strip_prefix(kind.name().as_bytes())
                    .is_some_and(|after| after.first() == Some(&0))
            });
            if let Some(kind) = kind
                && found.len() < KINDS_LIMIT
            {
                found.push((region.address.wrapping_add(start as u64), kind));
            }
        }
    }
    found
}

/// Whether a text can be the mangled name of a class, by its start: a length, a nested or local
/// name, `std::`, or a mark of a name that is unique in its file only.
fn is_class_name(name: &str) -> bool {
    let name = name.strip_prefix('*').unwrap_or(name);
    name.len() >= 2
        && name.bytes().all(|byte| byte.is_ascii_graphic())
        && matches!(
            name.as_bytes().first(),
            Some(b'0'..=b'9' | b'N' | b'S' | b'Z')
        )
}
