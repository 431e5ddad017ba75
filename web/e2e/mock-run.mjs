// The walk of real.mjs against the stand-in, and what only a stand-in can show: lost connections,
// wrong tokens, hostile names, and accessibility of every page in every theme.

import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { launch, openPage } from "./browser.mjs";
import { flameChecks } from "./flame_checks.mjs";
import { startMock, TOKEN } from "./mock-server.mjs";
import { address, assert, Checks, walk } from "./real.mjs";
import { topologyWalk } from "./topology.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PAGES = [
  "view=processes",
  "view=processes&group=1",
  "view=processes&create=1&pids=4242",
  "view=tasks",
  "view=task&id=1",
  "view=task&id=1&search=Http&layout=icicle",
  "view=task&id=1&tab=table",
  "view=task&id=1&layout=inverted&colour=module",
  "view=task&id=1&layout=sandwich&panel=1&x=p",
  "view=task&id=2",
  "view=task&id=5",
  "view=task&id=99",
  "view=task&id=7",
  "view=network",
  "view=network&bad=1&worst=rtt&labels=rtt,ops",
  "view=task&id=7&node=p:4242-156954",
  "view=network&net=table&edge=91a4dc2f61cb0ec5",
  "view=edge&id=7&edge=91a4dc2f61cb0ec5",
  "view=edge&id=7&edge=0000000000000000",
  "view=node",
];
const THEMES = [
  { colorScheme: "light" },
  { colorScheme: "dark" },
  { colorScheme: "light", forcedColors: "active" },
];
const shots = process.env.SHOTS;
if (shots !== undefined) mkdirSync(shots, { recursive: true });

const checks = new Checks();
let mock = await startMock();
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

const browser = await launch();
const ready = "[role=grid], .flame-canvas, .state h2, .cards, .map, .row-card";

for (const theme of THEMES) {
  const name = theme.forcedColors ? "forced colours" : theme.colorScheme;
  // axe is injected as a script, which the page's own policy rightly refuses: only here it is off.
  const { context, page } = await openPage(browser, mock.origin, { ...theme, bypassCSP: true });
  await page.goto(mock.url);
  await page.waitForSelector(ready);
  for (const query of PAGES) {
    await checks.run(`accessible: ${query} (${name})`, async () => {
      await page.goto(`${mock.origin}/?${query}`);
      await page.waitForSelector(ready);
      await page.waitForTimeout(200);
      await page.evaluate(AXE);
      const violations = await page.evaluate(async () => (await globalThis.axe.run()).violations);
      const grave = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
      const text = grave.map(
        ({ id, nodes }) => `${id}: ${nodes.slice(0, 2).map((node) => node.html.slice(0, 120))}`,
      );
      assert(grave.length === 0, text.join("; "));
    });
  }
  await context.close();
}

await flameChecks(checks, browser, mock, shots);

await checks.run("hostile names stay text", async () => {
  const { context, page, faults } = await openPage(browser, mock.origin);
  await page.goto(mock.url);
  await page.waitForSelector(ready);
  await page.fill("[data-search]", "<img");
  const name = await page.locator('[data-row="0"] .name').textContent();
  assert(name === '<img src=x>"&', `shown as ${name}`);
  assert((await page.locator("img").count()) === 0, "an element was made from a name");
  assert(
    !(await page.locator('[data-row="0"]').textContent()).includes("\u202e"),
    "a direction mark is shown raw",
  );
  assert(faults.length === 0, faults.join(" | "));
  await context.close();
});

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

await checks.run("a wrong token gives the page that says where the right one is", async () => {
  const { context, page } = await openPage(browser, mock.origin);
  await page.goto(`${mock.origin}/#token=wrong`);
  await page.getByText("This token is not the agent's").waitFor();
  await page.fill("#token", `${mock.origin}/#token=${TOKEN}`);
  await page.getByRole("button", { name: "Open" }).click();
  await page.waitForSelector("[role=grid]");
  await context.close();
});

await checks.run("without a token nothing is shown but how to get one", async () => {
  const { context, page } = await openPage(browser, mock.origin);
  await page.goto(mock.origin);
  await page.getByText("A token is needed").waitFor();
  await context.close();
});

await checks.run("320 pixels wide: nothing is cut off sideways", async () => {
  const { context, page } = await openPage(browser, mock.origin, { viewport: { width: 320, height: 640 } });
  await page.goto(mock.url);
  await page.waitForSelector(ready);
  for (const query of PAGES) {
    await page.goto(`${mock.origin}/?${query}`);
    await page.waitForSelector(ready);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert(wide <= 320, `${query} is ${wide} wide`);
  }
  await context.close();
});

await checks.run("a picked time range and thread are asked for and kept in the address", async () => {
  const { context, page } = await openPage(browser, mock.origin);
  await page.goto(mock.url);
  await page.waitForSelector(ready);
  await page.goto(`${mock.origin}/?view=task&id=1`);
  const strip = await page.locator(".strip-box").boundingBox();
  await page.waitForTimeout(400);
  const asked = page.waitForRequest((request) => /format=flamegraph&from=2\d00&to=6\d00/.test(request.url()));
  await page.mouse.move(strip.x + strip.width * 0.25, strip.y + 10);
  await page.mouse.down();
  await page.mouse.move(strip.x + strip.width * 0.6, strip.y + 10, { steps: 4 });
  await page.mouse.up();
  await asked;
  await page.getByRole("button", { name: /threads/ }).click();
  const threaded = page.waitForRequest(/tid=4250/);
  await page.getByLabel(/wrk:worker_0/).check();
  await threaded;
  const shown = await address(page);
  assert(/from=2\d00/.test(shown) && /tid=4250/.test(shown), shown);
  await context.close();
});

await checks.run("symbol files are given for what has no names", async () => {
  const { context, page, faults } = await openPage(browser, mock.origin, { bypassCSP: true });
  await page.goto(mock.url);
  await page.waitForSelector(ready);
  await page.goto(`${mock.origin}/?view=task&id=1`);
  await page.getByRole("button", { name: "66.7 % named" }).click();
  await page.getByText("66.7 % exact, 33.3 % without a name").waitFor();
  await page.getByText("/usr/bin/envoy").waitFor();
  if (shots !== undefined) await page.screenshot({ path: `${shots}/symbols.png` });
  await page.evaluate(AXE);
  const violations = await page.evaluate(async () => (await globalThis.axe.run()).violations);
  const grave = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  assert(grave.length === 0, grave.map(({ id }) => id).join(", "));
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
  await page.getByText("100.0 % exact").waitFor();
  await page.getByRole("button", { name: "Delete" }).last().click();
  await page.getByText("No symbol files yet.").waitFor();
  assert(!faults.some((fault) => !/422/.test(fault)), faults.join(" | "));
  await context.close();
});

await checks.run("a lost agent is told, and found again", async () => {
  const { context, page } = await openPage(browser, mock.origin);
  await page.goto(mock.url);
  await page.waitForSelector(".dot-live");
  const port = Number(new URL(mock.origin).port);
  await mock.close();
  await page.getByText("The agent does not answer.").waitFor();
  if (shots !== undefined) await page.screenshot({ path: `${shots}/unreachable.png` });
  mock = await startMock(port);
  await page.waitForSelector(".dot-live", { timeout: 15_000 });
  assert((await page.getByText("The agent does not answer.").count()) === 0, "the banner stays");
  await context.close();
});

await browser.close();
await mock.close();
checks.finish();
