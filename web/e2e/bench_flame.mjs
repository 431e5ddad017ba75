// The flame graph with 100,000 and with a million frames: first paint, zoom, pan, search, pointer, views,
// changes, and a stack of thousands of frames.

import { createServer } from "vite";
import {
  firstPaint,
  heapBytes,
  hoverTimes,
  moveTimes,
  nextPaint,
  searchTime,
  watchPaints,
  zoomTimes,
} from "./measure.mjs";
import { startMock } from "./mock-server.mjs";
import { encode, synthetic } from "./synthetic.mjs";

const MEGABYTE = 1e6;
const DEEP = 5_000;

/** First paint, zoom, pan, search and pointer; gives the heap of each round in megabytes. */
async function basics({ opened, rows, rounds, slack, short }, frames, label, limits) {
  const mock = await startMock(0, { frames });
  const [paints, dpr, zooms, pans, searches, hovers, heaps] = [[], [], [], [], [], [], []];
  for (let round = 0; round < rounds; round += 1) {
    const { context, page } = await opened(mock, {}, watchPaints);
    await page.goto(`${mock.origin}/?view=task&id=4`);
    paints.push(await firstPaint(page));
    if (!short) {
      zooms.push(...(await zoomTimes(page, frames > 500_000 ? 6 : 12)).frames);
      pans.push(...(await moveTimes(page)));
      hovers.push(...(await hoverTimes(page)));
      searches.push(await searchTime(page, "/step[0-9]+7/"));
    }
    heaps.push((await heapBytes(page)) / MEGABYTE);
    await context.close();
    if (limits.dpr !== undefined && !short) {
      const fine = await opened(mock, { deviceScaleFactor: 2 }, watchPaints);
      await fine.page.goto(`${mock.origin}/?view=task&id=4`);
      dpr.push(await firstPaint(fine.page));
      await fine.context.close();
    }
  }
  await mock.close();
  rows.add(`${label}: bytes to first paint`, "ms", paints, limits.paint * slack);
  if (short) return heaps;
  if (limits.dpr !== undefined) rows.add(`${label}: the same at two pixels a point`, "ms", dpr, limits.dpr);
  rows.add(`${label}: frame while zooming`, "ms", zooms, limits.frame, 0.95);
  if (limits.worst !== undefined)
    rows.add(`${label}: slowest of a hundred frames while zooming`, "ms", zooms, limits.worst, 0.99);
  rows.add(`${label}: frame while moving and zooming by wheel`, "ms", pans, limits.frame, 0.95);
  if (limits.search !== undefined)
    rows.add(`${label}: search by pattern, key to share`, "ms", searches, limits.search);
  rows.add(`${label}: pointer to tooltip, one frame`, "ms", hovers, 17, 0.95);
  return heaps;
}

/** Other views and changes of 100,000 frames: from the key until they are painted. */
async function views({ opened, rows, rounds }) {
  const mock = await startMock(0, { frames: 100_000 });
  const times = { inverted: [], sandwich: [], change: [] };
  for (let round = 0; round < rounds; round += 1) {
    const { context, page } = await opened(mock, {}, watchPaints);
    await page.goto(`${mock.origin}/?view=task&id=4`);
    await firstPaint(page);
    times.inverted.push(await nextPaint(page, "3"));
    times.sandwich.push(await nextPaint(page, "4"));
    await nextPaint(page, "1");
    // A frame in the middle is selected: recursion of its function, then its samples go to the callers.
    for (const key of ["r", "m"]) {
      await page.locator("[role=tree]").focus();
      for (let i = 0; i < 8; i += 1) await page.keyboard.press("ArrowUp");
      times.change.push(await nextPaint(page, key, "[role=tree]"));
    }
    await context.close();
  }
  await mock.close();
  rows.add("100,000 frames: key to the inverted graph", "ms", times.inverted, 150, 0.95);
  rows.add("100,000 frames: key to the sandwich", "ms", times.sandwich, 150, 0.95);
  rows.add("100,000 frames: key to the changed graph (recursion, hide)", "ms", times.change, 150, 0.95);
}

