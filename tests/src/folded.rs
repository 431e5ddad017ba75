//! Reading folded stacks: `frame;frame;frame count`, the root first.

use anyhow::{Context as _, Result};

/// Frames of the leaf's side that a summary shows.
const SHOWN_FRAMES: usize = 6;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldedStack {
    /// From the root to the leaf.
    pub frames: Vec<String>,
    pub count: u64,
}

impl FoldedStack {
    /// Whether a frame is the function `name`, with or without module path and decoration.
    pub fn has(&self, name: &str) -> bool {
        self.frames.iter().any(|frame| is_function(frame, name))
    }
}

/// Whether `frame` names the function: the last path segment, without `_[k]` and the like.
pub fn is_function(frame: &str, name: &str) -> bool {
    let plain = frame.split([' ', '(', '+']).next().unwrap_or(frame);
    let plain = plain
        .strip_suffix("_[k]")
        .or_else(|| plain.strip_suffix("_[i]"))
        .unwrap_or(plain);
    plain.rsplit("::").next() == Some(name)
}

/// All stacks of a profile.
#[derive(Clone, Debug, Default)]
pub struct Folded {
    pub stacks: Vec<FoldedStack>,
}

impl Folded {
    pub fn parse(text: &str) -> Result<Self> {
        let stacks = text.lines().map(parse_line).collect::<Result<_>>()?;
        Ok(Self { stacks })
    }

    pub fn total(&self) -> u64 {
        self.stacks.iter().map(|stack| stack.count).sum()
    }

    /// Samples of the stacks that `pick` accepts.
    pub fn count(&self, pick: impl Fn(&FoldedStack) -> bool) -> u64 {
        self.stacks
            .iter()
            .filter(|stack| pick(stack))
            .map(|stack| stack.count)
            .sum()
    }

    /// Share in percent of the samples with the function anywhere on their stack.
    #[expect(
        clippy::cast_precision_loss,
        reason = "sample counts stay far below 2^52"
    )]
    pub fn share(&self, function: &str) -> f64 {
        self.count(|stack| stack.has(function)) as f64 * 100.0 / self.total().max(1) as f64
    }

    /// The stacks whose frames do not have this in their names, for messages of failed tests.
    pub fn without(&self, part: &str) -> String {
        let lacks = |stack: &&FoldedStack| !stack.frames.iter().any(|frame| frame.contains(part));
        let line = |stack: &FoldedStack| format!("{} {}", stack.count, stack.frames.join(";"));
        let lines: Vec<_> = self.stacks.iter().filter(lacks).map(line).collect();
        lines.join("\n")
    }

    /// The heaviest stacks, for messages of failed tests.
    pub fn summary(&self) -> String {
        let mut stacks = self.stacks.clone();
        stacks.sort_by_key(|stack| std::cmp::Reverse(stack.count));
        let line = |stack: &FoldedStack| {
            let leaf_side = &stack.frames[stack.frames.len().saturating_sub(SHOWN_FRAMES)..];
            format!(
                "{:>7} {} .. {}",
                stack.count,
                stack.frames[0],
                leaf_side.join(";")
            )
        };
        let lines: Vec<String> = stacks.iter().take(12).map(line).collect();
        format!(
            "{} samples, heaviest stacks:\n{}",
            self.total(),
            lines.join("\n")
        )
    }
}

fn parse_line(line: &str) -> Result<FoldedStack> {
    let (frames, count) = line
        .rsplit_once(' ')
        .with_context(|| format!("not a folded line: {line:?}"))?;
    Ok(FoldedStack {
        frames: frames.split(';').map(str::to_owned).collect(),
        count: count
            .parse()
            .with_context(|| format!("not a count in {line:?}"))?,
    })
}
