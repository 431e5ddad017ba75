// The frame around every page: rail, top bar, connection banner, dialogs.

import { nodeProfile } from "../lib/continuous";
import { bytes, cpu, visible, visibleLines } from "../lib/format";
import { fullest } from "../lib/kernel_objects";
import { lossChip } from "../lib/losses";
import { getWithCurl, pagePath } from "../lib/page_request";
import type { View } from "../lib/query_state";
import { copied, copyLink, copyText } from "../state/clipboard";
import { kernelReadings } from "../state/kernel";
import { helpOpen, paletteOpen } from "../state/keys";
import { access, connection, lossesBefore, meta, refreshError, self, tasks } from "../state/live";
import { dark, nextTheme, themeChoice } from "../state/preferences";
import { mayChange } from "../state/role";
import { href, openView, patchRoute, route } from "../state/route";
import { Changing } from "./changing";
import { CreateTask } from "./create_task";
import { GroupPage } from "./group";
import { Help } from "./help";
import { Icon } from "./icons";
import {
  CheckupPage,
  CompareCheckupsPage,
  DiagnosePage,
  EdgePage,
  NetworkPage,
  NodePage,
  TaskDiagnosisPage,
  TaskPage,
} from "./later_pages";
import { Menu } from "./menu";
import { OverviewPage } from "./overview";
import { Palette } from "./palette";
import { PodsPage } from "./pods";
import { ProcessPanel } from "./process_panel";
import { ProcessesPage } from "./processes";
import { TokenPage } from "./states";
import { TasksPage } from "./tasks";

const PAGES = [
  { view: "overview", title: "Overview", icon: "overview" },
  { view: "diagnose", title: "Diagnose", icon: "checkup" },
  { view: "pods", title: "Pods", icon: "pods" },
  { view: "processes", title: "Processes", icon: "processes" },
  { view: "tasks", title: "Tasks", icon: "tasks" },
  { view: "network", title: "Network", icon: "network" },
  { view: "node", title: "Node", icon: "node" },
] as const;

/** Lets the browser handle clicks that open a link elsewhere. */
function follow(event: MouseEvent, view: View, id = ""): void {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  openView({ view, id });
}

/** The entry of the rail that a page belongs to. */
function railOf(view: View, id: string): View {
  if (view === "task" || view === "group") return "tasks";
  if (view === "checkup" || view === "diagnosis" || view === "compare-checkups") return "diagnose";
  if (view === "edge") return id === "" ? "network" : "tasks";
  return view;
}

