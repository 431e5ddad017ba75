//! Text of the admin interface, which anyone may have written.

use profiler_model::printable::printable_within;

/// Longest text of the configuration that is kept, in columns.
pub(super) const TEXT_LIMIT: usize = 160;

/// Untrusted text as it is kept: short, and nothing in it that is not printable.
pub(super) fn harmless(text: &str) -> String {
    printable_within(text, TEXT_LIMIT)
}
