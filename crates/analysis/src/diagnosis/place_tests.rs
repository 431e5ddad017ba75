use std::collections::BTreeMap;

use profiler_model::diagnosis::{Confidence, Severity};

use super::*;
use crate::render::report::samples::rich;

fn pod(labels: &[(&str, &str)]) -> PodNames {
    PodNames {
        namespace: "shop".into(),
        name: "web-7d9f-x2x9z".into(),
        uid: "1".into(),
        labels: labels
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect::<BTreeMap<_, _>>(),
        workload: Some(Workload {
            kind: "Deployment".into(),
            name: "web".into(),
        }),
    }
}

/// The settings of a finding of the shipped rules, placed.
fn placed(id: &str, pod: Option<&PodNames>) -> Vec<FindingSetting> {
    let rules: toml::Value = toml::from_str(include_str!("../../rules/diagnosis.toml")).unwrap();
    let mut findings = rules["finding"].as_array().unwrap().iter();
    let finding = findings.find(|finding| finding["id"].as_str() == Some(id));
    let settings = finding.unwrap()["settings"].as_array().unwrap().iter();
    let settings = settings.map(|setting| {
        let text = |key: &str| setting[key].as_str().unwrap().trim_end().to_owned();
        FindingSetting {
            system: text("system"),
            key: text("key"),
            yaml: text("yaml"),
            scope: text("scope"),
            side_effects: text("side_effects"),
            undo: String::new(),
        }
    });
    let settings = settings.collect();
    let finding = Finding {
        id: id.to_owned(),
        title: id.to_owned(),
        severity: Severity::High,
        share_percent: 20.0,
        low: 19.0,
        high: 21.0,
        saving: None,
        evidence: Vec::new(),
        reason: String::new(),
        configured: Some("sampled at 100 %\nx: y".into()),
        settings,
        confidence: Confidence::Exact,
        cells: Vec::new(),
    };
    let mut diagnosis = rich("x");
    diagnosis.findings = vec![finding];
    place(&mut diagnosis, pod);
    diagnosis.findings.remove(0).settings
}

#[test]
fn a_setting_is_written_for_the_workload_and_its_namespace() {
    let pod = pod(&[("app", "web"), ("version", "v1")]);
    let settings = placed("tracing", Some(&pod));
    let [telemetry, operator, envoy] = settings.as_slice() else {
        panic!("{settings:#?}");
    };
    assert_eq!(
        telemetry.yaml,
        "# configured now: sampled at 100 %\\x0ax: y\n\
         apiVersion: telemetry.istio.io/v1\nkind: Telemetry\nmetadata:\n  name: tracing-web\n  namespace: shop\nspec:\n  \
         selector:\n    matchLabels:\n      app: \"web\"\n  tracing:\n    - randomSamplingPercentage: 1.0"
    );
    assert_eq!(telemetry.scope, "the pods with app=web in shop");
    assert_eq!(
        telemetry.undo,
        "kubectl delete telemetry.telemetry.istio.io tracing-web -n shop"
    );
    assert!(
        operator.yaml.contains("kind: IstioOperator"),
        "{operator:#?}"
    );
    assert_eq!(envoy.system, "envoy");
    assert!(
        envoy
            .undo
            .starts_with("Put back what is configured now: sampled")
    );
}

#[test]
fn the_narrowest_scope_comes_first() {
    let pod = pod(&[("app.kubernetes.io/instance", "shop-web"), ("app", "web")]);
    // The rules have the mesh first.
    let settings = placed("access_log_write", Some(&pod));
    let kinds: Vec<&str> = settings
        .iter()
        .map(|setting| {
            setting
                .yaml
                .lines()
                .find(|line| line.starts_with("kind"))
                .unwrap_or("part")
        })
        .collect();
    assert_eq!(kinds, ["kind: Telemetry", "kind: IstioOperator", "part"]);
    assert!(
        settings[0]
            .yaml
            .contains("      app: \"web\"\n      app.kubernetes.io/instance: \"shop-web\"\n"),
        "{}",
        settings[0].yaml
    );
    let effects = &settings[0].side_effects;
    assert!(
        effects.contains("one Telemetry for each workload"),
        "{effects}"
    );
    let lua = placed("lua", Some(&pod));
    assert!(
        lua[0]
            .yaml
            .contains("spec:\n  workloadSelector:\n    labels:\n      app"),
        "{}",
        lua[0].yaml
    );
}

