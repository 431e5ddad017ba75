//! Settings for the very pod that was measured: its namespace, a selector for its workload and what is configured now are filled into the
//! YAML of the rules, the narrowest scope comes first, and each says how it is undone.
//!
//! Names and labels come from whoever names containers. Only those go into YAML that Kubernetes allows
//! (<https://kubernetes.io/docs/concepts/overview/working-with-objects/names/>, `labels/`).

use std::fmt::Write as _;

use profiler_model::{
    PodNames, Workload,
    diagnosis::{Diagnosis, Finding, FindingSetting},
    printable::printable_within,
};

/// Labels that name a workload; one of them has to be there.
const NAMING: [&str; 3] = ["app", "app.kubernetes.io/name", "k8s-app"];
/// Labels that tell it from others of the same name: all releases and all parts of an application share the others.
const MORE: [&str; 2] = ["app.kubernetes.io/instance", "app.kubernetes.io/component"];
/// Longest name of an object, and longest value of a label.
const LONGEST_NAME: usize = 63;
/// Columns of a pod in the verdict.
const POD_COLUMNS: usize = 120;
/// Columns of what is configured now.
const CONFIGURED: usize = 120;
/// Kind of which the object is there already, under a name that is not known: its selector is what changes.
const EXISTING: &str = "WasmPlugin";
/// Whose pod templates can have annotations.
const TEMPLATED: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

/// What a setting applies to, the narrowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    Workload,
    Namespace,
    Other,
    Mesh,
}

/// Fills in what is known of the pod, which the verdict begins with; without one settings are only put into order and say
/// how they are undone.
pub fn place(diagnosis: &mut Diagnosis, pod: Option<&PodNames>) {
    if let Some(PodNames {
        namespace, name, ..
    }) = pod
    {
        let pod = format!("{namespace}/{name}");
        let pod = printable_within(&pod, POD_COLUMNS);
        diagnosis.verdict = format!("{pod}: {}", diagnosis.verdict);
    }
    for finding in &mut diagnosis.findings {
        let Finding {
            id,
            configured,
            settings,
            ..
        } = finding;
        let mut placed: Vec<(usize, Reach, FindingSetting)> = Vec::new();
        for setting in settings.drain(..) {
            let same = placed
                .iter()
                .find(|(_, _, other)| other.system == setting.system);
            let order = same.map_or(placed.len(), |(order, _, _)| *order);
            let (reach, setting) = placed_setting(setting, id, configured.as_deref(), pod);
            placed.push((order, reach, setting));
        }
        placed.sort_by_key(|(order, reach, _)| (*order, *reach));
        settings.extend(placed.into_iter().map(|(_, _, setting)| setting));
    }
}

