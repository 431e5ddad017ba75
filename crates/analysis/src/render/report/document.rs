//! A report as a list of parts, and how they are written for a terminal and as Markdown.
//!
//! Untrusted text goes in as [`Piece::Quoted`] only; both forms make it harmless.

use profiler_model::printable::{columns, left, printable, right};

/// Longest line of the text form, in columns; tables and code are as wide as they are.
const WIDTH: usize = 100;

/// Part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Text of the agent or of its rules.
    Plain(String),
    Strong(String),
    /// Text from somewhere else: names of frames, threads, values of configuration.
    Quoted(String),
}

/// A line.
pub(super) type Inline = Vec<Piece>;

/// A line of plain text.
pub(super) fn plain(text: impl Into<String>) -> Inline {
    vec![Piece::Plain(text.into())]
}

/// A line of text from somewhere else.
pub(super) fn quoted(text: impl Into<String>) -> Inline {
    vec![Piece::Quoted(text.into())]
}

/// Several in one line, with commas between them.
pub(super) fn listed(each: impl Iterator<Item = Inline>) -> Inline {
    let mut line = Inline::new();
    for one in each {
        if !line.is_empty() {
            line.extend(plain(", "));
        }
        line.extend(one);
    }
    line
}

/// Part of a report.
#[derive(Clone, Debug)]
pub(super) enum Block {
    /// The sentence that says it all.
    Lead(Inline),
    Heading(String),
    Paragraph(Inline),
    /// An entry of a numbered list, with what belongs to it.
    Entry {
        number: usize,
        title: Inline,
        body: Vec<Block>,
    },
    Bullets(Vec<Inline>),
    /// The first column is text, the others are numbers.
    Table {
        head: Vec<String>,
        rows: Vec<Vec<Inline>>,
    },
    /// YAML of the rules, to be copied.
    Code(String),
}

/// For a terminal.
pub(super) fn text(blocks: &[Block]) -> String {
    let mut out = String::new();
    for block in blocks {
        write_text(&mut out, block, 0);
    }
    out
}

fn write_text(out: &mut String, block: &Block, indent: usize) {
    match block {
        Block::Lead(line) => wrap(out, &flat(line), indent, indent),
        Block::Heading(title) => {
            out.push('\n');
            out.push_str(&own(&title.to_uppercase()));
            out.push('\n');
        }
        Block::Paragraph(line) => wrap(out, &flat(line), indent, indent),
        Block::Entry {
            number,
            title,
            body,
        } => {
            wrap(
                out,
                &format!("{number}. {}", flat(title)),
                indent,
                indent + 3,
            );
            for part in body {
                write_text(out, part, indent + 3);
            }
        }
        Block::Bullets(lines) => {
            for line in lines {
                wrap(out, &format!("- {}", flat(line)), indent, indent + 2);
            }
        }
        Block::Table { head, rows } => table(out, head, rows, indent),
        Block::Code(code) => {
            for line in code.lines() {
                out.push_str(" ".repeat(indent + 4).as_str());
                out.push_str(&printable(line));
                out.push('\n');
            }
        }
    }
}

fn flat(line: &Inline) -> String {
    let mut text = String::new();
    for piece in line {
        match piece {
            Piece::Plain(part) | Piece::Strong(part) => text.push_str(&own(part)),
            Piece::Quoted(part) => text.push_str(&printable(part)),
        }
    }
    text
}

/// Text of the agent or of its rules, in one line however it is broken there.
fn own(text: &str) -> String {
    printable(&text.replace('\n', " ")).into_owned()
}

/// Writes words in lines of at most [`WIDTH`]; a longer word stays whole.
fn wrap(out: &mut String, text: &str, first: usize, rest: usize) {
    let mut line = " ".repeat(first);
    let mut length = first;
    let mut is_empty = true;
    for word in text.split_whitespace() {
        let wanted = columns(word);
        if !is_empty && length + 1 + wanted > WIDTH {
            out.push_str(&line);
            out.push('\n');
            line = " ".repeat(rest);
            length = rest;
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
            length += 1;
        }
        line.push_str(word);
        length += wanted;
        is_empty = false;
    }
    out.push_str(&line);
    out.push('\n');
}

