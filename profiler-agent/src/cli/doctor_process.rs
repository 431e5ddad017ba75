//! `doctor --pid`: what profiles of one process will be like, and what would make them better.

use anyhow::{Context as _, Result, bail};
use profiler_analysis::render::runtimes::Runtime;
use profiler_model::NameSource;
use profiler_symbolize::{Depth, FileForecast, Forecast, SymbolPacks, SymbolizeConfig, forecast};
use serde::Serialize;

use super::doctor_tls::{self, TlsReport};
use crate::{
    config::cli::DoctorArgs,
    terminal::{self, Text},
};

#[derive(Debug, Serialize)]
struct Report {
    pid: u32,
    comm: String,
    /// Null when the process can be profiled.
    refusal: Option<String>,
    files: Vec<File>,
    anonymous_executable_mappings: usize,
    /// Language runtimes whose functions native stacks do not name.
    runtimes: Vec<LanguageRuntime>,
    /// Files with a TLS library.
    tls: Vec<TlsReport>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct LanguageRuntime {
    runtime: &'static str,
    /// What gives names, or that nothing does.
    remedy: &'static str,
}

#[derive(Debug, Serialize)]
struct File {
    path: String,
    build_id: Option<String>,
    /// Where names can come from, in their order.
    symbols: Vec<&'static str>,
    /// Static functions have names as well, not only exported ones.
    complete: bool,
    lines: bool,
    eh_frame: bool,
    functions: Option<u64>,
    /// Shares of the code: functions that keep a frame pointer, that have no frame, and that only
    /// the unwind table can unwind.
    frame_pointer_percent: Option<f64>,
    frameless_percent: Option<f64>,
    unwind_table_only_percent: Option<f64>,
    refusal: Option<String>,
    /// What would give it better names; empty when there is nothing to do.
    remedy: String,
}

/// Prints the report; an error when the process cannot be profiled.
pub fn run(pid: u32, args: &DoctorArgs) -> Result<()> {
    let config = SymbolizeConfig {
        packs: SymbolPacks::open(None, args.symbol_dir.clone(), 0),
        ..SymbolizeConfig::default()
    };
    let forecast = forecast(pid, &config, Depth::Unwinding)?;
    let report = report(pid, forecast, doctor_tls::examine(pid, &config));
    if args.json {
        terminal::out(&Text::json(&report).context("encode the report")?)?;
    } else {
        terminal::out(&text(&report))?;
    }
    match report.refusal {
        Some(refusal) => bail!("{refusal}"),
        None => Ok(()),
    }
}

fn report(pid: u32, forecast: Forecast, tls: Vec<TlsReport>) -> Report {
    let Forecast {
        comm,
        files,
        anonymous,
        is_32_bit,
    } = forecast;
    Report {
        pid,
        refusal: is_32_bit
            .then(|| format!("process {pid} runs 32-bit code, whose stacks are not walked")),
        comm,
        runtimes: runtimes(&files, anonymous),
        files: files.into_iter().map(file).collect(),
        anonymous_executable_mappings: anonymous,
        tls,
    }
}

/// The runtimes that the files are of; a program with code of its own making is one as well.
fn runtimes(files: &[FileForecast], anonymous: usize) -> Vec<LanguageRuntime> {
    let found = files.iter().filter_map(|file| Runtime::of_file(&file.path));
    let mut found: Vec<Runtime> = found.collect();
    found.sort_unstable();
    found.dedup();
    // The program `python3` may be a link to one whose name has the version.
    if found
        .iter()
        .any(|one| matches!(one, Runtime::Python311 | Runtime::Python312))
    {
        found.retain(|one| *one != Runtime::Python);
    }
    if found.is_empty() && anonymous > 0 {
        found.push(Runtime::Other);
    }
    let described = |runtime: Runtime| LanguageRuntime {
        runtime: runtime.title(),
        remedy: runtime.remedy(),
    };
    found.into_iter().map(described).collect()
}

fn file(forecast: FileForecast) -> File {
    let remedy = forecast.remedy();
    let FileForecast {
        path,
        build_id,
        sources,
        is_complete,
        has_lines,
        has_unwind_table,
        frame_pointers,
        refusal,
    } = forecast;
    File {
        path,
        build_id: Some(build_id).filter(|id| !id.is_empty()),
        symbols: sources.into_iter().map(NameSource::name).collect(),
        complete: is_complete,
        lines: has_lines,
        eh_frame: has_unwind_table,
        functions: frame_pointers.map(|measured| measured.functions),
        frame_pointer_percent: frame_pointers.map(|all| all.percent(all.with_bytes)),
        frameless_percent: frame_pointers.map(|all| all.percent(all.frameless_bytes)),
        unwind_table_only_percent: frame_pointers.map(|all| all.percent(all.without_bytes)),
        refusal,
        remedy,
    }
}

fn text(report: &Report) -> Text {
    let mut text = Text::default();
    text.line(format_args!("process {} ({})", report.pid, report.comm));
    for file in &report.files {
        text.blank();
        text.line(format_args!("{}", file.path));
        let build_id = file.build_id.as_deref().unwrap_or("none");
        let mut line = |label: &str, value: &str| {
            text.line(format_args!("  {label:15} {value}"));
        };
        line("build-id", build_id);
        if let Some(refusal) = &file.refusal {
            line("not used", refusal);
            continue;
        }
        let names = match (file.symbols.as_slice(), file.complete) {
            ([], _) => "none".to_owned(),
            (symbols, true) => symbols.join(", "),
            (symbols, false) => format!("{}, exported functions only", symbols.join(", ")),
        };
        line("names from", &names);
        line("lines", if file.lines { "yes" } else { "no" });
        line("unwind table", if file.eh_frame { "yes" } else { "no" });
        let pointers = match (
            file.frame_pointer_percent,
            file.frameless_percent,
            file.unwind_table_only_percent,
        ) {
            (Some(with), Some(frameless), Some(without)) => format!(
                "{with:.1} % of the code keeps them, {frameless:.1} % has no frame, \
                 {without:.1} % needs the unwind table"
            ),
            _ => "unknown".to_owned(),
        };
        line("frame pointers", &pointers);
        if !file.remedy.is_empty() {
            line("->", &file.remedy);
        }
    }
    if report.anonymous_executable_mappings > 0 {
        text.blank();
        text.line(format_args!(
            "{} executable mappings without a file: code made at run time, named by /tmp/perf-PID.map if the runtime \
             writes one",
            report.anonymous_executable_mappings
        ));
    }
    for runtime in &report.runtimes {
        text.blank();
        text.line(format_args!(
            "{}: native stacks do not say which of its functions runs",
            runtime.runtime
        ));
        text.line(format_args!("  {:15} {}", "->", runtime.remedy));
    }
    doctor_tls::write_text(&report.tls, &mut text);
    text
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The text of a report with this wherever a text is not our own.
    pub(in crate::cli) fn with(foreign: &str) -> Text {
        let file = |refusal| File {
            path: foreign.to_owned(),
            build_id: Some(foreign.to_owned()),
            symbols: vec!["elf_symbol"],
            complete: false,
            lines: false,
            eh_frame: false,
            functions: None,
            frame_pointer_percent: None,
            frameless_percent: None,
            unwind_table_only_percent: None,
            refusal,
            remedy: foreign.to_owned(),
        };
        text(&Report {
            pid: 7,
            comm: foreign.to_owned(),
            refusal: Some(foreign.to_owned()),
            files: vec![file(None), file(Some(foreign.to_owned()))],
            anonymous_executable_mappings: 1,
            runtimes: runtimes(&[], 1),
            tls: vec![doctor_tls::tests::with(foreign)],
        })
    }

    #[test]
    fn a_runtime_is_said_once_with_what_gives_its_functions_names() {
        let file = |path: &str| FileForecast {
            path: path.to_owned(),
            build_id: String::new(),
            sources: Vec::new(),
            is_complete: true,
            has_lines: false,
            has_unwind_table: true,
            frame_pointers: None,
            refusal: None,
        };
        let titles = |paths: &[&str], anonymous| {
            let files: Vec<FileForecast> = paths.iter().map(|path| file(path)).collect();
            let found = runtimes(&files, anonymous);
            found.iter().map(|found| found.runtime).collect::<Vec<_>>()
        };
        let python = [
            "/opt/bin/python3",
            "/opt/lib/libpython3.12.so.1.0",
            "/usr/lib/libc.so.6",
        ];
        assert_eq!(titles(&python, 0), ["Python 3.12 or newer"]);
        assert_eq!(titles(&["/usr/bin/python3"], 0), ["Python"]);
        let java = ["/opt/jdk/bin/java", "/opt/jdk/lib/server/libjvm.so"];
        assert_eq!(titles(&java, 3), ["Java"]);
        assert_eq!(titles(&["/usr/bin/work"], 1), ["code made at run time"]);
        assert_eq!(titles(&["/usr/bin/work"], 0), [""; 0]);
        let text = with("a");
        assert!(!text.contains("DumpPerfMapAtExit"), "{text}");
        assert!(
            text.contains("its runtime must write /tmp/perf-PID.map"),
            "{text}"
        );
    }

    #[test]
    fn names_of_the_process_are_escaped() {
        let text = with("a\x1b[2J\nb");
        assert!(text.starts_with("process 7 (a\\x1b[2J\\x0ab)\n"), "{text}");
        assert!(text.contains("\nTLS in a\\x1b[2J\\x0ab\n"), "{text}");
    }
}
