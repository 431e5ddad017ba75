//! How good a result is.

use profiler_analysis::render::quality::{NameQuality, PoorModule, RuntimeGap};
use profiler_image::build_id::hexadecimal as build_id_text;
use serde::Serialize;
use utoipa::ToSchema;

/// How good a result is. Counts are by samples: a frame counts once for each sample that has it.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct ProfileQuality {
    names: NamesQuality,
}

/// Names of user frames. Each frame is of one class: `exact`, `inferred`, `interpreter`, `jit` or `unnamed`.
#[derive(Debug, Serialize, ToSchema)]
struct NamesQuality {
    frames: u64,
    /// Named by a table that compiler, linker or runtime made.
    exact: u64,
    /// Deduced from what the code refers to.
    inferred: u64,
    /// The loop of an interpreter: its name says nothing of the function that it interprets.
    interpreter: u64,
    /// Code made at run time, in memory without a file, that no perf map names.
    jit: u64,
    /// All others without a name.
    unnamed: u64,
    /// Where the names came from, most frames first.
    sources: Vec<SourceCount>,
    /// Samples with at least one user frame.
    samples: u64,
    /// Those of them with at least one named user frame.
    samples_with_a_name: u64,
    /// Files whose frames lack exact names, most frames first; at most 50.
    modules: Vec<ModuleQuality>,
    /// Language runtimes that `interpreter` and `jit` are of, most frames first.
    runtimes: Vec<RuntimeQuality>,
}

/// A language runtime whose functions have no names, and what gives them names.
#[derive(Debug, Serialize, ToSchema)]
struct RuntimeQuality {
    /// For people, as "Python 3.11 or older".
    runtime: &'static str,
    /// Of `interpreter` and `jit`.
    frames: u64,
    /// Samples with at least one such frame.
    samples: u64,
    /// For people: what gives names, or that nothing does.
    remedy: &'static str,
}

#[derive(Debug, Serialize, ToSchema)]
struct SourceCount {
    source: &'static str,
    frames: u64,
}

#[derive(Debug, Serialize, ToSchema)]
struct ModuleQuality {
    path: String,
    /// Null when the file has none, so that no symbol file can be given for it.
    #[schema(required)]
    build_id: Option<String>,
    unnamed: u64,
    inferred: u64,
}

impl From<NameQuality> for ProfileQuality {
    fn from(quality: NameQuality) -> Self {
        let frames = quality.frames();
        let NameQuality {
            exact,
            inferred,
            interpreter,
            jit,
            unnamed,
            sources,
            samples,
            samples_with_a_name,
            modules,
            runtimes,
        } = quality;
        let mut sources: Vec<SourceCount> = sources
            .into_iter()
            .map(|(source, frames)| SourceCount { source, frames })
            .collect();
        sources.sort_by_key(|count| std::cmp::Reverse(count.frames));
        Self {
            names: NamesQuality {
                frames,
                exact,
                inferred,
                interpreter,
                jit,
                unnamed,
                sources,
                samples,
                samples_with_a_name,
                modules: modules.into_iter().map(ModuleQuality::from).collect(),
                runtimes: runtimes.into_iter().map(RuntimeQuality::from).collect(),
            },
        }
    }
}

impl From<PoorModule> for ModuleQuality {
    fn from(module: PoorModule) -> Self {
        let PoorModule {
            path,
            build_id,
            unnamed,
            inferred,
        } = module;
        Self {
            path,
            build_id: (!build_id.is_empty()).then(|| build_id_text(&build_id)),
            unnamed,
            inferred,
        }
    }
}

impl From<RuntimeGap> for RuntimeQuality {
    fn from(gap: RuntimeGap) -> Self {
        let RuntimeGap {
            runtime,
            frames,
            samples,
        } = gap;
        Self {
            runtime: runtime.title(),
            frames,
            samples,
            remedy: runtime.remedy(),
        }
    }
}
