// The page's performance, each row with its target; exit code 1 when one is missed.
// `--short`: size, first paint and memory alone, with generous bounds, for loaded machines.
// Env AGENT: a profiler-agent, whose cost of serving the page is measured with recorded data.

import { readdirSync, readFileSync, statSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { launch, openPage } from "./browser.mjs";
import { startDemo } from "./demo.mjs";
import {
  cpuShare,
  drawnAfter,
  firstPaint,
  heapBytes,
  hoverTimes,
  median,
  percentile,
  searchTime,
  watchDrawn,
  watchPaints,
  zoomTimes,
} from "./measure.mjs";
import { startMock } from "./mock-server.mjs";
import { client } from "./visits.mjs";

const short = process.argv.includes("--short") || process.env.SHORT === "1";
/** What a loaded machine may take longer; sizes and memory do not depend on the load. */
const SLACK = short ? 10 : 1;
const VIEWPORT = { width: 1600, height: 900 };
const ROUNDS = short ? 2 : 5;
const MEGABYTE = 1e6;

const rows = [];
const shown = (value) => (value === null ? "-" : value >= 100 ? value.toFixed(0) : value.toFixed(2));

/** `values` in one unit; `limit` is for `of`, the share of them that must hold. */
function row(name, unit, values, limit, of = 0.5) {
  const measured = values.length === 0 ? null : percentile(values, of);
  const met = measured !== null && measured <= limit;
  const entry = { name, unit, median: median(values), p95: percentile(values, 0.95), target: limit, of, met };
  rows.push(entry);
  const which = of === 0.5 ? "median" : `p${of * 100}`;
  console.log(
    `${met ? "met   " : "MISSED"} ${name.padEnd(52)} median ${shown(entry.median).padStart(8)}  p95 ${shown(entry.p95).padStart(8)} ${unit.padEnd(4)} target ${which} <= ${limit}`,
  );
}

const browser = await launch();

async function opened(mock, options = {}, prepare = async () => {}) {
  const { context, page, faults } = await openPage(browser, mock.origin, { viewport: VIEWPORT, ...options });
  await prepare(page);
  await page.goto(mock.url);
  await page.waitForSelector("[role=grid]");
  return { context, page, faults };
}

async function flameGraph(frames, label, { paintLimit, dprLimit, frameLimit, searchLimit }) {
  const mock = await startMock(0, { frames });
  const [paints, dpr, frameTimes, searches, hovers, heaps] = [[], [], [], [], [], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    const { context, page } = await opened(mock, {}, watchPaints);
    await page.goto(`${mock.origin}/?view=task&id=4`);
    paints.push(await firstPaint(page));
    if (!short) {
      const zoomed = await zoomTimes(page, frames > 500_000 ? 6 : 12);
      frameTimes.push(...zoomed.frames);
      hovers.push(...(await hoverTimes(page)));
      searches.push(await searchTime(page, "/step[0-9]+7/"));
    }
    heaps.push((await heapBytes(page)) / MEGABYTE);
    await context.close();
    if (dprLimit !== undefined && !short) {
      const fine = await opened(mock, { deviceScaleFactor: 2 }, watchPaints);
      await fine.page.goto(`${mock.origin}/?view=task&id=4`);
      dpr.push(await firstPaint(fine.page));
      await fine.context.close();
    }
  }
  await mock.close();
  row(`${label}: bytes to first paint`, "ms", paints, paintLimit * SLACK);
  if (!short) {
    if (dprLimit !== undefined) row(`${label}: first paint at two pixels a point`, "ms", dpr, dprLimit);
    row(`${label}: frame while zooming`, "ms", frameTimes, frameLimit, 0.95);
    if (searchLimit !== undefined) row(`${label}: search by pattern`, "ms", searches, searchLimit);
    row(`${label}: pointer to tooltip, one frame`, "ms", hovers, 17, 0.95);
  }
  return heaps;
}

/** Views switched one after another; what grows is what they leave behind. */
async function switches() {
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
  await go(0);
  const after = await heapBytes(page);
  await context.close();
  await mock.close();
  row("heap: growth after 100 switches of the view", "MB", [Math.max(0, (after - before) / MEGABYTE)], 5);
}

async function processTable() {
  const mock = await startMock(0, { processes: 10_000, tickMs: 60_000 });
  const [drawn, filters] = [[], []];
  const selector = "[role=row][data-row]";
  for (let round = 0; round < ROUNDS; round += 1) {
    const { context, page } = await opened(mock, {}, (each) => watchDrawn(each, selector, 10));
    await page.goto(`${mock.origin}/?view=processes`);
    drawn.push(await drawnAfter(page, "/api/v1/processes", selector, 10));
    filters.push(
      ...(await page.evaluate(async () => {
        const field = document.querySelector("[data-search]");
        const times = [];
        for (const text of ["s", "se", "ser", "serv", "service-4", "service-42", ""]) {
          const began = performance.now();
          field.value = text;
          field.dispatchEvent(new InputEvent("input", { bubbles: true }));
          await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
          times.push(performance.now() - began);
        }
        return times;
      })),
    );
    await context.close();
  }
  await mock.close();
  row("10,000 processes: answer to first rows", "ms", drawn, 150);
  row("10,000 processes: key in the filter to its rows", "ms", filters, 50, 0.95);
}

/** The initial load: what it weighs, and how long until it can be used. */
async function load() {
  const folder = new URL("../dist/", import.meta.url);
  const html = readFileSync(new URL("index.html", folder), "utf8");
  const first = [...html.matchAll(/(?:src|href)="\/?(assets\/[^"]+\.(?:js|css))"/g)].map(([, name]) => name);
  const bytes = ["index.html", ...first]
    .map((name) => gzipSync(readFileSync(new URL(name, folder)), { level: 9 }).length)
    .reduce((sum, size) => sum + size, 0);
  row("initial load, gzip", "kB", [bytes / 1000], 150);
  if (short) return;
  const mock = await startMock();
  const times = [];
  const foreign = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const { context, page, faults } = await openPage(browser, mock.origin, { viewport: VIEWPORT });
    await watchDrawn(page, "[role=row][data-row]");
    await page.goto(mock.url);
    await page.waitForFunction(() => globalThis.drawnAt !== undefined);
    times.push(await page.evaluate(() => globalThis.drawnAt));
    foreign.push(faults.filter((fault) => fault.startsWith("request") || fault.startsWith("CSP")).length);
    await context.close();
  }
  await mock.close();
  row("opening the page until its rows are there", "ms", times, 300);
  row("foreign requests and violations of the policy", "", [Math.max(...foreign)], 0);
}