fn table(out: &mut String, head: &[String], rows: &[Vec<Inline>], indent: usize) {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(flat).collect())
        .collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let all = cells.chain(head.get(column));
        all.map(|cell| columns(cell)).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    for row in std::iter::once(&head.to_vec()).chain(&rows) {
        let mut line = " ".repeat(indent);
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            if column == 0 {
                line.push_str(&left(cell, *width));
            } else {
                line.push_str("  ");
                line.push_str(&right(cell, *width));
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

/// The title of a document in Markdown.
pub(super) fn title(line: &Inline) -> String {
    format!("# {}\n\n", marked(line, Emphasis::Off))
}

/// As Markdown.
pub(super) fn markdown(blocks: &[Block]) -> String {
    let mut out = String::new();
    for block in blocks {
        write_markdown(&mut out, block, 0);
    }
    out
}

fn write_markdown(out: &mut String, block: &Block, indent: usize) {
    let margin = " ".repeat(indent);
    match block {
        Block::Lead(line) => push(
            out,
            &[&margin, "**", &marked(line, Emphasis::Off), "**\n\n"],
        ),
        Block::Heading(title) => push(out, &["## ", &escaped(title), "\n\n"]),
        Block::Paragraph(line) => push(out, &[&margin, &marked(line, Emphasis::On), "\n\n"]),
        Block::Entry {
            number,
            title,
            body,
        } => {
            let title = marked(title, Emphasis::On);
            push(out, &[&format!("{margin}{number}. "), &title, "\n\n"]);
            for part in body {
                write_markdown(out, part, indent + 3);
            }
        }
        Block::Bullets(lines) => {
            for line in lines {
                push(out, &[&margin, "- ", &marked(line, Emphasis::On), "\n"]);
            }
            out.push('\n');
        }
        Block::Table { head, rows } => {
            let head: Vec<String> = head.iter().map(|cell| escaped(cell)).collect();
            push(
                out,
                &[&margin, "| ", &head.join(" | "), " |\n", &margin, "|---|"],
            );
            out.push_str(&"---:|".repeat(head.len().saturating_sub(1)));
            out.push('\n');
            for row in rows {
                let cells: Vec<String> =
                    row.iter().map(|cell| marked(cell, Emphasis::On)).collect();
                push(out, &[&margin, "| ", &cells.join(" | "), " |\n"]);
            }
            out.push('\n');
        }
        Block::Code(code) => {
            let fence = fence(code);
            push(out, &[&margin, &fence, "yaml\n"]);
            for line in code.lines() {
                push(out, &[&margin, &printable(line), "\n"]);
            }
            push(out, &[&margin, &fence, "\n\n"]);
        }
    }
}

/// What no line of the code can close: rules may come from somebody else.
fn fence(code: &str) -> String {
    let rows = code.split(|letter| letter != '`');
    let longest = rows.map(str::len).max().unwrap_or(0);
    "`".repeat(3.max(longest + 1))
}

fn push(out: &mut String, parts: &[&str]) {
    for part in parts {
        out.push_str(part);
    }
}

/// Whether strong text is marked; inside of strong text it is not.
#[derive(Clone, Copy)]
enum Emphasis {
    On,
    Off,
}

fn marked(line: &Inline, emphasis: Emphasis) -> String {
    let mut text = String::new();
    for piece in line {
        match (piece, emphasis) {
            (Piece::Plain(part), _) | (Piece::Strong(part), Emphasis::Off) => {
                text.push_str(&escaped(part));
            }
            (Piece::Strong(part), Emphasis::On) => {
                push(&mut text, &["**", &escaped(part), "**"]);
            }
            (Piece::Quoted(part), _) => text.push_str(&code(part)),
        }
    }
    text
}

/// Text as it is, whatever letters of Markdown or HTML are in it.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in own(text).chars() {
        match letter {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => {
                out.push('\\');
                out.push(letter);
            }
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            _ => out.push(letter),
        }
    }
    out
}

/// A code span that nothing in the text can leave: without backticks, and without bars, which end a
/// table's cell even there.
fn code(text: &str) -> String {
    let text = printable(text).replace('`', "'").replace('|', "\u{a6}");
    if text.trim().is_empty() {
        return "` `".to_owned();
    }
    format!("`{text}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_kinds(hostile: &str) -> Vec<Block> {
        vec![
            Block::Lead(vec![
                Piece::Plain("it is ".into()),
                Piece::Quoted(hostile.into()),
            ]),
            Block::Heading("Part".into()),
            Block::Entry {
                number: 1,
                title: vec![Piece::Strong("high".into()), Piece::Plain(": x".into())],
                body: vec![
                    Block::Code("a:\n  b: 1".into()),
                    Block::Bullets(vec![quoted(hostile)]),
                ],
            },
            Block::Table {
                head: vec!["name".into(), "percent".into()],
                rows: vec![
                    vec![quoted(hostile), plain("1.5")],
                    vec![plain("b"), plain("10.0")],
                ],
            },
        ]
    }

    #[test]
    fn both_forms_have_everything() {
        let blocks = all_kinds("frame");
        assert_eq!(
            text(&blocks),
            "it is frame\n\nPART\n1. high: x\n       a:\n         b: 1\n   - frame\n\
             name   percent\nframe      1.5\nb         10.0\n"
        );
        assert_eq!(
            markdown(&blocks),
            "**it is `frame`**\n\n## Part\n\n1. **high**: x\n\n   ```yaml\n   a:\n     b: 1\n   ```\n\n   \
             - `frame`\n\n| name | percent |\n|---|---:|\n| `frame` | 1.5 |\n| b | 10.0 |\n\n"
        );
    }

    #[test]
    fn hostile_text_stays_text() {
        let hostile = "\u{1b}[2J`rm`|<script>\n## x\u{202e}";
        let blocks = all_kinds(hostile);
        let shown = text(&blocks);
        assert!(
            !shown.contains('\u{1b}') && !shown.contains('\u{202e}'),
            "{shown}"
        );
        let shown = markdown(&blocks);
        assert!(
            !shown.contains('\u{1b}') && !shown.contains("`rm`"),
            "{shown}"
        );
        assert!(
            !shown.contains("|<script>") && !shown.lines().any(|line| line.starts_with("## x"))
        );
        assert_eq!(escaped("a_b <i> | `c`"), "a\\_b &lt;i&gt; \\| \\`c\\`");
        assert_eq!(code(""), "` `");
    }

    #[test]
    fn a_block_of_code_stays_closed_whatever_is_in_it() {
        let yaml = Block::Code("a: |\n  ```\n  b\n".into());
        assert_eq!(markdown(&[yaml]), "````yaml\na: |\n  ```\n  b\n````\n\n");
    }

    #[test]
    fn long_lines_are_broken_between_words() {
        let long = "word ".repeat(60);
        let mut out = String::new();
        wrap(&mut out, &long, 0, 4);
        let lines: Vec<&str> = out.lines().collect();
        assert!(lines.len() == 4 && lines.iter().all(|line| line.chars().count() <= WIDTH));
        assert!(lines[1].starts_with("    word") && !lines[1].starts_with("     "));
        let mut out = String::new();
        wrap(&mut out, &"x".repeat(300), 2, 2);
        assert_eq!(out.lines().count(), 1);
    }
}
