//! The comparison as the table that the documentation holds.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};

use super::Row;

const BEGIN: &str = "<!-- begin: cargo xtask bench diagnosis -->";
const END: &str = "<!-- end: cargo xtask bench diagnosis -->";

/// All rows in Markdown. Microseconds of CPU time of a request.
pub fn markdown(rows: &[Row], conditions: &str) -> String {
    let mut text = format!("{conditions}\n\n");
    text.push_str(
        "| setting | sidecar | pairs | with | without | saved by switching off (95 %) | attributed | off by | allowed | within | finding in | first in |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let saved_nothing = row.saved_us.mean.abs() <= row.saved_us.half_width;
        let (attributed, off_by, within) = match (row.attributed_us, row.within) {
            (Some(attributed), Some(within)) => (
                format!("{attributed:.1}"),
                format!("{:+.1}", attributed - row.saved_us.mean),
                match (within, row.within_with_rest) {
                    (true, _) if saved_nothing => "not decided: nothing is saved beyond chance",
                    (true, _) => "yes",
                    (false, Some(true)) => "no; yes with the rest that the finding names",
                    (false, _) => "no",
                },
            ),
            _ => ("moves, see below".to_owned(), String::new(), ""),
        };
        let saved = row.saved_us;
        // Writing into a string cannot fail.
        writeln!(
            text,
            "| {} | {} | {} | {:.1} | {:.1} | {:.1} ± {:.1} | {attributed} | {off_by} | {:.1} | {within} | {} of {} | {} |",
            row.title,
            row.side,
            row.pairs,
            row.with_us,
            row.without_us,
            saved.mean,
            saved.half_width,
            row.allowed_us,
            row.found,
            row.pairs,
            row.first,
        )
        .ok();
    }
    text.push_str("\nWhat else changed with the setting, by cell (`feature/mechanism`):\n\n| setting | cells |\n|---|---|\n");
    for row in rows {
        let cells: Vec<String> = row
            .elsewhere
            .iter()
            .map(|(cell, us)| format!("`{cell}` {us:+.1}"))
            .collect();
        let cells = if cells.is_empty() {
            "none".to_owned()
        } else {
            cells.join(", ")
        };
        writeln!(text, "| {} | {cells} |", row.title).ok();
    }
    text
}

/// Puts `table` between the marks of a document.
pub fn replace(document: &str, table: &str) -> Result<String> {
    let (before, rest) = document
        .split_once(BEGIN)
        .with_context(|| format!("the document has no line {BEGIN:?}"))?;
    let (_, after) = rest
        .split_once(END)
        .with_context(|| format!("the document has no line {END:?}"))?;
    Ok(format!(
        "{before}{BEGIN}\n\n{}\n\n{END}{after}",
        table.trim()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_replaces_the_one_before_and_nothing_else() {
        let document = format!("head\n{BEGIN}\nold\n{END}\ntail\n");
        let new = replace(&document, "| new |\n").unwrap();
        assert_eq!(new, format!("head\n{BEGIN}\n\n| new |\n\n{END}\ntail\n"));
        assert!(replace("no marks", "").is_err());
    }
}
