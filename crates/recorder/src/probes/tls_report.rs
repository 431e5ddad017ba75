//! The report on a file with a TLS library, and what probes have cost.

use std::time::Duration;

use profiler_common::tls::{TLS_CALLS_MET, TLS_RESULTS_MET, TLS_STEPPED_MET};
use profiler_model::{TlsFileReport, TlsProbeSite, cost_ns};
use profiler_tls_sites::{Finding, Site, TlsFunction, TlsMapping};

use super::tls_turns::MOST_PROBED;
use crate::bpf::{Group, LoadError, LoadedObject, is_of};

/// Tells of probes where a file hands out ciphertext.
pub(super) fn add_ciphertext(
    report: &mut TlsFileReport,
    mapping: &TlsMapping,
    failure: Option<LoadError>,
) {
    if let Finding::Found(found) = &mapping.content.finding {
        for site in found.ciphertext().flat_map(sites) {
            if !report.sites.contains(&site) {
                report.sites.push(site);
            }
        }
    }
    let reason = failure.map(|error| error.to_string());
    report
        .reasons
        .extend(reason.filter(|reason| !report.reasons.contains(reason)));
}

/// What is reported about a file whose library `processes` run without probes, when there are any.
pub(super) fn left_out_reason(processes: u64) -> Option<String> {
    (processes > 0).then(|| {
        format!(
            "not read in {processes} more processes: probes are in {MOST_PROBED} processes at most"
        )
    })
}

pub(super) fn file_report(mapping: &TlsMapping) -> TlsFileReport {
    let mut report = TlsFileReport {
        path: mapping.path.to_string(),
        build_id: mapping.content.build_id.clone(),
        library: None,
        found_by: None,
        sites: Vec::new(),
        processes: 0,
        reasons: Vec::new(),
    };
    match &mapping.content.finding {
        Finding::None => {}
        Finding::Refused(reason) => report.reasons.push(reason.clone()),
        Finding::Found(found) => {
            report.library = Some(found.library.name().to_owned());
            report.found_by = Some(found.evidence.name().to_owned());
            report.sites = found.plaintext().flat_map(sites).collect();
            let left_out = found.left_out.iter();
            report
                .reasons
                .extend(left_out.map(|(name, reason)| format!("{name}: {reason}")));
        }
    }
    report
}

fn sites(function: &TlsFunction) -> Vec<TlsProbeSite> {
    let site = |is_result, site: &Site| TlsProbeSite {
        function: function.call.name.to_owned(),
        is_result,
        address: site.address,
        class: site.class.name().to_owned(),
        price_ns: site.class.price_ns(),
    };
    let results = function.returns.iter().map(|one| site(true, &one.site));
    std::iter::once(site(false, &function.entry.site))
        .chain(results)
        .collect()
}

/// What all hits have cost so far, in nanoseconds, about.
pub(super) fn spent_ns(object: &LoadedObject) -> Result<u64, LoadError> {
    let counters = object.tls_counters()?;
    let of = |counter: u32| counters.get(counter as usize).copied().unwrap_or(0);
    let hits = of(TLS_CALLS_MET) + of(TLS_RESULTS_MET);
    Ok(cost_ns(hits, of(TLS_STEPPED_MET), None))
}

/// Mean time of a run of the programs, while the kernel measures it.
pub(super) fn program_ns(object: &LoadedObject) -> Option<u64> {
    let programs = object.programs();
    let tls = programs
        .iter()
        .filter(|program| is_of(Group::Tls, &program.name));
    let (runs, time) = tls.fold((0, Duration::ZERO), |(runs, time), program| {
        (runs + program.run_count, time + program.run_time)
    });
    let time_ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    time_ns.checked_div(runs)
}
