//! What findings tell people to copy.

use saphyr::{LoadableYamlNode as _, Yaml};

use super::embedded;
use crate::diagnosis::file::System;

#[test]
fn every_yaml_is_one_document_that_has_the_key() {
    let rules = embedded();
    let mut seen = 0;
    for finding in &rules.findings {
        for setting in &finding.settings {
            let id = finding.id.get_ref();
            let yaml = setting.yaml.replace("{name}", "cors");
            if setting.system == System::Nginx {
                assert_eq!(yaml.matches('{').count(), yaml.matches('}').count(), "{id}");
                continue;
            }
            let documents =
                Yaml::load_from_str(&yaml).unwrap_or_else(|error| panic!("{id}: {error}\n{yaml}"));
            let [document] = documents.as_slice() else {
                panic!("{id}: {} documents", documents.len());
            };
            assert!(document.is_mapping(), "{id}: {yaml}");
            let resource = matches!(setting.system, System::Istio);
            assert!(
                !resource || (yaml.contains("apiVersion: ") && yaml.contains("kind: ")),
                "{id}: {yaml}"
            );
            let words = setting.key.split(|character: char| {
                !character.is_alphanumeric() && character != '_' && character != '-'
            });
            let mut words = words.filter(|word| word.len() > 3);
            assert!(
                words.any(|word| yaml.contains(word)),
                "{id}: {} is not in\n{yaml}",
                setting.key
            );
            for text in [&setting.scope, &setting.side_effects] {
                assert!(!text.trim().is_empty(), "{id}");
            }
            seen += 1;
        }
    }
    assert!(seen > 30, "{seen}");
}

#[test]
fn every_finding_says_why_and_what_to_do() {
    for finding in &embedded().findings {
        let id = finding.id.get_ref();
        assert!(
            finding.reason.trim().ends_with('.'),
            "{id}: {}",
            finding.reason
        );
        // Nothing can be set against lost packets and against one's own handlers; each response flag names its settings.
        let settings = !finding.settings.is_empty();
        assert!(
            settings
                || ["retransmits", "event_loop_stalls", "response_flag"].contains(&id.as_str()),
            "{id}"
        );
    }
}
