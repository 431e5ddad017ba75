// The part of the create dialog that says what is profiled.

import { useMemo, useState } from "preact/hooks";
import type { Container, ContainerNames, Process } from "../api/types";
import { containerTitle, labelList, nameInPod } from "../lib/container_names";
import { cpu, plural, shortId, visible } from "../lib/format";
import { cores } from "../lib/pods";
import { compareBy, filterOf } from "../lib/process_list";
import { podOf, type SelectorFields, type TaskForm } from "../lib/task_spec";
import { pods, processes } from "../state/live";
import { Icon } from "./icons";
import { Loading } from "./states";

interface Props {
  readonly form: TaskForm;
  readonly change: (part: Partial<TaskForm>) => void;
  readonly matched: readonly Process[];
}

const MOST_OFFERED = 500;
/** More rows than this are not drawn: the filter finds the rest. */
const MAX_CHOICES = 60;

function ProcessPicker({ form, change }: Props) {
  const [filter, setFilter] = useState("");
  const all = processes.value;
  const found = useMemo(() => {
    const wanted = filterOf(filter);
    return [...(all?.values() ?? [])].filter((p) => !p.kernel_thread && wanted(p)).sort(compareBy("-cpu"));
  }, [all, filter]);
  const names = new Map([...(all?.values() ?? [])].map((process) => [process.pid, process.comm]));
  const toggle = (pid: number): void => {
    change({
      pids: form.pids.includes(pid) ? form.pids.filter((other) => other !== pid) : [...form.pids, pid],
    });
  };
  return (
    <div class="field">
      {form.pids.length > 0 && (
        <ul class="chips" aria-label="Picked processes">
          {form.pids.map((pid) => (
            <li key={pid} class="chip">
              <span class="name">{visible(names.get(pid) ?? "not running")}</span>{" "}
              <span class="muted">{pid}</span>
              <button type="button" aria-label={`Remove ${pid}`} onClick={() => toggle(pid)}>
                <Icon name="close" />
              </button>
            </li>
          ))}
        </ul>
      )}
      <input
        type="search"
        aria-label="Find a process"
        data-first={form.pids.length === 0 ? "" : undefined}
        placeholder="Find a process: name, pid, user, container, pod"
        value={filter}
        onInput={(event) => setFilter(event.currentTarget.value)}
      />
      <ul class="choices" aria-label="Processes, busiest first">
        {found.slice(0, MAX_CHOICES).map((process) => (
          <li key={process.id}>
            <label class="choice">
              <input
                type="checkbox"
                checked={form.pids.includes(process.pid)}
                onChange={() => toggle(process.pid)}
              />
              <span class="name">{visible(process.comm)}</span>
              <span class="muted numeric">{process.pid}</span>
              <span class="numeric">{cpu(process.cpu_percent)}</span>
              <span class="muted mono path">{visible(process.exe ?? "")}</span>
            </label>
          </li>
        ))}
        {found.length > MAX_CHOICES && (
          <li class="muted small">and {found.length - MAX_CHOICES} more: type to find them</li>
        )}
        {found.length === 0 && <li class="muted small">nothing found</li>}
      </ul>
    </div>
  );
}

function ContainerPicker({ form, change }: Props) {
  const containers = new Map<string, { container: Container; count: number; cpu: number }>();
  for (const { container, cpu_percent } of processes.value?.values() ?? []) {
    if (container === null) continue;
    const known = containers.get(container.id) ?? { container, count: 0, cpu: 0 };
    containers.set(container.id, { ...known, count: known.count + 1, cpu: known.cpu + (cpu_percent ?? 0) });
  }
  if (containers.size === 0 && form.container === "") {
    return <p class="muted field">No containers are running on this node.</p>;
  }
  const gone = form.container !== "" && !containers.has(form.container);
  const named = [...containers.values()].sort(
    (a, b) =>
      Number(a.container.names === null) - Number(b.container.names === null) ||
      (containerTitle(a.container) < containerTitle(b.container) ? -1 : 1),
  );
  return (
    <div class="field">
      <select
        aria-label="Container"
        data-first={form.container === "" ? "" : undefined}
        value={form.container}
        onChange={(event) => change({ container: event.currentTarget.value })}
      >
        <option value="">Pick a container</option>
        {gone && <option value={form.container}>{shortId(form.container)} (not running)</option>}
        {named.map(({ container, count, cpu: busy }) => (
          <option key={container.id} value={container.id}>
            {container.names !== null && `${visible(container.names.title)} · `}
            {visible(shortId(container.id))} · {visible(container.runtime)} ·{" "}
            {plural(count, "process", "processes")} · {cpu(busy)}
          </option>
        ))}
      </select>
    </div>
  );
}

function PodPicker({ form, change }: Props) {
  if (pods.value === null) return <Loading what="pods" />;
  const real = pods.value.filter(({ kind }) => kind === "pod");
  if (real.length === 0 && form.pod === "") {
    return (
      <p class="muted field">No pod is running: every process is in the network namespace of the node.</p>
    );
  }
  const gone = form.pod !== "" && !real.some(({ key }) => key === form.pod);
  return (
    <div class="field">
      <select
        aria-label="Pod"
        data-first={form.pod === "" ? "" : undefined}
        value={form.pod}
        onChange={(event) => change({ pod: event.currentTarget.value })}
      >
        <option value="">Pick a pod</option>
        {gone && <option value={form.pod}>net {form.pod} (not running)</option>}
        {real.map((pod) => (
          <option key={pod.key} value={pod.key}>
            {visible(pod.title)} · net {pod.key} · {visible(pod.summary)}
          </option>
        ))}
      </select>
    </div>
  );
}

