// Everything beside the flame graph: the initial load, the list of processes, the map of connections, the
// page of an edge, events, and what a page costs the agent.

import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { openPage } from "./browser.mjs";
import { startDemo } from "./demo.mjs";
import { cpuShare, drawnAfter, frameTimes, heapBytes, watchDrawn } from "./measure.mjs";
import { startMock } from "./mock-server.mjs";
import { client } from "./visits.mjs";

const MEGABYTE = 1e6;
const LINE = ".map-line";

/** What the first load weighs. */
export function weight({ rows }) {
  const folder = new URL("../dist/", import.meta.url);
  const html = readFileSync(new URL("index.html", folder), "utf8");
  const first = [...html.matchAll(/(?:src|href)="\/?(assets\/[^"]+\.(?:js|css))"/g)].map(([, name]) => name);
  const bytes = ["index.html", ...first]
    .map((name) => gzipSync(readFileSync(new URL(name, folder)), { level: 9 }).length)
    .reduce((sum, size) => sum + size, 0);
  rows.add("initial load, gzip", "kB", [bytes / 1000], 150);
}

async function load({ browser, viewport, rows, rounds }) {
  const mock = await startMock();
  const times = [];
  // Short, and each in a process of its own: more of them.
  for (let round = 0; round < 3 * rounds; round += 1) {
    const { context, page } = await openPage(browser, mock.origin, { viewport });
    await watchDrawn(page, ".overview-table [data-row]");
    await page.goto(mock.url);
    await page.waitForFunction(() => globalThis.drawnAt !== undefined);
    times.push(await page.evaluate(() => globalThis.drawnAt));
    await context.close();
  }
  await mock.close();
  rows.add("opening the page until its rows are there", "ms", times, 300);
}

/** Views switched one after another; what grows is what they leave behind. */
async function switches({ opened, rows }) {
  const mock = await startMock();
  const { context, page } = await opened(mock);
  const go = async (count) => {
    for (let i = 0; i < count; i += 1) {
      const query = ["view=tasks", "view=task&id=1", "view=node", "view=processes", "view=task&id=7"][i % 5];
      await page.evaluate((search) => {
        history.pushState(null, "", `/?${search}`);
        dispatchEvent(new PopStateEvent("popstate"));
      }, query);
      await page.evaluate(
        () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
      );
    }
  };
  // Everything that is kept on purpose is there after the first round.
  await go(20);
  const before = await heapBytes(page);
  await go(100);
  const after = await heapBytes(page);
  await context.close();
  await mock.close();
  rows.add(
    "heap: growth after 100 switches of the view",
    "MB",
    [Math.max(0, (after - before) / MEGABYTE)],
    5,
  );
}

/** Keys in the filter of a list: from each one until its rows are painted. */
function filterTimes(page) {
  return page.evaluate(async () => {
    const field = document.querySelector("[data-search]");
    const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
    const times = [];
    for (const text of ["a", "ap", "app", "app-", "app-4", "app-", "app", ""]) {
      await painted();
      const began = performance.now();
      field.value = text;
      field.dispatchEvent(new InputEvent("input", { bubbles: true }));
      await painted();
      times.push(performance.now() - began);
    }
    return times;
  });
}

async function processes({ opened, rows, rounds }, count) {
  const mock = await startMock(0, { processes: count, tickMs: 60_000 });
  const [drawn, filters] = [[], []];
  const selector = "[role=row][data-row]";
  for (let round = 0; round < rounds; round += 1) {
    const { context, page } = await opened(mock, {}, (each) => watchDrawn(each, selector, 10));
    await page.goto(`${mock.origin}/?view=processes`);
    drawn.push(await drawnAfter(page, "/api/v1/processes"));
    // The pause that a person makes before the first key.
    await page.waitForTimeout(300);
    filters.push(...(await filterTimes(page)));
    await context.close();
  }
  await mock.close();
  const label = `${count.toLocaleString("en")} processes`;
  rows.add(`${label}: answer to first rows`, "ms", drawn, 150);
  rows.add(`${label}: key in the filter to its rows`, "ms", filters, 50, 0.95);
}

/** The map of a pod that is as crowded as the target says. */
async function map({ opened, rows, rounds }, nodes, edges, frameLimit) {
  const mock = await startMock(0, { crowd: { nodes, edges }, edgesMs: 100 });
  const [drawn, frames, labels] = [[], [], []];
  for (let round = 0; round < rounds; round += 1) {
    const { context, page } = await opened(mock, {}, (each) => watchDrawn(each, LINE, 10));
    // A task that has ended answers once, the network page streams.
    await page.goto(`${mock.origin}/?view=task&id=7&local=1`);
    drawn.push(await drawnAfter(page, "/tasks/7/edges"));
    await page.goto(`${mock.origin}/?view=network&net=map&local=1`);
    await page.waitForSelector(LINE);
    frames.push(...(await frameTimes(page, 60)));
    labels.push(...(await labelTimes(page)));
    await context.close();
  }
  await mock.close();
  const label = `map of ${nodes} nodes and ${edges} edges`;
  rows.add(`${label}: answer to the drawn map`, "ms", drawn, 100);
  rows.add(`${label}: frame while its numbers change ten times a second`, "ms", frames, frameLimit, 0.95);
  rows.add(`${label}: other labels on all lines`, "ms", labels, 30);
}

