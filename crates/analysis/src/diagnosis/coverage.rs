//! How much of the samples can be believed, and what to supply.

use std::collections::{BTreeMap, BTreeSet};

use profiler_model::hexadecimal as build_id_text;
use profiler_model::{
    FrameSpace, ModuleId, ModuleKind, NameClass, Profile, SampleRow, StackFault, ThreadState,
    diagnosis::{Coverage, UnnamedModule},
    percent,
    printable::printable,
};

use super::{attribute::Attribution, matrix::CellSums, rules::NO_SYMBOLS};
use crate::render::{names::module_name, quality};

/// Named samples that conclusions need, in percent.
pub(super) const SUFFICIENT_PERCENT: f64 = 60.0;
/// Files that are listed.
const MODULES: usize = 10;

/// Counts the samples of a profile that were on a CPU. `whole` is the profile as its task has it.
pub(super) fn coverage(profile: &Profile, sums: &CellSums<'_>, whole: &Profile) -> Coverage {
    let mut complete = 0u64;
    let mut named = 0u64;
    let mut modules: BTreeMap<ModuleId, u64> = BTreeMap::new();
    let broken: Vec<bool> = profile
        .stacks
        .iter()
        .map(|stack| stack.frames.iter().any(|frame| breaks_off(profile, *frame)))
        .collect();
    let on_cpu = |row: &&SampleRow| row.state == ThreadState::OnCpu;
    for row in profile.samples.iter().filter(on_cpu) {
        let Attribution {
            named: is_named, ..
        } = sums.attributions.of_row(row);
        if !broken[row.stack as usize] {
            complete = complete.saturating_add(row.total_ns);
        }
        if is_named {
            named = named.saturating_add(row.total_ns);
        }
        let unnamed: BTreeSet<ModuleId> = profile.stacks[row.stack as usize]
            .frames
            .iter()
            .map(|frame| &profile.frames[*frame as usize])
            .filter(|frame| {
                frame.space == FrameSpace::User && frame.source.class() == NameClass::Unnamed
            })
            .map(|frame| frame.module)
            .collect();
        for module in unnamed {
            let sum = modules.entry(module).or_default();
            *sum = sum.saturating_add(row.total_ns);
        }
    }
    let all = sums.ns;
    let named_percent = percent(named, all);
    let sufficient = named_percent >= SUFFICIENT_PERCENT;
    let unnamed_modules = unnamed_modules(profile, modules, all);
    let names = quality::names(whole);
    let named_frames = names.exact.saturating_add(names.inferred);
    Coverage {
        samples: sums.samples,
        complete_percent: percent(complete, all),
        named_percent,
        named_frames_percent: (names.frames() > 0).then(|| names.percent(named_frames)),
        attributed_percent: percent(sums.attributed_ns(), all),
        no_symbols_percent: percent(sums.ns_of(NO_SYMBOLS), all),
        sufficient,
        supply: (!sufficient && sums.ns > 0).then(|| supply(&unnamed_modules)),
        unnamed_modules,
    }
}

/// The frame that stands where a stack breaks off.
fn breaks_off(profile: &Profile, frame: u32) -> bool {
    let frame = &profile.frames[frame as usize];
    let text = frame
        .functions
        .first()
        .map_or("", |function| profile.text(function.name));
    frame.space == FrameSpace::Marker
        && StackFault::ALL
            .into_iter()
            .any(|fault| fault.marker() == text)
}

fn unnamed_modules(
    profile: &Profile,
    sums: BTreeMap<ModuleId, u64>,
    all: u64,
) -> Vec<UnnamedModule> {
    let mut merged: BTreeMap<(String, Option<String>), u64> = BTreeMap::new();
    for (id, ns) in sums {
        let module = &profile.modules[id as usize];
        let path = match (module.kind, profile.text(module.path)) {
            (ModuleKind::Elf, path) if !path.is_empty() => path,
            _ => module_name(profile, module),
        };
        let build_id = build_id_text(&module.build_id);
        let path = printable(path).into_owned();
        let key = (path, (!build_id.is_empty()).then_some(build_id));
        *merged.entry(key).or_default() += ns;
    }
    let mut modules: Vec<UnnamedModule> = merged
        .into_iter()
        .map(|((module, build_id), ns)| UnnamedModule {
            module,
            build_id,
            // Parts of one file in several mappings may be on one stack.
            share_percent: percent(ns, all).min(100.0),
        })
        .collect();
    modules.sort_by(|a, b| b.share_percent.total_cmp(&a.share_percent));
    modules.truncate(MODULES);
    modules
}

fn supply(modules: &[UnnamedModule]) -> String {
    match modules.first() {
        Some(UnnamedModule {
            module,
            build_id: Some(build_id),
            ..
        }) => format!(
            "symbols for {module} (build-id {build_id}): upload its unstripped file or debug file on \
             the Symbols page or with --symbol-dir, or set --debuginfod; for Envoy they are in the \
             image with `debug` in its name"
        ),
        Some(UnnamedModule {
            module,
            build_id: None,
            ..
        }) => format!(
            "a build of {module} that is not stripped, or code with a perf map: it has no build-id \
             that symbols could be found by"
        ),
        None => "stacks: those that were taken have no user frames".to_owned(),
    }
}
