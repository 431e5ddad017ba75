// The walk of real.mjs against the stand-in, and what only a stand-in can show: lost connections,
// wrong tokens, hostile names, and accessibility of every page in every theme.

import { mkdirSync } from "node:fs";
import { launch, openPage } from "./browser.mjs";
import { diagnoseWalk } from "./diagnose.mjs";
import { flameChecks } from "./flame_checks.mjs";
import { graveFindings } from "./inspect.mjs";
import { startMock, TOKEN } from "./mock-server.mjs";
import { namesWalk } from "./names.mjs";
import { inspectPages } from "./pages.mjs";
import { assert, Checks, walk } from "./real.mjs";
import { requestsWalk } from "./requests.mjs";
import { inspectStates } from "./states.mjs";
import { topologyWalk } from "./topology.mjs";
import { READY as ready } from "./visits.mjs";

const shots = process.env.SHOTS;
if (shots !== undefined) mkdirSync(shots, { recursive: true });

const checks = new Checks();
const mock = await startMock();
await walk(checks, { agentUrl: mock.url, pid: 4242, shots });
await topologyWalk(checks, {
  agentUrl: mock.url,
  task: "7",
  expect: [
    [4242, 5150, 15006],
    [4100, 4242, 15001],
    [4242, 4100, 8080],
    [5150, 5161, 8080],
  ],
  pod: 4242,
  shots,
});

await inspectPages(checks, { agentUrl: mock.url, shots });
await inspectStates(checks, shots);

const browser = await launch();

await flameChecks(checks, browser, mock, shots);
await diagnoseWalk(checks, browser, mock, shots);
await requestsWalk(checks, browser, mock, shots);
await namesWalk(checks, browser, mock);

await checks.run("nothing on the map moves while its numbers change", async () => {
  const { context, page, faults } = await openPage(browser, mock.origin);
  await page.goto(mock.url);
  await page.waitForSelector(ready);
  await page.goto(`${mock.origin}/?view=network`);
  await page.waitForSelector(".map-node");
  const read = () =>
    page.evaluate(() => ({
      places: [...document.querySelectorAll(".map-node")].map((node) => [
        node.dataset.key,
        node.getAttribute("transform"),
      ]),
      labels: [...document.querySelectorAll(".map-line [data-item]")]
        .map((line) => line.getAttribute("aria-label"))
        .join(),
    }));
  const before = await read();
  await page.waitForFunction(
    (text) =>
      [...document.querySelectorAll(".map-line [data-item]")]
        .map((line) => line.getAttribute("aria-label"))
        .join() !== text,
    before.labels,
  );
  const after = await read();
  assert(JSON.stringify(before.places) === JSON.stringify(after.places), "a node moved");
  assert(faults.length === 0, faults.join(" | "));
  await context.close();
});

await checks.run(
  "an edge that is always watched shows its last minute, until the whole time is asked for",
  async () => {
    const old = await startMock(0, { startedAt: Date.now() - 300_000 });
    const { context, page, faults } = await openPage(browser, old.origin);
    await page.goto(old.url);
    await page.waitForSelector(ready);
    await page.goto(`${old.origin}/?view=network&net=table`);
    await page.getByText("marks: trouble in the last").waitFor();
    await page.goto(`${old.origin}/?view=network&net=map`);
    await page.locator(".map-line").first().waitFor();
    // What was dropped before the page was opened is no news.
    assert((await page.locator(".map-line.marked").count()) === 0, "old trouble is marked");
    const [edge] = await page.evaluate(async (token) => {
      const headers = { Authorization: `Bearer ${token}` };
      return (await (await fetch("/api/v1/network/edges", { headers })).json()).edges;
    }, TOKEN);
    await page.goto(`${old.origin}/?view=edge&edge=${edge.id}`);
    await page
      .getByText(/These numbers are of the last 6\d s: \d\d:\d\d:\d\d to .* \(1\d\d–\d+ s\)/)
      .waitFor();
    if (shots !== undefined) await page.screenshot({ path: `${shots}/edge-recent.png` });
    // What the pointer says has its place already: nothing below moves.
    const cards = page.locator(".row-card");
    const place = () => cards.nth(3).evaluate((card) => card.getBoundingClientRect().top);
    const still = await place();
    await cards.first().locator(".chart-box").first().hover();
    await page
      .locator(".row-moment", { hasText: /\d\d:\d\d:\d\d to / })
      .first()
      .waitFor();
    assert((await place()) === still, `cards jump by ${(await place()) - still} px`);
    await page.getByRole("button", { name: "Whole time" }).click();
    await page.getByText(/These numbers are of \d\d:\d\d:\d\d to .* \(0–\d+ s\)/).waitFor();
    await page.getByRole("button", { name: "Last minute" }).click();
    await page.getByText(/These numbers are of the last 6\d s/).waitFor();
    assert(faults.length === 0, faults.join(" | "));
    await context.close();
    await old.close();
  },
);

