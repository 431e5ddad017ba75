//! How claims read: the words say what is known and no more.

use super::{
    super::demangle::{cut, demangle},
    sources::FileEvidence,
};

/// Templates of the standard libraries that hold a function object: what is in their slots is
/// that object's code.
const FUNCTION_HOLDERS: [&str; 3] = [
    "std::__1::__function::__func<",
    "std::__1::__function::__alloc_func<",
    "std::__1::__function::__policy_func<",
];

/// What demanglers put before the name of a class that its type information is asked for.
const TYPE_NAME: &str = "typeinfo name for ";

/// What is claimed about one function, in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim<'a> {
    pub start: u64,
    pub bytes: u32,
    /// Mangled name of the class that has the function, of its own or from a base.
    pub class: Option<&'a str>,
    pub slot: Option<u16>,
    /// Path of the one source file that the function belongs to.
    pub file: Option<&'a str>,
    pub file_evidence: FileEvidence,
    pub in_allocator: bool,
}

/// The name of a function; `None` when nothing is claimed.
pub(super) fn name(claim: &Claim<'_>) -> Option<String> {
    if let Some(class) = claim.class {
        let class = class_name(class);
        let (owner, holder) = match held(&class) {
            Some(object) => (object, "std::function "),
            None => (class.as_str(), ""),
        };
        return Some(match claim.slot {
            Some(slot) => format!("{owner} [{holder}vslot {slot}]"),
            None => format!("{owner} [{holder}virtual]"),
        });
    }
    if claim.in_allocator {
        return Some("[tcmalloc]".to_owned());
    }
    let file = file(claim.file?);
    Some(match claim.file_evidence {
        FileEvidence::Reference => file,
        FileEvidence::Neighbours => format!("{file} [same object file]"),
    })
}

pub(super) fn file(path: &str) -> String {
    cut(path.strip_prefix("./").unwrap_or(path))
}

/// The readable name of a class.
pub fn class_name(mangled: &str) -> String {
    let name = demangle(&format!("_ZTS{mangled}"));
    match name.strip_prefix(TYPE_NAME) {
        Some(name) => name.to_owned(),
        None => cut(mangled),
    }
}

/// The function object inside a holder's type: its first template argument.
fn held(class: &str) -> Option<&str> {
    let rest = FUNCTION_HOLDERS
        .into_iter()
        .find_map(|holder| class.strip_prefix(holder))?;
    let mut depth = 0usize;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            b'<' | b'(' | b'{' | b'[' => depth += 1,
            // The arrow of `operator->` closes nothing.
            b'>' if rest[..at].ends_with('-') => {}
            b'>' | b')' | b'}' | b']' => depth = depth.checked_sub(1)?,
            // A plain function pointer shows nothing about the function.
            b',' if depth == 0 => return Some(&rest[..at]).filter(|held| !held.contains("(*)")),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(class: Option<&'static str>) -> Claim<'static> {
        Claim {
            start: 0,
            bytes: 1,
            class,
            slot: Some(6),
            file: Some("source/common/http/utility.cc"),
            file_evidence: FileEvidence::Reference,
            in_allocator: false,
        }
    }

    #[test]
    fn a_method_reads_as_class_and_slot() {
        let method = claim(Some("N5Envoy4Http21ConnectionManagerImplE"));
        let expected = "Envoy::Http::ConnectionManagerImpl [vslot 6]";
        assert_eq!(name(&method).unwrap(), expected);
        let anywhere = Claim {
            slot: None,
            ..method
        };
        let expected = "Envoy::Http::ConnectionManagerImpl [virtual]";
        assert_eq!(name(&anywhere).unwrap(), expected);
    }

    #[test]
    fn a_held_lambda_reads_as_the_function_around_it() {
        let held = "NSt3__110__function6__funcIZN5Envoy3Foo3barEvE3$_0NS_9allocatorIS4_EEFvvEEE";
        let expected = "Envoy::Foo::bar()::$_0 [std::function vslot 6]";
        assert_eq!(name(&claim(Some(held))).unwrap(), expected);
        // A plain function pointer is not code of the function it points to.
        let pointer = "NSt3__110__function6__funcIPFvvENS_9allocatorIS3_EES2_EE";
        let shown = name(&claim(Some(pointer))).unwrap();
        assert!(
            shown.starts_with("std::__1::__function::__func<void (*)()"),
            "{shown}"
        );
    }

    #[test]
    fn files_and_allocators_read_as_what_they_are() {
        let file = claim(None);
        assert_eq!(name(&file).unwrap(), "source/common/http/utility.cc");
        let beside = Claim {
            file_evidence: FileEvidence::Neighbours,
            ..file
        };
        let expected = "source/common/http/utility.cc [same object file]";
        assert_eq!(name(&beside).unwrap(), expected);
        let allocator = Claim {
            in_allocator: true,
            ..file
        };
        assert_eq!(name(&allocator).unwrap(), "[tcmalloc]");
        let nothing = Claim { file: None, ..file };
        assert_eq!(name(&nothing), None);
    }
}
