import { render } from "preact";
import { borrowToken, lendToken, takeTokenFromAddress } from "./api/token";
import { followKernel } from "./state/kernel";
import { startKeys } from "./state/keys";
import { access, reconnect, startLive } from "./state/live";
import { followEndings } from "./state/notify";
import { startPreferences } from "./state/preferences";
import { followProbes } from "./state/probes";
import { followHistory } from "./state/route";
import { followTitle } from "./state/title";
import { fetchPages } from "./views/later_pages";
import { Shell } from "./views/shell";
import "./styles/tokens.css";
import "./styles/page.css";
import "./styles/controls.css";
import "./styles/tables.css";
import "./styles/flame.css";
import "./styles/result.css";
import "./styles/profile.css";
import "./styles/network.css";
import "./styles/topology.css";
import "./styles/edge.css";
import "./styles/heat.css";
import "./styles/shell.css";
import "./styles/diagnosis.css";
import "./styles/checkup.css";
import "./styles/requests.css";
import "./styles/access_logs.css";
import "./styles/overview.css";

takeTokenFromAddress();
window.addEventListener("hashchange", () => {
  if (takeTokenFromAddress()) reconnect();
});
startPreferences();
followHistory();
startKeys();
lendToken(() => access.peek() === "granted");
followTitle();
followEndings();
// A tab without a token waits a moment for one of another tab.
void borrowToken().then(() => {
  startLive();
  followProbes();
  followKernel();
  const root = document.getElementById("app");
  if (root !== null) render(<Shell />, root);
});

// After the first page is drawn.
setTimeout(() => void fetchPages(), 1_500);