function Rail() {
  const current = railOf(route.value.view, route.value.id);
  const all = [...(tasks.value?.values() ?? [])];
  const running = all.filter((task) => task.state === "running").length;
  const continuous = nodeProfile(all);
  const onProfile = continuous !== null && route.value.view === "task" && route.value.id === continuous.id;
  return (
    <nav class="rail" aria-label="Pages">
      <a class="brand" href={href({ view: "overview" })} onClick={(event) => follow(event, "overview")}>
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
            aria-current={current === view && !onProfile ? "page" : undefined}
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
      {continuous !== null && (
        <a
          class="rail-link"
          href={href({ view: "task", id: continuous.id })}
          aria-current={onProfile ? "page" : undefined}
          title="The continuous profile of the whole node"
          onClick={(event) => follow(event, "task", continuous.id)}
        >
          <Icon name="profile" />
          <span>Profile</span>
        </a>
      )}
      <Changing>
        <button
          type="button"
          class="primary rail-new"
          onClick={() => patchRoute({ create: true, pids: [], container: "", pod: "", checkup: false })}
        >
          <Icon name="plus" />
          <span>New task</span>
        </button>
        <button
          type="button"
          class="rail-new"
          title="On-CPU, off-CPU and network of one pod at once, and the verdict"
          onClick={() => patchRoute({ create: true, pids: [], container: "", pod: "", checkup: true })}
        >
          <Icon name="checkup" />
          <span>Check-up</span>
        </button>
      </Changing>
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
  const pressure = fullest(kernelReadings.value.at(-1)?.objects.maps ?? []);
  const losses = lossChip(own?.losses ?? [], lossesBefore.value);
  return (
    <a
      class="health"
      href={href({ view: "node" })}
      onClick={(event) => follow(event, "node")}
      title="What the agent itself costs, and what it lost; opens the node page"
    >
      <span class={`dot dot-${connection.value}`} aria-hidden="true" />
      <span class={`health-state health-${connection.value}`}>{CONNECTION_TEXT[connection.value]}</span>
      {own !== null && (
        <>
          <span class="health-cost">
            agent <b>{cpu(own.cpu_percent)}</b> CPU
          </span>
          <span class="health-cost">
            <b>{bytes(own.rss_bytes)}</b>
          </span>
          {losses.isLosing && (
            <span class="health-cost warn" title={visibleLines(losses.detail)}>
              {losses.text}
            </span>
          )}
          {pressure !== null && pressure.fill >= 1 && (
            <span
              class="health-cost warn"
              title={`The fullest of the agent's maps in the kernel: ${visible(pressure.name)}`}
            >
              a map is <b>full</b>
            </span>
          )}
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
        {info === null ? <span class="muted">–</span> : <b title={info.node}>{info.node}</b>}
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
      {!mayChange.value && (
        <span
          class="demo-chip"
          data-read-only
          title="The token of this page may look at everything and change nothing"
        >
          read-only
        </span>
      )}
      <HealthChip />
      <button
        type="button"
        class="icon-button"
        onClick={() => {
          paletteOpen.value = true;
        }}
        title="Go to anything (Ctrl-K)"
        aria-label="Go to anything"
      >
        <Icon name="search" />
      </button>
      <PageMenu />
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

/** The view for sharing: as an address, and as a request. */
function PageMenu() {
  return (
    <Menu title="Copy" class="menu-right page-menu">
      {(close) => (
        <>
          <button
            type="button"
            class="menu-item"
            onClick={() => {
              void copyLink();
              close();
            }}
          >
            <b>Copy link</b>
            <span class="muted">this view, without the token</span>
          </button>
          <button
            type="button"
            class="menu-item"
            onClick={() => {
              void copyText(getWithCurl(pagePath(route.value), location.origin), "Command");
              close();
            }}
          >
            <b>Copy as curl</b>
            <span class="muted">what this page shows</span>
          </button>
        </>
      )}
    </Menu>
  );
}

function Toast() {
  const { value } = copied;
  return (
    <div class="toast-place" role="status">
      {value !== null && <span class={value.ok ? "toast" : "toast toast-bad"}>{value.text}</span>}
    </div>
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
        <b>The agent could not answer:</b> {visible(refreshError.value.detail)}{" "}
        {refreshError.value.hint !== undefined && <span>{visible(refreshError.value.hint)} </span>}
        <code class="muted">{visible(refreshError.value.code)}</code>
      </div>
    );
  }
  return null;
}

/** What the address asked for and is not here. */
function DeadLink() {
  const { dead } = route.value;
  if (dead === "") return null;
  return (
    <div class="banner" role="alert" data-dead>
      <b>This address leads nowhere:</b> {visible(dead)}. What you see is another page.{" "}
      <button type="button" class="quiet" onClick={() => patchRoute({ dead: "" }, "replace")}>
        Dismiss
      </button>
    </div>
  );
}

function Page() {
  switch (route.value.view) {
    case "overview":
      return <OverviewPage />;
    case "pods":
      return <PodsPage />;
    case "processes":
      return <ProcessesPage />;
    case "group":
      return <GroupPage key={route.value.id} id={route.value.id} />;
    case "tasks":
      return <TasksPage />;
    case "task":
      return <TaskPage key={route.value.id} id={route.value.id} />;
    case "network":
      return <NetworkPage />;
    case "edge":
      return (
        <EdgePage key={`${route.value.id}/${route.value.edge}`} id={route.value.id} edge={route.value.edge} />
      );
    case "node":
      return <NodePage />;
    case "diagnose":
      return <DiagnosePage />;
    case "checkup":
      return <CheckupPage key={route.value.id} id={route.value.id} />;
    case "diagnosis":
      return <TaskDiagnosisPage key={route.value.id} id={route.value.id} />;
    case "compare-checkups":
      return (
        <CompareCheckupsPage key={`${route.value.a}/${route.value.b}`} a={route.value.a} b={route.value.b} />
      );
  }
}

export function Shell() {
  if (access.value === "missing_token" || access.value === "wrong_token") return <TokenPage />;
  return (
    <div class="shell">
      <button
        type="button"
        class="skip-link"
        onClick={() => document.querySelector<HTMLElement>("main.page")?.focus()}
      >
        Skip to the page
      </button>
      <Rail />
      <div class="main-column">
        <TopBar />
        <Banner />
        <DeadLink />
        <main class="page" tabIndex={-1}>
          <Page />
        </main>
      </div>
      {route.value.create && mayChange.value && <CreateTask />}
      {route.value.process !== "" && <ProcessPanel />}
      {helpOpen.value && <Help />}
      {paletteOpen.value && <Palette />}
      <Toast />
    </div>
  );
}