fn placed_setting(
    mut setting: FindingSetting,
    finding: &str,
    configured: Option<&str>,
    pod: Option<&PodNames>,
) -> (Reach, FindingSetting) {
    let now = configured.map(|now| printable_within(now, CONFIGURED));
    let Some(object) = Object::of(&setting.yaml) else {
        setting.undo = now.map_or_else(
            || "Put back what is configured now.".to_owned(),
            |now| format!("Put back what is configured now: {now}"),
        );
        return (Reach::Other, setting);
    };
    if object.kind == "IstioOperator" {
        "Apply the operator's file as it was before.".clone_into(&mut setting.undo);
        return (Reach::Mesh, commented(setting, now.as_deref()));
    }
    let namespace = pod
        .map(|pod| pod.namespace.as_str())
        .filter(|name| is_name(name));
    if object.kind == "Pod" {
        return (Reach::Workload, annotated(setting, now.as_deref(), pod));
    }
    let is_named = namespace.is_some() && pod.is_some_and(|pod| !labels(pod).is_empty());
    if object.has_selector && !is_named {
        // It chooses others than this pod.
        setting.undo = saved(&object, &object.name, &object.namespace);
        return (Reach::Namespace, commented(setting, now.as_deref()));
    }
    let mut reach = Reach::Namespace;
    let mut is_new = false;
    let mut name = object.name.clone();
    if let (Some(pod), Some(namespace)) = (pod, namespace) {
        let mut yaml = setting.yaml.replace(
            &format!("\n  namespace: {}", object.namespace),
            &format!("\n  namespace: {namespace}"),
        );
        let labels = labels(pod);
        if let (Some((_, value)), Some(selector)) = (labels.first(), object.selector()) {
            if object.kind != EXISTING {
                name = object_name(finding, value);
                is_new = true;
                yaml = yaml.replace(
                    &format!("\n  name: {}", object.name),
                    &format!("\n  name: {name}"),
                );
            }
            let mut chosen = format!("\nspec:\n  {selector}");
            for (label, value) in &labels {
                // Writing to a String cannot fail.
                let _infallible = write!(chosen, "\n      {label}: {value:?}");
            }
            yaml = without_selector(&yaml).replacen("\nspec:", &chosen, 1);
            reach = Reach::Workload;
            let all: Vec<String> = labels
                .iter()
                .map(|(label, value)| format!("{label}={value}"))
                .collect();
            setting.scope = format!("the pods with {} in {namespace}", all.join(", "));
            if let Some(more) = object.side_effects() {
                setting.side_effects = format!("{} {more}", setting.side_effects);
            }
        } else {
            setting.scope = format!("{}; written for {namespace}", setting.scope);
        }
        setting.yaml = yaml;
    }
    let namespace = namespace.unwrap_or(&object.namespace);
    setting.undo = if is_new {
        format!("kubectl delete {} {name} -n {namespace}", object.resource())
    } else {
        saved(&object, &name, namespace)
    };
    (reach, commented(setting, now.as_deref()))
}

/// How an object is undone that may have been there before.
fn saved(object: &Object, name: &str, namespace: &str) -> String {
    format!(
        "Keep what is there before you apply it (kubectl get {} {name} -n {namespace} -o yaml > before.yaml), and apply that; where \
         there was none, delete it.",
        object.resource()
    )
}

/// An annotation is written into the template that pods are made from.
fn annotated(
    mut setting: FindingSetting,
    now: Option<&str>,
    pod: Option<&PodNames>,
) -> FindingSetting {
    "Remove the annotation from the template of the pod; pods take it when they start."
        .clone_into(&mut setting.undo);
    let known = pod.and_then(|pod| {
        let Workload { kind, name } = pod.workload.as_ref()?;
        let is_known =
            TEMPLATED.contains(&kind.as_str()) && is_name(name) && is_name(&pod.namespace);
        is_known.then_some((kind.to_lowercase(), name, &pod.namespace))
    });
    let lines: Vec<&str> = setting
        .yaml
        .lines()
        .skip_while(|line| line.trim() != "annotations:")
        .skip(1)
        .collect();
    if let Some((kind, name, namespace)) = known {
        let mut yaml = format!(
            "# kubectl patch {kind} {name} -n {namespace} --patch-file FILE\nspec:\n  template:\n    metadata:\n      annotations:\n"
        );
        for line in lines {
            // Writing to a String cannot fail.
            let _infallible = writeln!(yaml, "        {}", line.trim());
        }
        yaml.trim_end().clone_into(&mut setting.yaml);
        setting.scope = format!("the pods of {kind} {name} in {namespace}, from their start on");
        setting.side_effects = format!(
            "{} All pods of {name} are replaced, one after another.",
            setting.side_effects
        );
    }
    commented(setting, now)
}

/// With what is configured now above the YAML.
fn commented(mut setting: FindingSetting, now: Option<&str>) -> FindingSetting {
    if let Some(now) = now {
        setting.yaml = format!("# configured now: {now}\n{}", setting.yaml);
    }
    setting
}

/// What a YAML document of the rules makes.
struct Object {
    kind: String,
    group: String,
    name: String,
    namespace: String,
    has_selector: bool,
}