await checks.run("a wrong token gives the page that says where the right one is", async () => {
  const { context, page } = await openPage(browser, mock.origin);
  await page.goto(`${mock.origin}/#token=wrong`);
  await page.getByText("Invalid token").waitFor();
  // Another wrong one must not look as if nothing had happened.
  await page.fill("#token", "wrong as well");
  await page.getByRole("button", { name: "Open" }).click();
  await page.getByText("the agent has refused 2 tokens in a row").waitFor();
  await page.fill("#token", `${mock.origin}/#token=${TOKEN}`);
  await page.getByRole("button", { name: "Open" }).click();
  await page.waitForSelector(".overview-table, [role=grid]");
  await context.close();
});

await checks.run("without a token nothing is shown but how to get one", async () => {
  const { context, page } = await openPage(browser, mock.origin);
  await page.goto(mock.origin);
  await page.getByText("A token is needed").waitFor();
  await context.close();
});

await checks.run("a new tab and a link in it take the token of a tab that is open", async () => {
  const { context, page, faults } = await openPage(browser, mock.origin);
  await page.goto(mock.url);
  await page.waitForSelector(".overview-table, [role=grid]");
  const other = await context.newPage();
  await other.goto(`${mock.origin}/?view=task&id=1`);
  await other.locator(".flame-canvas").waitFor();
  assert(!other.url().includes("token"), `the address has it: ${other.url()}`);
  assert(faults.length === 0, faults.join(" | "));
  await context.close();
});

await checks.run("an agent that is stopped is told within five seconds, and found again", async () => {
  const { context, page } = await openPage(browser, mock.origin);
  await page.goto(mock.url);
  await page.locator(".health", { hasText: "live" }).waitFor();
  mock.agent.frozen = true;
  const stopped = Date.now();
  await page.getByText("The agent does not answer.").waitFor();
  const seconds = (Date.now() - stopped) / 1000;
  mock.agent.frozen = false;
  // The first second is that of a slow machine.
  assert(seconds < 6, `told after ${seconds} s`);
  await page.locator(".health", { hasText: "live" }).waitFor();
  await context.close();
});

await checks.run("keys lead out of fields, to the first row, past the rail, and to the graph", async () => {
  const { context, page, faults } = await openPage(browser, mock.origin);
  await page.goto(mock.url);
  await page.waitForSelector(".overview-table");
  await page.goto(`${mock.origin}/?view=pods`);
  await page.waitForSelector("[role=grid] [role=row]");
  const focused = () => page.evaluate(() => document.activeElement.getAttribute("role"));
  await page.keyboard.press("/");
  await page.keyboard.type("envoy");
  await page.keyboard.press("Escape");
  assert((await page.locator("[data-search]").inputValue()) === "", "Escape does not empty the field");
  await page.keyboard.press("Escape");
  assert((await focused()) === "row", `Escape leads to ${await focused()}`);
  await page.keyboard.press("/");
  await page.keyboard.press("ArrowDown");
  assert((await focused()) === "row", `the arrow leads to ${await focused()}`);
  await page.keyboard.press("g");
  await page.keyboard.press("t");
  await page.waitForURL(/view=tasks/);
  await page.locator("main .openable").first().waitFor();
  await page.keyboard.press("/");
  await page.keyboard.press("Enter");
  await page.waitForURL(/view=task&id=/);
  await page.goto(`${mock.origin}/?view=task&id=1`);
  await page.locator(".flame-canvas").waitFor();
  assert((await focused()) === "tree", `a result begins with ${await focused()}`);
  await page.goto(`${mock.origin}/?view=pods`);
  await page.waitForSelector(".overview-table, [role=grid]");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  const place = await page.evaluate(() => document.activeElement.className);
  assert(place === "page", `the first Tab stop leads to ${place}`);
  assert(faults.length === 0, faults.join(" | "));
  await context.close();
});

