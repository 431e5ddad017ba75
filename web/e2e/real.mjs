// Walks through the page as a person would, against a running agent.
// Env: AGENT_URL (as the agent prints it, with #token=), TARGET_PID (a process that uses CPU),
// SHOTS (folder for screenshots, optional). Prints "N passed, M failed"; exit code 1 on failure.

import { mkdirSync, readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { launch, openOptions, openPage } from "./browser.mjs";

const WAIT_MS = 20_000;

/** Runs named checks; a failed one does not stop the others. */
export class Checks {
  passed = 0;
  failed = 0;

  async run(name, check) {
    try {
      await check();
      this.passed += 1;
      console.log(`ok      ${name}`);
    } catch (error) {
      this.failed += 1;
      console.log(`FAILED  ${name}: ${error.message.split("\n").slice(0, 6).join(" | ")}`);
    }
  }

  finish() {
    console.log(`${this.passed} passed, ${this.failed} failed`);
    process.exitCode = this.failed === 0 ? 0 : 1;
  }
}

export function assert(condition, message) {
  if (!condition) throw new Error(message);
}

/** The address as the page sees it: the browser's own notice of a change may come later. */
export const address = (page) => page.evaluate(() => location.href);

/** Presses the key for the table until it shows: a page that has just been drawn may not listen to keys yet. */
async function showTable(page) {
  const row = page.locator(".edge-table [role=row][data-row]").first();
  for (let left = 4; left > 0; left -= 1) {
    await page.keyboard.press("t");
    const isThere = await row.waitFor({ timeout: 5_000 }).then(
      () => true,
      () => false,
    );
    // Where the map is gone the table is only late: another key would bring the map back.
    if (isThere || (await page.locator(".map .map-node").count()) === 0) break;
  }
  await row.waitFor();
}

/** A place on a frame of the wanted row (0 is the root), or of the nearest row below that has one. */
async function frameAt(page, wantedRow) {
  const box = await page.locator(".flame-canvas").boundingBox();
  for (let row = wantedRow; row > 0; row -= 1) {
    for (const share of [0.3, 0.1, 0.5, 0.7, 0.9, 0.02]) {
      const place = { x: box.x + box.width * share, y: box.y + box.height - row * 18 - 9 };
      await page.mouse.move(place.x, place.y);
      if ((await page.locator(".flame-canvas.over-frame").count()) > 0) return place;
    }
  }
  throw new Error("no frame above the root");
}

/** `edgePort`: of the server of an edge that is looked at; without one the first edge is. */
export async function walk(checks, { agentUrl, pid, edgePort, shots }) {
  const { origin } = new URL(agentUrl);
  const browser = await launch();
  const { page, faults } = await openPage(browser, origin);
  page.setDefaultTimeout(WAIT_MS);
  const shot = async (name) => {
    if (shots !== undefined) await page.screenshot({ path: `${shots}/${name}.png` });
  };

  await checks.run("the page opens with the token and hides it", async () => {
    await page.goto(agentUrl);
    await page.waitForSelector(".overview-page h1");
    assert(
      !(await address(page)).includes("token"),
      `the address still has the token: ${await address(page)}`,
    );
    await page.waitForFunction(() => document.querySelector(".dot-live") !== null);
    await shot("0-overview");
    await page.getByRole("link", { name: "Processes" }).click();
    await page.waitForSelector("[role=grid] [role=row][data-row]");
    await shot("1-processes");
  });
  await checks.run("the target is in the process list and can be filtered", async () => {
    await page.fill("[data-search]", String(pid));
    await page.locator(`[aria-label^="Profile "][aria-label$=" ${pid}"]`).waitFor();
  });
  await checks.run("a task is created by clicking", async () => {
    await page.locator(`[aria-label^="Profile "][aria-label$=" ${pid}"]`).click();
    await openOptions(page);
    await page.fill("#duration", "3");
    await shot("2-create");
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.waitForURL(/view=task&id=/);
  });
  await checks.run("the task runs, finishes and shows its graph", async () => {
    await page.locator(".task-title .state-finished").waitFor();
    await page.locator(".flame-canvas").waitFor();
    await page.waitForTimeout(500);
    await shot("3-finished");
  });
  await checks.run("hovering a frame tells self and total", async () => {
    await frameAt(page, 2);
    const tooltip = page.locator("[data-tooltip]");
    await tooltip.waitFor();
    const text = await tooltip.textContent();
    assert(/total/.test(text) && /self/.test(text) && /%/.test(text), `tooltip says: ${text}`);
    await shot("4-tooltip");
  });
  let frameName = "";
  await checks.run("clicking a frame zooms into it, Backspace comes back", async () => {
    const place = await frameAt(page, 3);
    await page.mouse.click(place.x, place.y);
    await page.waitForURL(/zoom=[0-9a-f]{16}/);
    await page.locator(".crumb.here").waitFor();
    frameName = (await page.locator("[data-details] code").first().textContent()).trim();
    assert(frameName !== "", "the zoomed frame has no name");
    await page.waitForTimeout(300);
    await shot("5-zoomed");
    await page.focus("[role=tree]");
    for (let i = 0; i < 20 && (await address(page)).includes("zoom="); i += 1)
      await page.keyboard.press("Backspace");
    assert(!(await address(page)).includes("zoom="), "still zoomed after Backspace");
  });
  await checks.run("searching shows the matched share", async () => {
    await page.fill("[data-search]", frameName.slice(0, 40));
    const result = page.locator("[data-matched]");
    await result.waitFor();
    const text = await result.textContent();
    const share = /([\d.]+) % matched/.exec(text);
    assert(share !== null && Number(share[1]) > 0 && Number(share[1]) <= 100, `the result says: ${text}`);
    assert((await address(page)).includes("search="), "the search is not in the address");
    await shot("6-search");
  });
  await checks.run("a bad pattern is told, not thrown", async () => {
    await page.fill("[data-search]", "/(/");
    assert((await page.locator("[data-matched]").textContent()).includes("not a valid"), "no message");
    await page.fill("[data-search]", "");
  });
  await checks.run("the keyboard walks the frames", async () => {
    await page.focus("[role=tree]");
    await page.keyboard.press("ArrowUp");
    const first = await page.locator("#flame-item").textContent();
    await page.keyboard.press("ArrowUp");
    const second = await page.locator("#flame-item").textContent();
    assert(first !== second, `the selection stays at ${first}`);
    await page.keyboard.press("Enter");
    await page.waitForURL(/zoom=/);
    await page.keyboard.press("0");
    assert(!(await address(page)).includes("zoom="), "0 does not show everything");
  });
  await checks.run("the table has the same samples", async () => {
    await page.getByRole("button", { name: "Table", exact: true }).click();
    await page.locator("[data-function-table] [role=row][data-row]").first().waitFor();
    await shot("7-table");
    await page.getByRole("button", { name: "Flame", exact: true }).click();
  });
  await checks.run("the view survives a reload", async () => {
    await page.getByRole("button", { name: "Icicle" }).click();
    await page.fill("[data-search]", frameName.slice(0, 40));
    const before = await address(page);
    await page.reload();
    await page.locator("[data-matched]").waitFor();
    assert((await address(page)) === before, `the address changed to ${await address(page)}`);
    assert(
      (await page.getByRole("button", { name: "Icicle" }).getAttribute("aria-pressed")) === "true",
      "layout lost",
    );
    await shot("8-icicle");
  });
  await checks.run("a profile can be saved", async () => {
    await page.getByRole("button", { name: /^Export/ }).click();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: /Folded stacks/ }).click(),
    ]);
    assert(download.suggestedFilename().endsWith(".folded"), download.suggestedFilename());
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: /^HTML/ }).click(),
    ]);
    const html = readFileSync(await file.path(), "utf8");
    assert(html.startsWith("<!doctype html>") && !html.includes("@@"), "the HTML file has no profile");
    await page.keyboard.press("Escape");
  });
  await checks.run("tasks and node pages open with keys", async () => {
    await page.locator(".top-bar").click({ position: { x: 300, y: 10 } });
    await page.keyboard.press("g");
    await page.keyboard.press("t");
    await page.locator(".task-table [role=row][data-row]").first().waitFor();
    await shot("9-tasks");
    await page.keyboard.press("g");
    await page.keyboard.press("o");
    await page.getByRole("heading", { name: "Probes" }).waitFor();
    await shot("10-node");
  });
  await checks.run("an error of the agent stands next to its field", async () => {
    await page.keyboard.press("n");
    await page.getByLabel("Whole node").check();
    await openOptions(page);
    await page.fill("#frequency", "0");
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.locator("#error-frequency_hz").waitFor();
    await shot("11-field-error");
    // The answer 422 is the point of this step; the browser logs it as a failed load.
    for (let i = faults.length - 1; i >= 0; i -= 1) if (/status of 422/.test(faults[i])) faults.splice(i, 1);
    await page.keyboard.press("Escape");
  });
  await checks.run(
    "a wall-clock result says what threads did, and a click shows one kind alone",
    async () => {
      await page.getByRole("link", { name: "Processes", exact: true }).click();
      await page.fill("[data-search]", String(pid));
      await page.locator(`[aria-label^="Profile "][aria-label$=" ${pid}"]`).click();
      await page.getByLabel("Wall clock", { exact: true }).check();
      await openOptions(page);
      await page.fill("#duration", "3");
      await page.getByRole("button", { name: "Start", exact: true }).click();
      await page.waitForURL(/view=task&id=/);
      await page.locator(".task-title .state-finished").waitFor();
      const running = page.locator(".activity-bar button[data-activity=running]");
      await running.click();
      await page.waitForURL(/state=on_cpu/);
      await page.locator('.activity-bar button[aria-pressed="true"]').waitFor();
      await shot("12-wall-running");
      await running.click();
      await page.waitForURL((url) => !url.searchParams.has("state"));
      // A program that computes alone on its machine may never have waited for a CPU.
      const taken = page.locator(".holders > button");
      if ((await taken.count()) > 0) {
        await taken.click();
        await page.locator(".holder").first().waitFor();
        // Where containers or pods are known, the same by them.
        const pods = page.getByRole("button", { name: "By pod", exact: true });
        if ((await pods.count()) > 0) {
          await pods.click();
          await page.locator("[data-holder=pod]").first().waitFor();
        }
        await page.keyboard.press("Escape");
      }
    },
  );
  await checks.run("a network task is created by clicking and shows its edges live", async () => {
    await page.keyboard.press("n");
    await page.getByLabel("Network", { exact: true }).check();
    await page.getByLabel("Whole node").check();
    await openOptions(page);
    await page.fill("#duration", "6");
    assert((await page.locator("#frequency").isVisible()) === false, "a rate is asked for");
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.waitForURL(/view=task&id=/);
    await page.locator(".task-title .state-running").waitFor();
    // The page talks to the agent, so that there is an edge on every machine.
    await page.locator(".map .map-node").first().waitFor();
    await shot("12-network-map");
    await page.getByRole("button", { name: "Table", exact: true }).click();
    await page.locator(".edge-table [role=row][data-row]").first().waitFor();
    await shot("12-network-running");
    await page.locator(".task-title .state-finished").waitFor();
    await page.locator(".edge-table [role=row][data-row]").first().waitFor();
  });
  await checks.run("clicking an edge shows its two sides", async () => {
    let rows = page.locator(".edge-table [role=row][data-row]");
    if (edgePort !== undefined) {
      // Others of a busy machine come and go. Not all rows are drawn, and the filter also takes what has the
      // number in another one.
      await page.fill("[data-search]", edgePort);
      const port = page.locator("[role=gridcell]:nth-child(3)", { hasText: new RegExp(`^${edgePort}$`) });
      rows = rows.filter({ has: port });
    }
    await rows.first().click();
    await page.waitForURL(/edge=/);
    assert((await page.locator(".edge-panel .edge-side").count()) === 2, "not two sides");
    const bar = page.locator(".edge-panel .bars li").first();
    await bar.waitFor();
    assert(/[µms]s/.test(await bar.textContent()), `a bar says: ${await bar.textContent()}`);
    await shot("13-network-edge");
    await page.reload();
    await page.locator(".edge-panel").waitFor();
    await page.getByRole("button", { name: "Close the sides" }).click();
    assert((await page.locator(".edge-panel").count()) === 0, "the sides stay open");
    if (edgePort !== undefined) await page.fill("[data-search]", "");
  });
  await checks.run("edges are sorted and filtered", async () => {
    await page.getByRole("columnheader", { name: "Port" }).getByRole("button").click();
    await page.waitForURL(/sort=-port/);
    const ports = await page
      .locator(".edge-table [role=row][data-row] [role=gridcell]:nth-child(3)")
      .allTextContents();
    const numbers = ports.map(Number).filter(Number.isFinite);
    assert(
      numbers.every((port, i) => i === 0 || numbers[i - 1] >= port),
      `ports: ${ports}`,
    );
    await page.fill("[data-search]", "nothing has this name");
    await page.getByRole("heading", { name: "No edge matches the filter" }).waitFor();
    await page.getByRole("button", { name: "Clear the filter" }).click();
    await page.locator(".quality-chip > button").click();
    const quality = await page.locator("[data-quality]").textContent();
    assert(quality.includes("Not available"), quality);
  });
  await checks.run("the connections of the node are a page of their own", async () => {
    await page.getByRole("link", { name: "Network", exact: true }).click();
    await page.waitForURL(/view=network/);
    await page.locator(".map .map-node").first().waitFor();
    await showTable(page);
    assert(/since/.test(await page.locator(".network-head").textContent()), "it does not say since when");
    await shot("14-network-node");
  });
  await checks.run("no console error, exception, CSP violation or foreign request", async () => {
    assert(faults.length === 0, faults.join(" | "));
  });
  await browser.close();
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { AGENT_URL, TARGET_PID, SHOTS } = process.env;
  if (AGENT_URL === undefined || TARGET_PID === undefined) {
    console.error("AGENT_URL and TARGET_PID must be set");
    process.exit(2);
  }
  if (SHOTS !== undefined) mkdirSync(SHOTS, { recursive: true });
  const checks = new Checks();
  // The page talks to the agent.
  const edgePort = new URL(AGENT_URL).port;
  await walk(checks, { agentUrl: AGENT_URL, pid: Number(TARGET_PID), edgePort, shots: SHOTS });
  checks.finish();
}