/** Another choice of labels, from the address until the lines say it and are laid out. */
function labelTimes(page) {
  return page.evaluate(async () => {
    const times = [];
    for (const labels of ["rtt", "ops,bytes", "bytes"]) {
      await new Promise((done) => requestAnimationFrame(done));
      const began = performance.now();
      history.replaceState(null, "", `/?view=network&net=map&local=1&labels=${labels}`);
      dispatchEvent(new PopStateEvent("popstate"));
      await new Promise((done) => queueMicrotask(done));
      await new Promise((done) => setTimeout(done, 0));
      document.querySelector(".map").getBoundingClientRect();
      times.push(performance.now() - began);
    }
    return times;
  });
}

/** Both columns of an edge with an hour of seconds. */
async function edge({ opened, rows, rounds }) {
  const mock = await startMock(0, { seriesSeconds: 3600 });
  const { edges } = await client(mock.url)("/network/edges");
  const chart = ".edge-columns .chart-box";
  const [drawn, frames] = [[], []];
  let charts = 0;
  for (let round = 0; round < rounds; round += 1) {
    const { context, page } = await opened(mock, {}, (each) => watchDrawn(each, chart, 14));
    // The whole hour: without a range the page shows the last minute of it.
    await page.goto(`${mock.origin}/?view=edge&edge=${edges[0].id}&from=0&to=3600000`);
    drawn.push(await drawnAfter(page, "/series"));
    charts = await page.locator(chart).count();
    frames.push(...(await cursorFrames(page, chart)));
    await context.close();
  }
  await mock.close();
  rows.add(`edge page, ${charts} charts of 3,600 points: answer to the charts`, "ms", drawn, 300);
  rows.add(`edge page, ${charts} charts: frame while the cursor moves`, "ms", frames, 20, 0.95);
}

/** Times of frames while the pointer goes over the first chart. */
function cursorFrames(page, chart) {
  return page.evaluate(async (selector) => {
    const under = document.querySelector(selector);
    under.scrollIntoView({ block: "center" });
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const box = under.getBoundingClientRect();
    const times = [];
    let last = await new Promise((done) => requestAnimationFrame(done));
    for (let i = 0; i < 40; i += 1) {
      const at = {
        clientX: box.left + (box.width * i) / 40,
        clientY: box.top + box.height / 2,
        bubbles: true,
      };
      under.dispatchEvent(new PointerEvent("pointermove", at));
      const now = await new Promise((done) => requestAnimationFrame(done));
      times.push(now - last);
      last = now;
    }
    return times;
  }, chart);
}

async function events({ opened, rows }) {
  const mock = await startMock(0, { tickMs: 100 });
  const { context, page } = await opened(mock);
  await page.goto(`${mock.origin}/?view=node`);
  await page.waitForTimeout(1000);
  rows.add("ten events a second: the page's share of one core", "%", [await cpuShare(page, 6)], 5);
  const asked = [];
  // What a browser does to a tab in the background.
  await page.evaluate(() => {
    Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await page.waitForTimeout(500);
  page.on("request", (request) => asked.push(request.url()));
  const busy = await cpuShare(page, 6);
  rows.add("hidden page: requests in six seconds", "", [asked.length], 0);
  rows.add("hidden page: share of one core", "%", [busy], 1);
  await context.close();
  await mock.close();
}

/** CPU time of an agent with recorded data while one page is open and nothing happens, and what answers take. */
async function serving({ browser, viewport, rows }, program) {
  const { url, stop } = await startDemo(program);
  try {
    const { origin } = new URL(url);
    const { context, page } = await openPage(browser, origin, { viewport });
    await page.goto(url);
    await page.waitForSelector("[role=grid], .cards, main");
    await page.waitForTimeout(2000);
    const ask = client(url);
    const seconds = 10;
    const before = await ask("/self");
    await page.waitForTimeout(seconds * 1000);
    const after = await ask("/self");
    const share = ((after.cpu_seconds - before.cpu_seconds) / seconds) * 100;
    rows.add("agent: one open page, share of one core", "%", [share], 1);
    const { items } = await ask("/tasks");
    const task = items.find(({ kind, samples }) => kind === "on_cpu" && samples > 0);
    const times = [];
    const token = new URLSearchParams(new URL(url).hash.slice(1)).get("token");
    for (let i = 0; i < 40; i += 1) {
      const began = performance.now();
      const path = `/api/v1/tasks/${task.id}/profile?format=flamegraph&from=${i * 10}`;
      const answer = await fetch(`${origin}${path}`, { headers: { Authorization: `Bearer ${token}` } });
      await answer.arrayBuffer();
      if (!answer.ok) throw new Error(`${path} answered ${answer.status}`);
      times.push(performance.now() - began);
    }
    rows.add("agent: another time range of a recorded profile", "ms", times, 150, 0.95);
    const last = await ask("/self");
    const grown = Math.max(0, last.peak_rss_bytes - after.peak_rss_bytes) / MEGABYTE;
    rows.add("agent: growth of its peak memory over these 40 answers", "MB", [grown], 64);
    await context.close();
  } finally {
    await stop();
  }
}

export async function pageRows(bench) {
  await load(bench);
  await switches(bench);
  await processes(bench, 2_000);
  await processes(bench, 10_000);
  await map(bench, 20, 40, 17);
  await map(bench, 60, 150, 34);
  await edge(bench);
  await events(bench);
  if (process.env.AGENT !== undefined) await serving(bench, process.env.AGENT);
}
