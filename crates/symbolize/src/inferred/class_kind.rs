//! The kinds of type information that the C++ ABI knows.

/// Copies of the three tables that are told apart; a program has one of each.
pub(super) const KINDS_LIMIT: usize = 24;

/// The three kinds of type information that classes have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClassKind {
    /// No bases.
    Plain,
    /// One public base at the start of the object.
    Single,
    /// Any bases.
    Multiple,
}

impl ClassKind {
    pub(super) const ALL: [Self; 3] = [Self::Plain, Self::Single, Self::Multiple];

    /// Mangled name of the runtime's own class for this kind.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "N10__cxxabiv117__class_type_infoE",
            Self::Single => "N10__cxxabiv120__si_class_type_infoE",
            Self::Multiple => "N10__cxxabiv121__vmi_class_type_infoE",
        }
    }
}
