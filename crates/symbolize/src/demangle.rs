//! Readable names from mangled ones, bounded in length.
//!
//! A short hostile name can stand for an exponentially long readable one, so the demanglers write
//! into a buffer that stops them.

use std::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, Symbol};

/// Longest name that is kept, in bytes.
pub(crate) const NAME_LIMIT: usize = 2048;
/// Longest mangled name that is given to a demangler.
const MANGLED_LIMIT: usize = 8 * 1024;
/// Ends a name that was cut.
const ELLIPSIS: &str = "\u{2026}";

/// Demangles C++ (Itanium) and Rust (both schemes); other names are kept as they are.
pub fn demangle(name: &str) -> String {
    if name.len() > MANGLED_LIMIT {
        return cut(name);
    }
    let mut out = Bounded::default();
    let done = if let Ok(rust) = rustc_demangle::try_demangle(name) {
        write!(out, "{rust:#}")
    } else if is_itanium(name) {
        match Symbol::new(name) {
            Ok(symbol) => symbol.structured_demangle(&mut out, &DemangleOptions::new()),
            Err(_) => return cut(name),
        }
    } else {
        return cut(name);
    };
    match done {
        Ok(()) if !out.text.is_empty() => out.text,
        Err(_) if out.full => out.text + ELLIPSIS,
        Ok(()) | Err(_) => cut(name),
    }
}

/// The text, cut to the limit at a character boundary.
pub(crate) fn cut(text: &str) -> String {
    if text.len() <= NAME_LIMIT {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(NAME_LIMIT);
    format!("{}{ELLIPSIS}", &text[..end])
}

fn is_itanium(name: &str) -> bool {
    name.trim_start_matches('_').starts_with('Z') && name.starts_with('_')
}

/// A writer that refuses what exceeds the limit.
#[derive(Default)]
struct Bounded {
    text: String,
    full: bool,
}

impl Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = NAME_LIMIT - self.text.len().min(NAME_LIMIT);
        let fits = part.floor_char_boundary(room);
        self.text.push_str(&part[..fits]);
        if fits < part.len() {
            self.full = true;
            return Err(fmt::Error);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpp_and_rust_names_become_readable() {
        for (mangled, readable) in [
            (
                "_ZN4core9panicking9panic_fmt17h5f1a6fd39197ad62E",
                "core::panicking::panic_fmt",
            ),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("_ZN5shape4areaEii", "shape::area(int, int)"),
            (
                "_ZNSt6vectorIiSaIiEE9push_backEOi",
                "std::vector<int, std::allocator<int> >::push_back(int&&)",
            ),
            ("main", "main"),
            ("_start", "_start"),
            ("_Zgarbage", "_Zgarbage"),
            ("\u{1f600}", "\u{1f600}"),
            ("", ""),
        ] {
            assert_eq!(demangle(mangled), readable);
        }
    }

    #[test]
    fn exploding_names_are_cut() {
        // Every S<n>_ stands for all that came before: each step doubles the output.
        let mut mangled = String::from("_Z1fI1aES_IS_S_E");
        for step in 0..34 {
            let digit = char::from_digit(step, 36).unwrap().to_ascii_uppercase();
            write!(mangled, "S{digit}_IS{digit}_S{digit}_E").unwrap();
        }
        assert!(demangle(&mangled).len() <= NAME_LIMIT + ELLIPSIS.len());
        let nested = format!("_Z{}", "N1a".repeat(2000));
        assert!(demangle(&nested).len() <= NAME_LIMIT + ELLIPSIS.len());
        let long = format!("_ZN{}1bE", "9abcdefghi".repeat(700));
        let cut = demangle(&long);
        assert!(cut.ends_with(ELLIPSIS) && cut.len() <= NAME_LIMIT + ELLIPSIS.len());
        assert!(demangle(&"\u{e9}".repeat(10_000)).ends_with(ELLIPSIS));
    }
}
