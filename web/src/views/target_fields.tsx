// The part of the create dialog that says what is profiled.

import { useMemo, useState } from "preact/hooks";
import type { Process } from "../api/types";
import { cpu, shortId, visible } from "../lib/format";
import { compareBy, matchesFilter } from "../lib/process_list";
import type { TaskForm } from "../lib/task_spec";
import { processes } from "../state/live";
import { Icon } from "./icons";

interface Props {
  readonly form: TaskForm;
  readonly change: (part: Partial<TaskForm>) => void;
  readonly matched: readonly Process[];
}

/** More rows than this are not drawn: the filter finds the rest. */
const MAX_CHOICES = 60;

function ProcessPicker({ form, change }: Props) {
  const [filter, setFilter] = useState("");
  const all = processes.value;
  const found = useMemo(
    () =>
      [...(all?.values() ?? [])]
        .filter((p) => !p.kernel_thread && matchesFilter(p, filter))
        .sort(compareBy("-cpu")),
    [all, filter],
  );
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
        placeholder="Find a process: name, pid, user, container"
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
  const containers = new Map<string, { runtime: string; count: number; cpu: number }>();
  for (const { container, cpu_percent } of processes.value?.values() ?? []) {
    if (container === null) continue;
    const known = containers.get(container.id) ?? { runtime: container.runtime, count: 0, cpu: 0 };
    containers.set(container.id, { ...known, count: known.count + 1, cpu: known.cpu + (cpu_percent ?? 0) });
  }
  if (containers.size === 0 && form.container === "") {
    return <p class="muted field">No containers are running on this node.</p>;
  }
  const gone = form.container !== "" && !containers.has(form.container);
  return (
    <div class="field">
      <select
        aria-label="Container"
        value={form.container}
        onChange={(event) => change({ container: event.currentTarget.value })}
      >
        <option value="">Pick a container</option>
        {gone && <option value={form.container}>{shortId(form.container)} (not running)</option>}
        {[...containers].map(([id, { runtime, count, cpu: busy }]) => (
          <option key={id} value={id}>
            {shortId(id)} · {runtime} · {count} processes · {cpu(busy)}
          </option>
        ))}
      </select>
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
        {props.choices.slice(0, 500).map((choice) => (
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
  const count = props.matched.length;
  return (
    <>
      <Fields {...props} />
      <p class="muted small matched" hidden={props.form.target === "netns"}>
        {count === 1 ? "1 process" : `${count.toLocaleString()} processes`} now; processes born during the
        task are followed.
      </p>
    </>
  );
}
