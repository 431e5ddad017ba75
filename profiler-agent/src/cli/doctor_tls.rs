//! `doctor --pid`: what of the process's TLS could be read, and why not the rest.

use profiler_image::proc_dir::read_stat;
use profiler_model::ProcessKey;
use profiler_sandbox::broker;
use profiler_symbolize::SymbolizeConfig;
use profiler_tls_sites::{Finding, Site, TlsFinder, TlsFunction, TlsMapping};
use serde::Serialize;

use crate::terminal::Text;

/// One file with a TLS library in it.
#[derive(Debug, Serialize)]
pub(super) struct TlsReport {
    path: String,
    build_id: String,
    library: Option<&'static str>,
    /// How its functions were found.
    found_by: Option<&'static str>,
    probes: Vec<Probe>,
    /// Why the file, or a function of it, would not be probed.
    not_probed: Vec<String>,
}

/// A place for a probe.
#[derive(Debug, Serialize)]
struct Probe {
    function: &'static str,
    /// `arguments` or `result`.
    what: &'static str,
    /// As linked, hexadecimal.
    address: String,
    /// Bytes behind the function's beginning; none when it lies elsewhere.
    offset: Option<u64>,
    /// What the kernel does with the instruction there.
    class: &'static str,
    price_ns: u32,
}

/// Looks at the files of a process; empty when it is gone.
pub(super) fn examine(pid: u32, config: &SymbolizeConfig) -> Vec<TlsReport> {
    let Ok(stat) = read_stat(pid) else {
        return Vec::new();
    };
    let key = ProcessKey {
        pid,
        start_ticks: stat.start_ticks,
    };
    let found = broker::apart("tls-finder", || {
        TlsFinder::new(config.max_file_bytes, config.packs.clone()).find(key)
    });
    match found.and_then(|found| found) {
        Ok(found) => found.files.iter().map(report).collect(),
        Err(_) => Vec::new(),
    }
}

fn report(mapping: &TlsMapping) -> TlsReport {
    let mut report = TlsReport {
        path: mapping.path.to_string(),
        build_id: mapping.content.build_id.clone(),
        library: None,
        found_by: None,
        probes: Vec::new(),
        not_probed: Vec::new(),
    };
    match &mapping.content.finding {
        Finding::None => {}
        Finding::Refused(reason) => report.not_probed.push(reason.clone()),
        Finding::Found(file) => {
            report.library = Some(file.library.name());
            report.found_by = Some(file.evidence.name());
            report.probes = file.functions.iter().flat_map(probes).collect();
            let reasons = file.left_out.iter();
            report.not_probed = reasons
                .map(|(name, reason)| format!("{name}: {reason}"))
                .collect();
        }
    }
    report
}

fn probes(function: &TlsFunction) -> Vec<Probe> {
    let probe = |what, site: &Site| Probe {
        function: function.call.name,
        what,
        address: format!("{:#x}", site.address),
        offset: site.address.checked_sub(function.address),
        class: site.class.name(),
        price_ns: site.class.price_ns(),
    };
    let results = function.returns.iter();
    std::iter::once(probe("arguments", &function.entry.site))
        .chain(results.map(|one| probe("result", &one.site)))
        .collect()
}

/// Appends the files to the text of the report.
pub(super) fn write_text(files: &[TlsReport], text: &mut Text) {
    if files.is_empty() {
        text.blank();
        text.line(format_args!(
            "TLS: none of its files has functions of OpenSSL, BoringSSL, GnuTLS, Go or rustls"
        ));
        return;
    }
    for file in files {
        text.blank();
        text.line(format_args!("TLS in {}", file.path));
        if let (Some(library), Some(found_by)) = (file.library, file.found_by) {
            text.line(format_args!("  {:15} {library}, by {found_by}", "library"));
        }
        for probe in &file.probes {
            let offset = probe
                .offset
                .map_or_else(String::new, |offset| format!("+{offset:#x}"));
            let place = format!("{}{offset}", probe.function);
            text.line(format_args!(
                "  {:15} {place}, {}, about {} ns a hit",
                probe.what, probe.class, probe.price_ns
            ));
        }
        for reason in &file.not_probed {
            text.line(format_args!("  {:15} {reason}", "not probed"));
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A file with this wherever a text is not our own.
    pub(in crate::cli) fn with(foreign: &str) -> TlsReport {
        TlsReport {
            path: foreign.to_owned(),
            build_id: foreign.to_owned(),
            library: Some("OpenSSL"),
            found_by: Some("exported symbols"),
            probes: Vec::new(),
            not_probed: vec![foreign.to_owned()],
        }
    }

    #[test]
    fn files_are_listed_with_their_probes_and_refusals() {
        let files = [
            TlsReport {
                path: "/lib/libssl.so.3".to_owned(),
                build_id: "ab".to_owned(),
                library: Some("OpenSSL"),
                found_by: Some("exported symbols"),
                probes: vec![Probe {
                    function: "SSL_read",
                    what: "arguments",
                    address: "0x16".to_owned(),
                    offset: Some(0x16),
                    class: "jump",
                    price_ns: 725,
                }],
                not_probed: Vec::new(),
            },
            TlsReport {
                path: "/envoy".to_owned(),
                build_id: String::new(),
                library: None,
                found_by: None,
                probes: Vec::new(),
                not_probed: vec!["it holds 2 paths of the library's source".to_owned()],
            },
        ];
        let mut text = Text::default();
        write_text(&files, &mut text);
        assert!(text.contains("OpenSSL, by exported symbols"), "{text}");
        assert!(text.contains("SSL_read+0x16, jump, about 725 ns"), "{text}");
        assert!(text.contains("not probed      it holds 2 paths"), "{text}");
        let mut text = Text::default();
        write_text(&[], &mut text);
        assert!(text.contains("none of its files"), "{text}");
    }
}