/** What is offered for a field: what the names have that fit the other fields. */
function offered(all: readonly ContainerNames[], { namespace, name }: SelectorFields) {
  const inNamespace = all.filter(({ pod }) => namespace === "" || pod?.namespace === namespace);
  const inPod = inNamespace.filter(({ pod }) => name === "" || pod?.name === name);
  return {
    namespace: unique(all.flatMap(({ pod }) => pod?.namespace ?? [])),
    name: unique(inNamespace.flatMap(({ pod }) => pod?.name ?? [])),
    labels: unique(inPod.flatMap(labelList)),
    container: unique(inPod.flatMap((names) => names.name ?? [])),
  };
}

const SELECTOR_FIELDS = [
  ["namespace", "Namespace", "any"],
  ["name", "Pod", "any"],
  ["labels", "Labels", "app=web,tier in (a,b)"],
  ["container", "Container", "all of the pod"],
] as const;

function KubernetesPicker({ form, change }: Props) {
  const named = [...(processes.value?.values() ?? [])].flatMap(({ container }) => container?.names ?? []);
  const choices = offered(named, form.selector);
  return (
    <div class="field">
      <div class="selector-fields">
        {SELECTOR_FIELDS.map(([key, title, placeholder]) => (
          <label key={key}>
            {title}
            <input
              placeholder={placeholder}
              data-first={key === "name" ? "" : undefined}
              list={`choices-${key}`}
              autocomplete="off"
              spellcheck={false}
              value={form.selector[key]}
              onInput={(event) =>
                change({ selector: { ...form.selector, [key]: event.currentTarget.value } })
              }
            />
            <datalist id={`choices-${key}`}>
              {choices[key].slice(0, MOST_OFFERED).map((choice) => (
                <option key={choice} value={choice} />
              ))}
            </datalist>
          </label>
        ))}
      </div>
      <p class="muted small">
        What is left empty does not matter; a pod, labels or a container must be there. Labels are written as
        for kubectl.
        {named.length === 0 && " No container here has a known name: the page of the node has the reason."}
      </p>
    </div>
  );
}

/** More are counted. */
const MOST_MATCHED = 8;

/** The processes that the target means now, with their CPU. */
function Matched({ form, matched }: Props) {
  const sorted = matched.toSorted(compareBy("-cpu"));
  const total = matched.reduce((sum, { cpu_percent }) => sum + (cpu_percent ?? 0), 0) / 100;
  const rest = sorted.length - MOST_MATCHED;
  const later =
    form.target === "pod" && podOf(matched) === null
      ? "their children are followed; connections are watched of the whole namespace."
      : form.target === "kubernetes" || form.target === "pod"
        ? "processes and pods that start during the task are followed."
        : "processes born during the task are followed.";
  return (
    <div class="matched small" aria-live="off">
      <p class="muted">
        {plural(matched.length, "process", "processes")} now, {cores(total)} cores; {later}
      </p>
      {form.target !== "pids" && form.target !== "all" && matched.length > 0 && (
        <ul class="matched-list" aria-label="Matched processes">
          {sorted.slice(0, MOST_MATCHED).map((process) => (
            <li key={process.id}>
              <span class="name">{visible(process.program)}</span> <span class="muted">{process.pid}</span>{" "}
              {form.target === "kubernetes" && process.container !== null && (
                <span class="muted">{visible(nameInPod(process.container))}</span>
              )}{" "}
              <span class="numeric">{cpu(process.cpu_percent)}</span>
            </li>
          ))}
          {rest > 0 && <li class="muted">and {rest} more</li>}
        </ul>
      )}
    </div>
  );
}

function TextTarget(props: {
  label: string;
  placeholder: string;
  value: string;
  choices: readonly string[];
  set: (value: string) => void;
}) {
  return (
    <div class="field">
      <input
        aria-label={props.label}
        placeholder={props.placeholder}
        list="target-choices"
        autocomplete="off"
        spellcheck={false}
        value={props.value}
        onInput={(event) => props.set(event.currentTarget.value)}
      />
      <datalist id="target-choices">
        {props.choices.slice(0, MOST_OFFERED).map((choice) => (
          <option key={choice} value={choice} />
        ))}
      </datalist>
    </div>
  );
}

function unique(values: Iterable<string>): string[] {
  return [...new Set(values)].sort();
}

function Fields(props: Props) {
  const { form, change } = props;
  const all = [...(processes.value?.values() ?? [])];
  switch (form.target) {
    case "pids":
      return <ProcessPicker {...props} />;
    case "pod":
      return <PodPicker {...props} />;
    case "kubernetes":
      return <KubernetesPicker {...props} />;
    case "container":
      return <ContainerPicker {...props} />;
    case "comm":
      return (
        <TextTarget
          label="Process name"
          placeholder="envoy"
          value={form.comm}
          choices={unique(all.filter((process) => !process.kernel_thread).map((process) => process.comm))}
          set={(comm) => change({ comm })}
        />
      );
    case "cgroup":
      return (
        <TextTarget
          label="Cgroup path"
          placeholder="/system.slice/nginx.service"
          value={form.cgroup}
          choices={unique(all.map((process) => process.cgroup).filter((path) => path !== ""))}
          set={(cgroup) => change({ cgroup })}
        />
      );
    case "netns":
      return (
        <TextTarget
          label="Path of the network namespace"
          placeholder="/run/netns/NAME or /proc/PID/ns/net"
          value={form.netns}
          choices={[]}
          set={(netns) => change({ netns })}
        />
      );
    case "all":
      return null;
  }
}

export function TargetFields(props: Props) {
  return (
    <>
      <Fields {...props} />
      {props.form.target !== "netns" && <Matched {...props} />}
    </>
  );
}