#[test]
fn an_annotation_goes_into_the_template_of_the_workload() {
    let settings = placed("throttled", Some(&pod(&[("app", "web")])));
    let yaml = &settings[0].yaml;
    assert!(
        yaml.contains(
            "# kubectl patch deployment web -n shop --patch-file FILE\nspec:\n  template:\n    metadata:\n      annotations:\n        \
             sidecar.istio.io/proxyCPU: \"500m\"\n"
        ),
        "{yaml}"
    );
    assert!(settings[0].undo.starts_with("Remove the annotation"));
    let effects = &settings[0].side_effects;
    assert!(
        effects.ends_with("All pods of web are replaced, one after another."),
        "{effects}"
    );
}

#[test]
fn names_that_kubernetes_does_not_allow_are_written_nowhere() {
    for (namespace, value) in [
        ("shop", "web\"\n  evil: true"),
        ("shop", ""),
        ("shop", "-web"),
        ("Shop\nevil: x", "web"),
        ("", "web"),
    ] {
        let pod = PodNames {
            namespace: namespace.to_owned(),
            workload: Some(Workload {
                kind: "Deployment".into(),
                name: "web\nevil".into(),
            }),
            ..pod(&[("app", value)])
        };
        for id in ["tracing", "throttled", "lua", "filter_rbac"] {
            for setting in placed(id, Some(&pod)) {
                let all = format!("{}{}{}", setting.yaml, setting.scope, setting.undo);
                assert!(!all.contains("evil"), "{all}");
            }
        }
    }
}

#[test]
fn without_a_pod_the_rules_stand_as_they_are() {
    let settings = placed("tracing", None);
    assert!(settings[0].yaml.contains("\n  namespace: istio-system\n"));
    assert_eq!(
        settings[0].undo,
        "Keep what is there before you apply it (kubectl get telemetry.telemetry.istio.io mesh-default -n istio-system -o yaml > \
         before.yaml), and apply that; where there was none, delete it."
    );
}

#[test]
fn an_example_of_a_selector_is_replaced_by_the_labels_of_the_pod() {
    let pod = pod(&[("app", "web")]);
    let chosen = "metadata:\n  name: NAME\n  namespace: shop\nspec:\n  selector:\n    matchLabels:\n      app: \"web\"\n  ";
    for (id, kind, name, rest, effects) in [
        (
            "wasm",
            "WasmPlugin",
            "example",
            "url: oci://registry.example/plugin:1",
            "choose the pods that do.",
        ),
        (
            "filter_rbac",
            "AuthorizationPolicy",
            "filter-rbac-web",
            "action: ALLOW\n  rules:\n",
            "are denied from then on.",
        ),
        (
            "admin",
            "PodMonitor",
            "admin-web",
            "podMetricsEndpoints:\n    - path: /stats/prometheus\n      interval: 60s",
            "leave them out there.",
        ),
    ] {
        let settings = placed(id, Some(&pod));
        let (at, setting) = settings
            .iter()
            .enumerate()
            .find(|(_, setting)| setting.yaml.contains(&format!("\nkind: {kind}\n")))
            .unwrap();
        let expected = format!("{}{rest}", chosen.replace("NAME", name));
        assert!(setting.yaml.contains(&expected), "{}", setting.yaml);
        assert_eq!(
            setting.yaml.matches("elector:").count(),
            1,
            "{}",
            setting.yaml
        );
        assert_eq!(setting.scope, "the pods with app=web in shop");
        assert!(
            setting.side_effects.ends_with(effects),
            "{}",
            setting.side_effects
        );
        let is_kept = setting.undo.starts_with("Keep what is there");
        assert_eq!(is_kept, kind == "WasmPlugin", "{}", setting.undo);
        assert!(setting.undo.contains(" -n shop"), "{}", setting.undo);
        assert_eq!(at, 0, "{id}: the narrowest scope comes first");
    }
}

#[test]
fn a_release_alone_names_no_workload_and_an_example_of_a_selector_is_kept() {
    let release = pod(&[("app.kubernetes.io/instance", "shop")]);
    let settings = placed("tracing", Some(&release));
    let yaml = &settings[0].yaml;
    assert!(yaml.contains("\n  namespace: shop\n"), "{yaml}");
    assert!(!yaml.contains("selector"), "{yaml}");
    assert!(settings[0].undo.starts_with("Keep what is there"));
    for pod in [Some(&release), None] {
        let settings = placed("admin", pod);
        let mut settings = settings.iter();
        let monitor = settings.find(|setting| setting.yaml.contains("PodMonitor"));
        let yaml = &monitor.unwrap().yaml;
        assert!(yaml.contains("\n  namespace: istio-system\n"), "{yaml}");
        assert!(yaml.contains("key: istio-prometheus-ignore"), "{yaml}");
    }
}

#[test]
fn names_of_objects_are_short_and_allowed() {
    assert_eq!(
        object_name("access_log_write", "Web.v1"),
        "access-log-write-web-v1"
    );
    assert!(object_name("tracing", &"x".repeat(200)).len() <= LONGEST_NAME);
}
