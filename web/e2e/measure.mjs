// Small tools for measuring a page: percentiles, the page's own measures, memory and CPU time.

export const percentile = (values, share) => {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? null;
};

export const median = (values) => percentile(values, 0.5);

/** Keeps what the page measures of itself (`performance.measure`) in `paints`. */
export function watchPaints(page) {
  return page.addInitScript(() => {
    globalThis.paints = [];
    new PerformanceObserver((list) => {
      for (const { name, duration, startTime } of list.getEntries())
        globalThis.paints.push({ name, duration, end: startTime + duration });
    }).observe({ type: "measure" });
  });
}

export async function firstPaint(page) {
  await page.waitForFunction(() => globalThis.paints.some(({ name }) => name === "flame.first-paint"), null, {
    timeout: 60_000,
  });
  return page.evaluate(() => globalThis.paints.find(({ name }) => name === "flame.first-paint").duration);
}

/** Zooms into frames of several rows and back: the times of frames, and of the page's own painting. */
export function zoomTimes(page, rounds = 12) {
  return page.evaluate(async (count) => {
    const frames = [];
    globalThis.paints.length = 0;
    const canvas = document.querySelector(".flame-canvas");
    const tree = document.querySelector("[role=tree]");
    const box = canvas.getBoundingClientRect();
    const nextFrame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    for (let i = 0; i < count; i += 1) {
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
    const paints = globalThis.paints
      .filter(({ name }) => name === "flame.paint")
      .map((item) => item.duration);
    return { frames, paints };
  }, rounds);
}

/** Wheel with Ctrl at changing places, then drags to both sides: the times of frames. */
export function moveTimes(page, count = 24) {
  return page.evaluate(async (steps) => {
    const canvas = document.querySelector(".flame-canvas");
    const tree = document.querySelector("[role=tree]");
    const box = canvas.getBoundingClientRect();
    const nextFrame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    const clientY = box.bottom - 18 * 9;
    const at = (share) => ({ clientX: box.left + box.width * share, clientY, bubbles: true, pointerId: 1 });
    const frames = [];
    let last = await nextFrame();
    const measured = async () => {
      const now = await nextFrame();
      frames.push(now - last);
      last = now;
    };
    const wheel = (deltaY, share) =>
      canvas.dispatchEvent(
        new WheelEvent("wheel", { ...at(share), deltaY, ctrlKey: true, cancelable: true }),
      );
    for (let i = 0; i < steps; i += 1) {
      wheel(-120, 0.2 + (i % 5) * 0.1);
      await measured();
    }
    canvas.dispatchEvent(new PointerEvent("pointerdown", { ...at(0.5), button: 0, buttons: 1 }));
    for (let i = 0; i < steps * 2; i += 1) {
      canvas.dispatchEvent(
        new PointerEvent("pointermove", { ...at(0.5 + 0.3 * Math.sin(i / 4)), buttons: 1 }),
      );
      await measured();
    }
    canvas.dispatchEvent(new PointerEvent("pointerup", { ...at(0.5), button: 0 }));
    for (let i = 0; i < steps; i += 1) {
      wheel(120, 0.2 + (i % 5) * 0.1);
      await measured();
    }
    tree.dispatchEvent(new KeyboardEvent("keydown", { key: "0", bubbles: true, cancelable: true }));
    for (let i = 0; i < 20; i += 1) await nextFrame();
    return frames;
  }, count);
}

/** From a key on `target` (the page without) until a flame graph is painted with what it changed. */
export function nextPaint(page, key, target = "body") {
  return page.evaluate(
    async ([pressed, selector]) => {
      await new Promise((resolve) => setTimeout(resolve, 300));
      globalThis.paints.length = 0;
      const before = location.search;
      const began = performance.now();
      const options = { key: pressed, bubbles: true, cancelable: true };
      document.querySelector(selector).dispatchEvent(new KeyboardEvent("keydown", options));
      let painted;
      const deadline = began + 20_000;
      while (painted === undefined) {
        if (performance.now() > deadline) throw new Error(`the key ${pressed} painted nothing`);
        await new Promise((resolve) => setTimeout(resolve, 4));
        painted = globalThis.paints.find(({ name }) => name === "flame.paint");
      }
      if (location.search === before) throw new Error(`the key ${pressed} changed nothing`);
      // A sandwich has two halves, which are painted in the same frame.
      await new Promise((resolve) => setTimeout(resolve, 50));
      const ends = globalThis.paints.filter(({ name }) => name === "flame.paint").map(({ end }) => end);
      return Math.max(...ends.filter((end) => end < painted.end + 30)) - began;
    },
    [key, target],
  );
}

/** Times of so many frames in which nobody touches the page. */
export function frameTimes(page, count) {
  return page.evaluate(async (wanted) => {
    const nextFrame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    const times = [];
    let last = await nextFrame();
    while (times.length < wanted) {
      const now = await nextFrame();
      times.push(now - last);
      last = now;
    }
    return times;
  }, count);
}

/** From a movement of the pointer until the tooltip says what is under it. */
export function hoverTimes(page, moves = 40) {
  return page.evaluate(async (count) => {
    const canvas = document.querySelector(".flame-canvas");
    const box = canvas.getBoundingClientRect();
    const times = [];
    for (let i = 0; i < count; i += 1) {
      const clientX = box.left + box.width * (0.04 + ((i * 37) % 90) / 100);
      const clientY = box.bottom - 18 * (2 + (i % 9)) - 9;
      const began = performance.now();
      for (const type of ["pointermove", "mousemove"])
        canvas.dispatchEvent(
          new (type === "mousemove" ? MouseEvent : PointerEvent)(type, { clientX, clientY, bubbles: true }),
        );
      await new Promise((resolve) => requestAnimationFrame(resolve));
      times.push(performance.now() - began);
    }
    return times;
  }, moves);
}

/** From a key in the search field until the matched share stands there. */
export async function searchTime(page, text) {
  return page.evaluate(async (wanted) => {
    const field = document.querySelector("[data-search]");
    const began = performance.now();
    field.value = wanted;
    field.dispatchEvent(new InputEvent("input", { bubbles: true }));
    await new Promise((resolve) => {
      const check = () =>
        document.querySelector("[data-matched] b")?.textContent ? resolve() : setTimeout(check, 0);
      check();
    });
    return performance.now() - began;
  }, text);
}

/**
 * From the last byte of the answer that a page needs until what it draws of it is painted. `watchDrawn` must watch.
 * The answer must be whole: a stream that goes on has no last byte.
 */
export async function drawnAfter(page, answer) {
  await page.waitForFunction(() => globalThis.drawnAt !== undefined, null, { timeout: 60_000 });
  return page.evaluate((part) => {
    // What came later was not waited for.
    const entries = performance
      .getEntriesByType("resource")
      .filter(({ name, responseEnd }) => name.includes(part) && responseEnd <= globalThis.drawnAt);
    if (entries.length === 0) throw new Error(`no answer of ${part} came before the page was drawn`);
    return globalThis.drawnAt - Math.max(...entries.map(({ responseEnd }) => responseEnd));
  }, answer);
}

/** Notes when something that matches is painted for the first time. */
export function watchDrawn(page, selector, least = 1) {
  return page.addInitScript(
    ([what, count]) => {
      const look = () => {
        if (document.querySelectorAll(what).length >= count)
          requestAnimationFrame(() => {
            globalThis.drawnAt = performance.now();
          });
        else requestAnimationFrame(look);
      };
      look();
    },
    [selector, least],
  );
}

/** Bytes of JavaScript objects and of their arrays after a collection of garbage. */
export async function heapBytes(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("HeapProfiler.collectGarbage");
  const { usedSize, backingStorageSize } = await session.send("Runtime.getHeapUsage");
  if (backingStorageSize === undefined) throw new Error("this browser does not tell the size of arrays");
  await session.detach();
  return usedSize + backingStorageSize;
}

/** Share of one core that the page's thread needs while `wait` lasts, in percent. */
export async function cpuShare(page, seconds) {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  const read = async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    const value = (name) => metrics.find((metric) => metric.name === name).value;
    return { task: value("TaskDuration"), at: value("Timestamp") };
  };
  const before = await read();
  await page.waitForTimeout(seconds * 1000);
  const after = await read();
  await session.detach();
  return ((after.task - before.task) / (after.at - before.at)) * 100;
}