impl Object {
    /// `None` for what is a part of a file.
    fn of(yaml: &str) -> Option<Self> {
        let value = |key: &str| {
            yaml.lines()
                .find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))
        };
        let group = value("apiVersion")?;
        Some(Self {
            kind: value("kind")?.to_owned(),
            group: group
                .split_once('/')
                .map_or("", |(group, _)| group)
                .to_owned(),
            name: value("  name").unwrap_or_default().to_owned(),
            namespace: value("  namespace").unwrap_or_default().to_owned(),
            has_selector: yaml.lines().any(|line| line.ends_with("elector:")),
        })
    }

    /// As `kubectl` takes it.
    fn resource(&self) -> String {
        format!("{}.{}", self.kind.to_lowercase(), self.group)
    }

    /// How objects of its kind choose workloads, up to the labels; `None` where they do not.
    fn selector(&self) -> Option<&'static str> {
        match self.kind.as_str() {
            "Telemetry" | "ProxyConfig" | "WasmPlugin" | "AuthorizationPolicy" | "PodMonitor" => {
                Some("selector:\n    matchLabels:")
            }
            "EnvoyFilter" | "Sidecar" => Some("workloadSelector:\n    labels:"),
            _ => None,
        }
    }

    /// What else to know where it is written for one workload.
    fn side_effects(&self) -> Option<String> {
        match self.kind.as_str() {
            // `istioctl analyze`: IST0110, IST0159.
            "Telemetry" | "Sidecar" => Some(format!(
                "Istio takes one {} for each workload: where there is one, add this to it.",
                self.kind
            )),
            "WasmPlugin" => {
                Some("If this pod does not need the extension, choose the pods that do.".to_owned())
            }
            "AuthorizationPolicy" => Some(
                "Requests to these pods that no ALLOW policy allows are denied from then on."
                    .to_owned(),
            ),
            "PodMonitor" => Some(
                "Another PodMonitor that chooses these pods still asks them: leave them out there."
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

/// The YAML without the selector of the rules, which is an example.
fn without_selector(yaml: &str) -> String {
    let mut is_selector = false;
    let kept = yaml.lines().filter(|line| {
        let is_below = line.starts_with("   ");
        is_selector = *line == "  selector:" || (is_selector && is_below);
        !is_selector
    });
    kept.collect::<Vec<_>>().join("\n")
}

/// The labels that choose the pod's workload, its name first; none where nothing names it.
fn labels(pod: &PodNames) -> Vec<(&'static str, &str)> {
    let of = |label: &'static str| {
        let value = pod.labels.get(label)?;
        is_label_value(value).then_some((label, value.as_str()))
    };
    let naming: Vec<_> = NAMING.into_iter().filter_map(of).collect();
    if naming.is_empty() {
        return naming;
    }
    naming
        .into_iter()
        .chain(MORE.into_iter().filter_map(of))
        .collect()
}

/// `tracing-web`: of the finding and the workload.
fn object_name(finding: &str, value: &str) -> String {
    let text = format!("{finding}-{value}").to_lowercase();
    let allowed = text.chars().map(|letter| {
        if letter.is_ascii_alphanumeric() {
            letter
        } else {
            '-'
        }
    });
    let name: String = allowed.take(LONGEST_NAME).collect();
    name.trim_end_matches('-').to_owned()
}

/// A DNS label or subdomain, as names of namespaces and workloads are.
fn is_name(text: &str) -> bool {
    is_bounded(text) && !text.contains(|letter: char| letter == '_' || letter.is_ascii_uppercase())
}

fn is_label_value(text: &str) -> bool {
    is_bounded(text) && text.len() <= LONGEST_NAME
}

fn is_bounded(text: &str) -> bool {
    let is_end = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric());
    text.len() <= 253
        && is_end(text.chars().next())
        && is_end(text.chars().next_back())
        && text
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter))
}

#[cfg(test)]
#[path = "place_tests.rs"]
mod tests;
