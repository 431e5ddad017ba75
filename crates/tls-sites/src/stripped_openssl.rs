//! The functions of OpenSSL in a file without symbols, see [`super::stripped`].
//!
//! `SSL_read` and `SSL_read_ex` share `ssl_read_internal`, which is either a function of its own or
//! compiled into both. Only what carries a label of its own is named: without symbols the wrappers
//! `SSL_read_ex` and `SSL_write_ex`, which record no error, are known only as "the other function
//! that `ssl_..._internal` was compiled into".

use profiler_symbolize::inferred::{FoundText, SearchedFile};

use super::{
    call::{Convention, Library, Operation, TlsCall},
    code::{Bounds, Code},
    stripped::{FoundFunction, Recorder, Unclear, is_openssl_error, recorders},
};

/// What distinguishes functions.
#[derive(Clone, Copy, Debug)]
struct Label {
    /// OpenSSL 3 records the name.
    name: &'static str,
    /// OpenSSL 1.1 records a number: `SSL_F_...` in `sslerr.h`.
    number: u64,
}

/// One direction.
#[derive(Clone, Copy, Debug)]
struct Family {
    operation: Operation,
    plain: Label,
    internal: Label,
    extended: &'static str,
    /// Of the function that is called internal, and of the extended one.
    convention: Convention,
}

const FAMILIES: [Family; 2] = [
    Family {
        operation: Operation::Read,
        plain: Label {
            name: "SSL_read",
            number: 223,
        },
        internal: Label {
            name: "ssl_read_internal",
            number: 523,
        },
        extended: "SSL_read_ex",
        convention: Convention::MovedByPointer,
    },
    Family {
        operation: Operation::Write,
        plain: Label {
            name: "SSL_write",
            number: 208,
        },
        internal: Label {
            name: "ssl_write_internal",
            number: 524,
        },
        extended: "SSL_write_ex",
        convention: Convention::Size,
    },
];

pub(super) fn find(
    searched: &mut SearchedFile<'_>,
    code: &Code<'_>,
    path: &FoundText,
) -> Result<Vec<FoundFunction>, Unclear> {
    let recorders = recorders(searched, code, path)?;
    let mut found = Vec::new();
    for family in FAMILIES {
        let plain = labelled(searched, &recorders, family.plain);
        let internal = labelled(searched, &recorders, family.internal);
        found.extend(tell(family, &plain, &internal));
    }
    if found.is_empty() {
        return Err(Unclear::NotTold);
    }
    Ok(found)
}

/// The functions that record errors under a label.
fn labelled(searched: &SearchedFile<'_>, recorders: &[Recorder], label: Label) -> Vec<Bounds> {
    let name = label.name.as_bytes();
    let names: Vec<u64> = searched
        .texts(&|text| text.ends_with(name))
        .iter()
        .map(|text| text.start_of_last(name.len()))
        .collect();
    recorders
        .iter()
        .filter(|recorder| {
            recorder.errors.iter().any(|error| {
                error.third.is_some_and(|third| names.contains(&third))
                    || is_openssl_error(error) && error.second == Some(label.number)
            })
        })
        .map(|recorder| recorder.bounds)
        .collect()
}

/// What the labels say; nothing when they contradict each other.
fn tell(family: Family, plain: &[Bounds], internal: &[Bounds]) -> Vec<FoundFunction> {
    let found = |name, convention, bounds| FoundFunction {
        call: TlsCall {
            name,
            library: Library::OpenSsl,
            operation: family.operation,
            convention,
        },
        bounds,
    };
    let [only] = plain else {
        return Vec::new();
    };
    let mut all = vec![found(family.plain.name, Convention::Int, *only)];
    match internal {
        // One of its own, which both call: a write needs no other.
        [own] if own != only && family.operation == Operation::Write => {
            all = vec![found(family.internal.name, family.convention, *own)];
        }
        [one, two] if one == only => all.push(found(family.extended, family.convention, *two)),
        [one, two] if two == only => all.push(found(family.extended, family.convention, *one)),
        _ => {}
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Bounds = Bounds { start: 1, end: 2 };
    const TWO: Bounds = Bounds { start: 2, end: 3 };
    const THREE: Bounds = Bounds { start: 3, end: 4 };

    fn names(family: Family, plain: &[Bounds], internal: &[Bounds]) -> Vec<(&'static str, u64)> {
        tell(family, plain, internal)
            .iter()
            .map(|found| (found.call.name, found.bounds.start))
            .collect()
    }

    #[test]
    fn compiled_in_both_are_told_apart() {
        let [read, write] = FAMILIES;
        let both = [("SSL_read", 1), ("SSL_read_ex", 2)];
        assert_eq!(names(read, &[ONE], &[ONE, TWO]), both);
        assert_eq!(names(read, &[ONE], &[TWO, ONE]), both);
        let both = [("SSL_write", 1), ("SSL_write_ex", 2)];
        assert_eq!(names(write, &[ONE], &[ONE, TWO]), both);
    }

    #[test]
    fn a_shared_function_serves_for_writes() {
        let [read, write] = FAMILIES;
        assert_eq!(names(write, &[ONE], &[TWO]), [("ssl_write_internal", 2)]);
        assert_eq!(names(read, &[ONE], &[TWO]), [("SSL_read", 1)]);
    }

    #[test]
    fn what_is_not_certain_is_not_named() {
        let [read, write] = FAMILIES;
        for family in [read, write] {
            assert_eq!(names(family, &[], &[ONE]), []);
            assert_eq!(names(family, &[ONE, TWO], &[]), []);
            let plain_only = [(family.plain.name, 1)];
            assert_eq!(names(family, &[ONE], &[TWO, THREE]), plain_only);
            assert_eq!(names(family, &[ONE], &[]), plain_only);
        }
    }
}
