// The frame around every page: rail, top bar, connection banner, dialogs.

import { bytes, count, cpu } from "../lib/format";
import type { View } from "../lib/query_state";
import { helpOpen } from "../state/keys";
import { access, connection, meta, refreshError, self, tasks } from "../state/live";
import { dark, nextTheme, themeChoice } from "../state/preferences";
import { href, openView, patchRoute, route } from "../state/route";
import { CreateTask } from "./create_task";
import { Help } from "./help";
import { Icon } from "./icons";
import { NetworkPage } from "./network";
import { NodePage } from "./node";
import { ProcessesPage } from "./processes";
import { TokenPage } from "./states";
import { TaskPage } from "./task";
import { TasksPage } from "./tasks";

const PAGES = [
  { view: "processes", title: "Processes", icon: "processes" },
  { view: "tasks", title: "Tasks", icon: "tasks" },
  { view: "network", title: "Network", icon: "network" },
  { view: "node", title: "Node", icon: "node" },
] as const;

/** Lets the browser handle clicks that open a link elsewhere. */
function follow(event: MouseEvent, view: View): void {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  openView({ view });
}

function Rail() {
  const current = route.value.view === "task" ? "tasks" : route.value.view;
  const running = [...(tasks.value?.values() ?? [])].filter((task) => task.state === "running").length;
  return (
    <nav class="rail" aria-label="Pages">
      <a class="brand" href={href({ view: "processes" })} onClick={(event) => follow(event, "processes")}>
        <svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true">
          <rect class="brand-a" x="2" y="23" width="28" height="7" rx="1.5" />
          <rect class="brand-b" x="2" y="15" width="18" height="7" rx="1.5" />
          <rect class="brand-c" x="21" y="15" width="9" height="7" rx="1.5" />
          <rect class="brand-b" x="5" y="7" width="11" height="7" rx="1.5" />
        </svg>
        <span>profiler</span>
      </a>
      {PAGES.filter(({ view }) => view !== "network" || meta.value?.network === "always").map(
        ({ view, title, icon }) => (
          <a
            key={view}
            class="rail-link"
            href={href({ view })}
            aria-current={current === view ? "page" : undefined}
            onClick={(event) => follow(event, view)}
          >
            <Icon name={icon} />
            <span>{title}</span>
            {view === "tasks" && running > 0 && (
              <span class="badge" title={`${running} running`}>
                {running}
              </span>
            )}
          </a>
        ),
      )}
      <button
        type="button"
        class="primary rail-new"
        onClick={() => patchRoute({ create: true, pids: [], container: "" })}
      >
        <Icon name="plus" />
        <span>New task</span>
      </button>
    </nav>
  );
}

const CONNECTION_TEXT = {
  connecting: "connecting",
  live: "live",
  polling: "polling each 5 s",
  unreachable: "not reachable",
} as const;

function HealthChip() {
  const own = self.value;
  const lost = own?.losses.reduce((sum, loss) => sum + loss.count, 0) ?? 0;
  return (
    <a
      class="health"
      href={href({ view: "node" })}
      onClick={(event) => follow(event, "node")}
      title="What the agent itself costs, and what it lost; opens the node page"
    >
      <span class={`dot dot-${connection.value}`} aria-hidden="true" />
      <span class="health-state">{CONNECTION_TEXT[connection.value]}</span>
      {own !== null && (
        <>
          <span class="health-cost">
            agent <b>{cpu(own.cpu_percent)}</b> CPU
          </span>
          <span class="health-cost">
            <b>{bytes(own.rss_bytes)}</b>
          </span>
          <span class={lost > 0 ? "health-cost warn" : "health-cost"}>
            <b>{count(lost)}</b> lost
          </span>
        </>
      )}
    </a>
  );
}

function TopBar() {
  const info = meta.value;
  const choice = themeChoice.value;
  return (
    <header class="top-bar">
      <div class="node-name">
        {info === null ? <span class="muted">–</span> : <b>{info.node}</b>}
        {info !== null && (
          <span class="muted node-detail">
            {info.cpus} CPUs · {info.kernel} · {info.arch}
          </span>
        )}
      </div>
      {info?.demo_data === true && (
        <span class="demo-chip" title="Recorded on another machine; no task can be started here">
          demo data
        </span>
      )}
      <HealthChip />
      <button
        type="button"
        class="icon-button"
        onClick={nextTheme}
        title={`Theme: ${choice}${choice === "auto" ? ` (${dark.value ? "dark" : "light"} now)` : ""}`}
        aria-label={`Theme: ${choice}. Change`}
      >
        <Icon name={choice === "auto" ? "auto" : choice === "dark" ? "moon" : "sun"} />
      </button>
      <button
        type="button"
        class="icon-button"
        onClick={() => {
          helpOpen.value = true;
        }}
        title="Keys and help (?)"
        aria-label="Keys and help"
      >
        <Icon name="help" />
      </button>
    </header>
  );
}

function Banner() {
  if (connection.value === "unreachable") {
    return (
      <div class="banner banner-bad" role="alert">
        <b>The agent does not answer.</b> What you see is the last known state. Trying again…
      </div>
    );
  }
  if (refreshError.value !== null) {
    return (
      <div class="banner" role="alert">
        <b>The agent could not answer:</b> {refreshError.value}
      </div>
    );
  }
  return null;
}

function Page() {
  switch (route.value.view) {
    case "processes":
      return <ProcessesPage />;
    case "tasks":
      return <TasksPage />;
    case "task":
      return <TaskPage key={route.value.id} id={route.value.id} />;
    case "network":
      return <NetworkPage />;
    case "node":
      return <NodePage />;
  }
}

export function Shell() {
  if (access.value === "missing_token" || access.value === "wrong_token") return <TokenPage />;
  return (
    <div class="shell">
      <Rail />
      <div class="main-column">
        <TopBar />
        <Banner />
        <main class="page">
          <Page />
        </main>
      </div>
      {route.value.create && <CreateTask />}
      {helpOpen.value && <Help />}
    </div>
  );
}
