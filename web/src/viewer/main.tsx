// The page of an exported HTML file: one profile, without an agent. The data lie in the file itself as
// base64; the state of the view lies behind the # of the address.

import { render } from "preact";
import { type FlameIndex, indexFlameGraph } from "../lib/flame_index";
import { decodeFlameGraph } from "../lib/flamegraph";
import { type About, bytesOf, parseAbout } from "../lib/offline";
import { fullScreen, useFullScreen } from "../state/full_screen";
import { focusSearch, helpOpen, inTextField } from "../state/keys";
import { nextTheme, singleKeys, startPreferences, themeChoice } from "../state/preferences";
import { followHistory } from "../state/route";
import { DisplayMenu } from "../views/display_menu";
import { Help } from "../views/help";
import { Icon } from "../views/icons";
import { ProfileSearch, ProfileView } from "../views/profile_view";
import { useShownProfile } from "../views/shown_profile";
import { ErrorBox } from "../views/states";
import { ViewChoice } from "../views/view_choice";
import "../styles/tokens.css";
import "../styles/page.css";
import "../styles/controls.css";
import "../styles/tables.css";
import "../styles/flame.css";
import "../styles/result.css";
import "../styles/profile.css";
import "../styles/viewer.css";

/** Of the keys of the page, those that mean something here. */
const KEY_GROUPS = ["Tables", "Search", "Flame graph", "Selected frame"];

function text(id: string): string {
  return document.getElementById(id)?.textContent?.trim() ?? "";
}

async function unpacked(gzip: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const stream = new Blob([gzip]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function Viewer({ about, index }: { about: About; index: FlameIndex }) {
  const profile = useShownProfile(index);
  useFullScreen();
  return (
    <main class={fullScreen.value ? "viewer full" : "viewer"}>
      <header class="viewer-head">
        <h1>{about.title}</h1>
        <p class="muted">
          {about.idle !== "" && <>{about.idle}. </>}
          Exported by profiler-agent {about.version}; this file needs no network.
        </p>
        <button
          type="button"
          class="icon-button push"
          aria-label={`Theme: ${themeChoice.value}`}
          onClick={nextTheme}
        >
          <Icon
            name={themeChoice.value === "auto" ? "auto" : themeChoice.value === "dark" ? "moon" : "sun"}
          />
        </button>
        <button
          type="button"
          class="icon-button"
          aria-label="Keys"
          onClick={() => {
            helpOpen.value = true;
          }}
        >
          <Icon name="help" />
        </button>
      </header>
      <div class="toolbar result-bar">
        <ViewChoice order={false} />
        <ProfileSearch profile={profile} />
        <DisplayMenu index={profile.pane.index} changes timed={false} attributed={false} />
      </div>
      <ProfileView
        profile={profile}
        arrivedAt={null}
        running={false}
        failed={false}
        error={null}
        order={false}
        unit={about.unit}
        time={about.time}
      />
      {helpOpen.value && <Help groups={KEY_GROUPS} />}
    </main>
  );
}

function Problem({ what }: { what: string }) {
  return (
    <main class="viewer">
      <ErrorBox title="This file cannot be shown" detail={what} />
    </main>
  );
}

function startKeys(): void {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!singleKeys.value || inTextField(event.target)) return;
    if (event.key === "?") helpOpen.value = true;
    else if (event.key !== "/" || !focusSearch()) return;
    event.preventDefault();
  });
}

async function start(root: HTMLElement): Promise<void> {
  startPreferences();
  followHistory();
  try {
    const about = parseAbout(text("about"));
    const index = indexFlameGraph(decodeFlameGraph(await unpacked(bytesOf(text("profile")))));
    document.title = about.title;
    startKeys();
    render(<Viewer about={about} index={index} />, root);
  } catch (error) {
    render(<Problem what={error instanceof Error ? error.message : "unknown"} />, root);
  }
}

const root = document.getElementById("app");
if (root !== null) void start(root);
