//! The symbols of a file as the truth about claims.

use std::collections::{BTreeMap, HashMap, HashSet};

use object::{Object as _, ObjectSymbol as _, SymbolKind};
use profiler_symbolize::inferred::{self, Claim, InferredNames, class_name};

/// How a set of claims fared.
#[derive(Debug, Default)]
pub(crate) struct Score {
    pub(crate) functions: usize,
    pub(crate) methods: usize,
    pub(crate) right: usize,
    /// The claim and the symbols that contradict it.
    pub(crate) wrong: Vec<String>,
    /// Claims about functions that have no symbol.
    pub(crate) unknown: usize,
}

impl Score {
    /// Of the claims that can be checked, the share that is right, in percent.
    pub(crate) fn percent_right(&self) -> f64 {
        let checked = u32::try_from(self.right + self.wrong.len()).unwrap();
        let right = u32::try_from(self.right).unwrap();
        100.0 * f64::from(right) / f64::from(checked.max(1))
    }

    pub(crate) fn show(&self, what: &str) {
        println!(
            "{what}: {} functions, {} methods named; of {} that have symbols {:.2} % right, {} wrong",
            self.functions,
            self.methods,
            self.right + self.wrong.len(),
            self.percent_right(),
            self.wrong.len(),
        );
        for wrong in self.wrong.iter().take(5) {
            println!("  {wrong}");
        }
    }

    pub(crate) fn assert_right(&self, at_least: usize) {
        assert!(
            self.right >= at_least,
            "only {} claims could be checked",
            self.right
        );
        let wrong = &self.wrong[..self.wrong.len().min(20)];
        assert!(self.percent_right() >= 99.0, "{wrong:#?}");
    }
}

/// Readable names of functions by address.
#[derive(Debug)]
pub(crate) struct Truth {
    pub(crate) names: BTreeMap<u64, Vec<String>>,
}

impl Truth {
    /// Reads all symbols of functions, of both tables.
    pub(crate) fn read(file: &[u8]) -> Self {
        let file = object::File::parse(file).unwrap();
        let mut names: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            if symbol.kind() == SymbolKind::Text && symbol.is_definition() {
                let name = symbol.name().unwrap();
                let known = names.entry(symbol.address()).or_default();
                known.push(demangled(name));
            }
        }
        Self { names }
    }

    /// Compares claims about methods with the symbols. `hidden` is the file that the claims come
    /// from.
    pub(crate) fn judge(&self, hidden: &[u8], names: &InferredNames) -> Score {
        let lineages = lineages(hidden);
        let mut score = Score {
            functions: names.functions(),
            ..Score::default()
        };
        for claim in names.claims() {
            let Some(class) = claim.class else { continue };
            score.methods += 1;
            match self.names.get(&claim.start) {
                None => score.unknown += 1,
                Some(symbols) if is_right(&lineages, class, symbols) => score.right += 1,
                Some(symbols) => score.wrong.push(contradiction(&claim, symbols)),
            }
        }
        score
    }
}

fn contradiction(claim: &Claim<'_>, symbols: &[String]) -> String {
    let class = class_name(claim.class.unwrap_or_default());
    let Claim { start, slot, .. } = claim;
    format!("{start:x}: {class} slot {slot:?}, but it is {symbols:?}")
}

/// Readable names of each class (by mangled name) and its bases.
fn lineages(file: &[u8]) -> HashMap<String, HashSet<String>> {
    let mut all: HashMap<String, HashSet<String>> = HashMap::new();
    for lineage in inferred::lineages(file).unwrap() {
        let names = lineage.bases.iter().chain([&lineage.class]);
        let names: Vec<String> = names.map(|name| class_name(name)).collect();
        all.entry(lineage.class).or_default().extend(names);
    }
    all
}

/// The function is a method of the class or of one of its bases.
fn is_right(lineages: &HashMap<String, HashSet<String>>, class: &str, symbols: &[String]) -> bool {
    let Some(lineage) = lineages.get(class) else {
        return false;
    };
    symbols
        .iter()
        .any(|symbol| lineage.iter().any(|class| is_method_of(symbol, class)))
}

/// `symbol` is `class::method(...)` and not something deeper inside of the class.
fn is_method_of(symbol: &str, class: &str) -> bool {
    let Some(rest) = symbol
        .strip_prefix(class)
        .and_then(|rest| rest.strip_prefix("::"))
    else {
        return false;
    };
    let method = rest.split('(').next().unwrap_or(rest);
    rest.starts_with("operator") || rest.starts_with('~') || !method.contains("::")
}

fn demangled(name: &str) -> String {
    let readable = cpp_demangle::Symbol::new(name)
        .ok()
        .and_then(|symbol| symbol.demangle().ok())
        .unwrap_or_else(|| name.to_owned());
    without_thunk(&readable).to_owned()
}

/// A thunk, which corrects `this` and goes on into a method, is called as the method is.
fn without_thunk(readable: &str) -> &str {
    let inner = readable
        .strip_prefix("{virtual override thunk({")
        .and_then(|rest| rest.split_once(")}, "))
        .and_then(|(_, method)| method.strip_suffix(")}"));
    inner.unwrap_or(readable)
}

#[test]
fn a_method_is_told_from_what_is_deeper_inside() {
    assert!(is_method_of("a::B::f(int)", "a::B"));
    assert!(is_method_of("a::B::~B()", "a::B"));
    assert!(is_method_of("a::B::f(c::D)", "a::B"));
    assert!(!is_method_of("a::B::C::f(int)", "a::B"));
    assert!(!is_method_of("a::Bc::f(int)", "a::B"));
    assert!(!is_method_of("a::f()", "a::B"));
}
