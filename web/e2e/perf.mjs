// Measures the flame graph of 100,000 frames and prints JSON: from the bytes to the first paint,
// the paints of zooming and hovering, a search. Exit code 1 when a target is missed.

import { launch, openPage } from "./browser.mjs";
import { startMock } from "./mock-server.mjs";

const TARGETS = {
  first_paint_ms: 200,
  zoom_frame_p95_ms: 33,
  zoom_paint_p95_ms: 20,
  search_ms: 50,
  inverted_ms: 150,
  sandwich_ms: 150,
};
const ROUNDS = 5;

const percentile = (values, share) => {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? null;
};
const rounded = (value) => Math.round(value * 100) / 100;

const mock = await startMock();
const browser = await launch();
const firstPaints = [];
const zoomPaints = [];
const zoomFrames = [];
const searches = [];
const switches = { inverted: [], sandwich: [] };

for (let round = 0; round < ROUNDS; round += 1) {
  const { context, page } = await openPage(browser, mock.origin, { viewport: { width: 1600, height: 900 } });
  await page.addInitScript(() => {
    globalThis.paints = [];
    new PerformanceObserver((list) => {
      for (const { name, duration } of list.getEntries()) globalThis.paints.push({ name, duration });
    }).observe({ type: "measure" });
  });
  await page.goto(mock.url);
  await page.waitForSelector("[role=grid]");
  await page.goto(`${mock.origin}/?view=task&id=4`);
  await page.waitForFunction(() => globalThis.paints.some(({ name }) => name === "flame.first-paint"));
  firstPaints.push(
    await page.evaluate(() => globalThis.paints.find(({ name }) => name === "flame.first-paint").duration),
  );

  const zoomed = await page.evaluate(async () => {
    const frames = [];
    globalThis.paints.length = 0;
    const canvas = document.querySelector(".flame-canvas");
    const tree = document.querySelector("[role=tree]");
    const box = canvas.getBoundingClientRect();
    const nextFrame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    for (let i = 0; i < 12; i += 1) {
      const clientX = box.left + box.width * (0.05 + (i % 6) * 0.13);
      const clientY = box.bottom - 18 * (12 + (i % 4)) - 9;
      canvas.dispatchEvent(new MouseEvent("click", { clientX, clientY, bubbles: true }));
      let last = await nextFrame();
      for (let n = 0; n < 12; n += 1) {
        const now = await nextFrame();
        frames.push(now - last);
        last = now;
      }
      tree.dispatchEvent(new KeyboardEvent("keydown", { key: "0", bubbles: true, cancelable: true }));
      for (let n = 0; n < 12; n += 1) await nextFrame();
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
    return {
      frames,
      paints: globalThis.paints.filter(({ name }) => name === "flame.paint").map((item) => item.duration),
    };
  });
  zoomFrames.push(...zoomed.frames);
  zoomPaints.push(...zoomed.paints);

  searches.push(
    await page.evaluate(async () => {
      const field = document.querySelector("[data-search]");
      const began = performance.now();
      field.value = "/step[0-9]+7/";
      field.dispatchEvent(new InputEvent("input", { bubbles: true }));
      await new Promise((resolve) => {
        const check = () =>
          document.querySelector("[data-matched] b")?.textContent ? resolve() : setTimeout(check, 0);
        check();
      });
      return performance.now() - began;
    }),
  );
  // From the key to the picture that the reader sees.
  await page.evaluate(() => {
    const field = document.querySelector("[data-search]");
    field.value = "";
    field.dispatchEvent(new InputEvent("input", { bubbles: true }));
  });
  for (const [view, key] of [
    ["inverted", "3"],
    ["sandwich", "4"],
  ]) {
    switches[view].push(
      await page.evaluate(async (pressed) => {
        const began = performance.now();
        document.body.dispatchEvent(new KeyboardEvent("keydown", { key: pressed, bubbles: true }));
        globalThis.paints.length = 0;
        while (!globalThis.paints.some(({ name }) => name === "flame.paint"))
          await new Promise((resolve) => setTimeout(resolve, 0));
        return performance.now() - began;
      }, key),
    );
  }
  await context.close();
}
await browser.close();
await mock.close();

const result = {
  frames: 100_000,
  viewport: "1600x900",
  first_paint_ms: rounded(percentile(firstPaints, 0.5)),
  first_paint_worst_ms: rounded(Math.max(...firstPaints)),
  zoom_paint_p50_ms: rounded(percentile(zoomPaints, 0.5)),
  zoom_paint_p95_ms: rounded(percentile(zoomPaints, 0.95)),
  zoom_paints: zoomPaints.length,
  zoom_frame_p50_ms: rounded(percentile(zoomFrames, 0.5)),
  zoom_frame_p95_ms: rounded(percentile(zoomFrames, 0.95)),
  search_ms: rounded(percentile(searches, 0.5)),
  inverted_ms: rounded(percentile(switches.inverted, 0.5)),
  sandwich_ms: rounded(percentile(switches.sandwich, 0.5)),
  targets: TARGETS,
};
result.missed = Object.entries(TARGETS)
  .filter(([name, limit]) => result[name] > limit)
  .map(([name]) => name);
console.log(JSON.stringify(result, null, 2));
process.exitCode = result.missed.length === 0 ? 0 : 1;
