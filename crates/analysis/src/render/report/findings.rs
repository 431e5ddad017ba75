//! What to change, in the order of what it saves.

use profiler_model::diagnosis::{Confidence, Diagnosis, Finding, FindingSetting, Saving};

use super::document::{Block, Inline, Piece, plain};

/// Evidence of one finding that is written.
const EVIDENCE: usize = 3;

pub(super) fn blocks(diagnosis: &Diagnosis) -> Vec<Block> {
    let mut blocks = vec![Block::Heading("Findings".to_owned())];
    if diagnosis.findings.is_empty() {
        blocks.push(Block::Paragraph(plain(
            "None: nothing that a setting changes costs enough CPU to be told from chance.",
        )));
    }
    let numbered = diagnosis.findings.iter().zip(1..);
    blocks.extend(numbered.map(|(finding, number)| entry(finding, number)));
    blocks
}

fn entry(finding: &Finding, number: usize) -> Block {
    let Finding {
        id,
        title,
        severity,
        share_percent: _,
        low: _,
        high: _,
        saving,
        evidence,
        reason,
        configured,
        settings,
        confidence,
        cells: _,
    } = finding;
    let head = vec![
        Piece::Strong(format!("[{}] {title}", severity.name())),
        Piece::Plain(format!(
            ": {}{} [{id}]",
            finding.share_text(),
            saving.map_or_else(String::new, of_saving)
        )),
    ];
    let mut body = vec![Block::Paragraph(plain(reason.clone()))];
    if let Some(configured) = configured {
        body.push(Block::Paragraph(vec![
            Piece::Plain("Configured now: ".to_owned()),
            Piece::Quoted(configured.clone()),
        ]));
    }
    for setting in settings {
        body.extend(of_setting(setting));
    }
    if !evidence.is_empty() {
        let lines = evidence.iter().take(EVIDENCE).map(|frame| -> Inline {
            vec![
                Piece::Plain(format!("{:.1} % in ", frame.share_percent)),
                Piece::Quoted(frame.frame.clone()),
            ]
        });
        let told_by = match confidence {
            Confidence::Exact => "Evidence (exact names or counts):",
            Confidence::Inferred => "Evidence (inferred names):",
            Confidence::Thread => "Evidence (names of threads only):",
            Confidence::Mixed => "Evidence (exact and inferred names):",
        };
        body.push(Block::Paragraph(plain(told_by)));
        body.push(Block::Bullets(lines.collect()));
    }
    Block::Entry {
        number,
        title: head,
        body,
    }
}

fn of_saving(saving: Saving) -> String {
    let Saving {
        percent,
        us_per_request,
    } = saving;
    let each = us_per_request.map_or_else(String::new, |us| format!(", {us:.1} us per request"));
    format!("; saves about {percent:.1} %{each}")
}

fn of_setting(setting: &FindingSetting) -> Vec<Block> {
    let FindingSetting {
        system,
        key,
        yaml,
        scope,
        side_effects,
        undo,
    } = setting;
    let mut blocks = vec![
        Block::Paragraph(plain(format!("To change ({system}, {scope}): {key}"))),
        Block::Code(yaml.clone()),
        Block::Paragraph(plain(format!("Side effects: {side_effects}"))),
    ];
    if !undo.is_empty() {
        blocks.push(Block::Paragraph(plain(format!("To undo: {undo}"))));
    }
    blocks
}