await checks.run("a result runs again as it was, or with something changed", async () => {
  const { context, page, faults } = await openPage(browser, mock.origin);
  await page.goto(mock.url);
  await page.waitForSelector(".overview-table, [role=grid]");
  await page.goto(`${mock.origin}/?view=task&id=4`);
  const asked = () => page.waitForRequest((request) => request.method() === "POST");
  const [again] = await Promise.all([asked(), page.getByRole("button", { name: "Run again" }).click()]);
  const spec = again.postDataJSON();
  assert(spec.kind === "on_cpu" && spec.frequency_hz === 999, JSON.stringify(spec));
  await page.waitForURL(/view=task&id=(?!4$)\d+/);
  await page.goto(`${mock.origin}/?view=task&id=4`);
  await page.getByRole("button", { name: "Edit and run" }).click();
  await page.getByRole("heading", { name: "Edit and run task 4" }).waitFor();
  await page.getByRole("button", { name: "30 s", exact: true }).click();
  const [edited] = await Promise.all([asked(), page.getByRole("button", { name: /^Start/ }).click()]);
  const changed = edited.postDataJSON();
  assert(changed.duration_s === 30 && changed.frequency_hz === 999, JSON.stringify(changed));
  assert(JSON.stringify(changed.target) === JSON.stringify(spec.target), JSON.stringify(changed));
  await page.waitForURL(/view=task&id=(?!4$)\d+$/);
  // Left by the browser's way back, the form is forgotten too.
  await page.goto(`${mock.origin}/?view=task&id=4`);
  await page.getByRole("button", { name: "Edit and run" }).click();
  await page.getByRole("heading", { name: "Edit and run task 4" }).waitFor();
  await page.goBack();
  await page.locator("dialog").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "New task", exact: true }).click();
  await page.getByRole("heading", { name: "New task" }).waitFor();
  assert(faults.length === 0, faults.join(" | "));
  await context.close();
});

await checks.run("symbol files are given for what has no names", async () => {
  const { context, page, faults } = await openPage(browser, mock.origin, { bypassCSP: true });
  await page.goto(mock.url);
  await page.waitForSelector(ready);
  await page.goto(`${mock.origin}/?view=task&id=1`);
  await page.locator(".quality-chip > button").click();
  await page.getByRole("button", { name: "61.7 % named" }).click();
  await page
    .locator("[data-names-detail]", {
      hasText: "61.7 % exact, 5.0 % the loop of an interpreter, 33.3 % without a name",
    })
    .waitFor();
  await page.locator("dialog").getByText("/usr/bin/envoy").waitFor();
  if (shots !== undefined) await page.screenshot({ path: `${shots}/symbols.png` });
  const grave = await graveFindings(page);
  assert(grave.length === 0, grave.join("; "));
  const give = (content) =>
    page.setInputFiles("[data-symbol-file='9e558093aa01']", {
      name: "envoy.debug",
      mimeType: "application/octet-stream",
      buffer: Buffer.from(content),
    });
  await give("#!/bin/sh");
  await page.getByText("the file is not a little-endian ELF file").waitFor();
  const again = page.waitForRequest(/format=flamegraph/);
  await give("\u007fELF and more");
  await page.getByText("Taken for build-id 9e558093aa01.").waitFor();
  await again;
  await page.getByText("95.0 % exact").first().waitFor();
  await page.getByRole("button", { name: "Delete" }).last().click();
  await page.getByText("No symbol files yet.").waitFor();
  assert(!faults.some((fault) => !/422/.test(fault)), faults.join(" | "));
  await context.close();
});

await checks.run("a lost agent is told, and found again", async () => {
  const { context, page } = await openPage(browser, mock.origin);
  await page.goto(mock.url);
  await page.waitForSelector(".dot-live");
  mock.lose();
  await page.getByText("The agent does not answer.").waitFor();
  if (shots !== undefined) await page.screenshot({ path: `${shots}/unreachable.png` });
  mock.find();
  await page.waitForSelector(".dot-live", { timeout: 15_000 });
  assert((await page.getByText("The agent does not answer.").count()) === 0, "the banner stays");
  await context.close();
});

await browser.close();
await mock.close();
checks.finish();
