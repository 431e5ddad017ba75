//! Findings in a form that tests compare.

use std::{fs::File, path::Path, time::Instant};

use profiler_tls_sites::{Finding, SiteClass, TlsFile, TlsFunction, ValuePlace, find_in_file};

/// Looks at a file that must have a library, and prints what was found.
pub(crate) fn found(path: &Path) -> TlsFile {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let started = Instant::now();
    let finding = find_in_file(&file);
    let elapsed = started.elapsed();
    let Finding::Found(found) = finding else {
        panic!("{}: {finding:?}", path.display());
    };
    println!(
        "{}: {} by {} in {elapsed:?}",
        path.display(),
        found.library.name(),
        found.evidence.name()
    );
    for function in &found.functions {
        println!(
            "  {} {:#x}: {:?}",
            function.call.name, function.address, function.entry
        );
        for site in &function.returns {
            println!("    returns {site:x?}");
        }
    }
    for (name, reason) in &found.left_out {
        println!("  {name}: {reason}");
    }
    found
}

pub(crate) fn function<'file>(file: &'file TlsFile, name: &str) -> &'file TlsFunction {
    file.functions
        .iter()
        .find(|function| function.call.name == name)
        .unwrap_or_else(|| panic!("no {name} in {file:?}"))
}

/// Offset from the function's beginning and class of its site for arguments.
pub(crate) fn entry(function: &TlsFunction) -> (u64, SiteClass) {
    let site = function.entry.site;
    (site.address - function.address, site.class)
}

/// The same of the sites for results, with the number of the register.
pub(crate) fn returns(function: &TlsFunction) -> Vec<(u64, SiteClass, u8)> {
    function
        .returns
        .iter()
        .map(|one| {
            let offset = one.site.address - function.address;
            (offset, one.site.class, one.result.number())
        })
        .collect()
}

/// Number of the register in which something is.
pub(crate) fn register(place: ValuePlace) -> u8 {
    match place {
        ValuePlace::Register(register) => register.number(),
        ValuePlace::Stack(word) => panic!("on the stack, word {word}"),
    }
}