async function network() {
  const mock = await startMock();
  const { edges } = await client(mock.url)("/network/edges");
  const [maps, pages, frames] = [[], [], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    const map = ".map-line";
    const { context, page } = await opened(mock, {}, (each) => watchDrawn(each, map, 3));
    await page.goto(`${mock.origin}/?view=network`);
    maps.push(await drawnAfter(page, "/network/edges", map, 3));
    await context.close();
    const chart = ".edge-page canvas, .edge-page svg";
    const second = await opened(mock, {}, (each) => watchDrawn(each, chart, 2));
    await second.page.goto(`${mock.origin}/?view=edge&edge=${edges[0].id}`);
    pages.push(await drawnAfter(second.page, "/series", chart, 2));
    frames.push(...(await cursorFrames(second.page, chart)));
    await second.context.close();
  }
  await mock.close();
  row("topology: answer to the map", "ms", maps, 300);
  row("edge page: answer to the charts", "ms", pages, 300);
  row("edge page: frame while the cursor moves", "ms", frames, 33, 0.95);
}

/** Times of frames while the pointer goes over the first chart. */
function cursorFrames(page, chart) {
  return page.evaluate(async (selector) => {
    const box = document.querySelector(selector).getBoundingClientRect();
    const times = [];
    let last = await new Promise((done) => requestAnimationFrame(done));
    for (let i = 0; i < 40; i += 1) {
      const at = {
        clientX: box.left + (box.width * i) / 40,
        clientY: box.top + box.height / 2,
        bubbles: true,
      };
      const under = document.elementFromPoint(at.clientX, at.clientY);
      under?.dispatchEvent(new PointerEvent("pointermove", at));
      under?.dispatchEvent(new MouseEvent("mousemove", at));
      const now = await new Promise((done) => requestAnimationFrame(done));
      times.push(now - last);
      last = now;
    }
    return times;
  }, chart);
}

async function events() {
  const mock = await startMock(0, { tickMs: 100 });
  const { context, page } = await opened(mock);
  await page.goto(`${mock.origin}/?view=node`);
  await page.waitForTimeout(1000);
  row("ten events a second: the page's share of one core", "%", [await cpuShare(page, 8)], 5);
  await context.close();
  await mock.close();
}

/** CPU time of the agent while one page is open and nothing happens. */
async function serving(program) {
  const { url, stop } = await startDemo(program);
  try {
    const { context, page } = await openPage(browser, new URL(url).origin, { viewport: VIEWPORT });
    await page.goto(url);
    await page.waitForSelector("[role=grid], .cards, main");
    await page.waitForTimeout(2000);
    const ask = client(url);
    const seconds = 10;
    const before = await ask("/self");
    await page.waitForTimeout(seconds * 1000);
    const after = await ask("/self");
    row(
      "agent: one open page, share of one core",
      "%",
      [((after.cpu_seconds - before.cpu_seconds) / seconds) * 100],
      1,
    );
    await context.close();
  } finally {
    await stop();
  }
}

await load();
await flameGraph(100_000, "100,000 frames", {
  paintLimit: 200,
  dprLimit: 250,
  frameLimit: 20,
  searchLimit: 50,
});
const heaps = await flameGraph(1_000_000, "1,000,000 frames", { paintLimit: 400, frameLimit: 33 });
row("heap with 1,000,000 frames", "MB", heaps, 150);
if (!short) {
  await switches();
  await processTable();
  await network();
  await events();
  if (process.env.AGENT !== undefined) await serving(process.env.AGENT);
}
await browser.close();
const missed = rows.filter(({ met }) => !met);
const built = readdirSync(new URL("../dist/assets/", import.meta.url));
const stamp = statSync(new URL("../dist/index.html", import.meta.url)).mtime.toISOString();
console.log(
  JSON.stringify({
    viewport: "1600x900",
    built: stamp,
    files: built.length,
    rows,
    missed: missed.map(({ name }) => name),
  }),
);
process.exitCode = missed.length === 0 ? 0 : 1;