/** What lies under a place, by the page's own code in the same engine: the page does it for each movement. */
async function hitTest({ rows }) {
  const server = await createServer({
    configFile: false,
    root: new URL("..", import.meta.url).pathname,
    server: { middlewareMode: true, hmr: false, ws: false },
    appType: "custom",
    optimizeDeps: { noDiscovery: true },
    logLevel: "error",
  });
  const { decodeFlameGraph } = await server.ssrLoadModule("/src/lib/flamegraph.ts");
  const { indexFlameGraph, nodeAt } = await server.ssrLoadModule("/src/lib/flame_index.ts");
  const index = indexFlameGraph(decodeFlameGraph(synthetic(100_000).bytes));
  const times = [];
  let found = 0;
  for (let round = 0; round < 50; round += 1) {
    const began = performance.now();
    for (let i = 0; i < 1000; i += 1) {
      const x = (((i * 7919 + round * 31) % 100_000) / 100_000) * index.total[0];
      if (nodeAt(index, (i * 13) % index.rows, x) >= 0) found += 1;
    }
    // Of one place, in microseconds.
    times.push(performance.now() - began);
  }
  await server.close();
  if (found === 0) throw new Error("no place was on a frame");
  rows.add("100,000 frames: what is under the pointer", "us", times, 100, 0.95);
}

/** One stack of thousands of frames beside a shallow one. */
function tower() {
  const label = (name, kind) => ({
    name,
    module: kind === 1 ? "/usr/bin/deep" : "",
    file: "",
    line: 0,
    kind,
    source: 1,
  });
  const depth = Array.from({ length: DEEP }, (_, i) => i);
  return encode({
    periodNs: 10_101_010,
    labels: [label("all", 0), label("deep", 8), label("descend(unsigned long)", 1)],
    depth: [...depth, 1],
    self: [...depth.map((_, i) => (i === DEEP - 1 ? 900 : 0)), 100],
    label: [...depth.map((_, i) => Math.min(i, 2)), 1],
  });
}

/** Steps of half a screen from one end of the stack to the other: nowhere may the window be blank. */
async function deep({ opened, rows }) {
  const mock = await startMock(0);
  mock.agent.profile = tower;
  const { context, page } = await opened(mock, {}, watchPaints);
  await page.goto(`${mock.origin}/?view=task&id=4`);
  await firstPaint(page);
  const { blank, screens, steps } = await page.evaluate(async () => {
    const canvas = document.querySelector(".flame-canvas");
    const scroller = canvas.parentElement;
    const context = canvas.getContext("2d");
    const nextFrame = () => new Promise((done) => requestAnimationFrame(done));
    const ground = [...context.getImageData(canvas.width - 1, 0, 1, 1).data].join();
    let [blank, steps] = [0, 0];
    scroller.scrollTop = 0;
    for (let top = 0; top < scroller.scrollHeight - scroller.clientHeight; top += scroller.clientHeight / 2) {
      scroller.scrollTop = top;
      await nextFrame();
      await nextFrame();
      steps += 1;
      // The middle of the deep stack, from top to bottom, one place in each row.
      const x = Math.round(canvas.width * 0.45);
      const ratio = canvas.height / scroller.clientHeight;
      for (let y = 9; y < scroller.clientHeight - 18; y += 18) {
        const at = (shift) => [...context.getImageData(x, Math.round((y + shift) * ratio), 1, 1).data].join();
        // One of them may be the gap between two rows.
        if (at(0) === ground && at(3) === ground) blank += 1;
      }
    }
    return { blank, steps, screens: canvas.clientHeight / innerHeight };
  });
  await context.close();
  await mock.close();
  if (steps < 50) throw new Error(`a stack of ${DEEP} frames was scrolled in ${steps} steps`);
  rows.add(`stack of ${DEEP} frames: rows left blank while scrolling`, "", [blank], 0);
  rows.add(`stack of ${DEEP} frames: height of the canvas in screens`, "", [screens], 2);
}

export async function flameRows(bench) {
  const { rows, short } = bench;
  await basics(bench, 100_000, "100,000 frames", {
    paint: 200,
    dpr: 250,
    frame: 20,
    worst: 33,
    search: 50,
  });
  const heaps = await basics(bench, 1_000_000, "1,000,000 frames", { paint: 400, frame: 33 });
  rows.add("heap with 1,000,000 frames", "MB", heaps, 150);
  if (short) return;
  await hitTest(bench);
  await views(bench);
  await deep(bench);
}
