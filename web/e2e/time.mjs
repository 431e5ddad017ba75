// Everything about time on the task page against the stand-in: heat maps, threads, time order,
// comparison, live growth. Run alone: node e2e/time.mjs. Env SHOTS: folder for pictures (optional).

import { mkdirSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { launch, openPage } from "./browser.mjs";
import { startMock } from "./mock-server.mjs";
import { accessibleInThemes, visit } from "./pages.mjs";
import { address, assert, Checks } from "./real.mjs";

/** How fast the page is, is measured elsewhere: here a busy machine has its time. */
const WAIT_MS = 60_000;
/** Name, query, and what tells that the page is complete: what the visits of all pages do not have. */
const PAGES = [
  ["heat-picked", "view=task&id=1&time=subsecond&from=3100&to=6700", ".heat-canvas"],
  ["heat-thread-picked", "view=task&id=1&time=threads&tid=4250", ".track[data-picked=all]"],
  ["tracks-of-waits", "view=task&id=101&time=threads&tid=4250&except=1", ".track-legend"],
  ["strip-picked", "view=task&id=1&from=2000&to=5000", ".strip-range"],
  ["order-picked", "view=task&id=3&tab=order&from=2000&to=5000", ".order-canvas"],
  ["diff-table", "view=task&id=1&base=3&tab=table&norm=rate", "[data-change-table] [data-row]"],
  ["continuous", "view=task&id=6&since=105000000&from=105000000", "[data-continuous] .strip-bars"],
  ["diff-empty", "view=task&id=5&base=1", "[data-diff-sides]"],
];

/** Does something and waits for a request that it causes. */
async function causing(page, wanted, action) {
  const [request] = await Promise.all([page.waitForRequest(wanted), action()]);
  return request;
}

async function pages(checks, browser, mock, shots) {
  const { context, page, faults } = await openPage(browser, mock.origin, { bypassCSP: true });
  page.setDefaultTimeout(WAIT_MS);
  await page.goto(mock.url);
  await page.waitForSelector(".overview-table, [role=grid]");
  for (const [name, query, ready] of PAGES)
    await accessibleInThemes(checks, page, {
      name: (theme) => `accessible: ${name} (${theme})`,
      open: async () => {
        await visit(page, mock.origin, { query });
        await page.waitForSelector(ready);
      },
      done: async (theme) => {
        if (shots !== undefined) await page.screenshot({ path: `${shots}/${name}-${theme}.png` });
        assert(faults.length === 0, faults.join(" | "));
      },
    });
  await context.close();
  await checks.run("320 pixels wide: time and comparison are not cut off", async () => {
    const { context, page } = await openPage(browser, mock.origin, { viewport: { width: 320, height: 700 } });
    await page.goto(mock.url);
    await page.waitForSelector(".overview-table, [role=grid]");
    for (const [name, query, ready] of PAGES) {
      await page.goto(`${mock.origin}/?${query}`);
      await page.waitForSelector(ready);
      if (shots !== undefined) await page.screenshot({ path: `${shots}/${name}-320.png` });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert(wide <= 320, `${name} is ${wide} wide`);
    }
    await context.close();
  });
}

async function heatMaps(checks, page, mock) {
  await checks.run("h goes through the three forms of time", async () => {
    await page.goto(`${mock.origin}/?view=task&id=1`);
    await page.waitForSelector(".strip-box");
    for (const form of ["subsecond", "threads"]) {
      await page.keyboard.press("h");
      await page.waitForFunction((wanted) => location.search.includes(`time=${wanted}`), form);
    }
    await page.keyboard.press("h");
    await page.waitForSelector(".strip-box");
  });
  await checks.run("dragging over the sub-second map filters the graph", async () => {
    await page.goto(`${mock.origin}/?view=task&id=1&time=subsecond`);
    const canvas = page.locator(".heat-canvas");
    await canvas.waitFor();
    await page.waitForFunction(() => document.querySelector(".heat-canvas").clientWidth > 200);
    const box = await canvas.boundingBox();
    const column = box.width / 60;
    // From the middle of second 10 to the end of second 20.
    const asked = await causing(page, /format=flamegraph&from=\d+&to=\d+/, async () => {
      await page.mouse.move(box.x + column * 10.5, box.y + box.height * 0.505);
      await page.mouse.down();
      await page.mouse.move(box.x + column * 20.5, box.y + box.height * 0.995, { steps: 4 });
      await page.mouse.up();
    });
    const url = new URL(asked.url());
    const [from, to] = ["from", "to"].map((name) => Number(url.searchParams.get(name)));
    assert(Math.abs(from - 10_500) <= 20 && Math.abs(to - 21_000) <= 20, `asked for ${from} to ${to}`);
    assert(from % 20 === 0 && to % 20 === 0, "not whole buckets");
    await page.mouse.move(5, 5);
    const text = await page.locator("[data-heat-text]").textContent();
    assert(/picked: 10\.5\d s to 21\.00 s/.test(text), `the text says: ${text}`);
  });
  await checks.run("dragging over the bars filters the graph, and the keys move what is picked", async () => {
    await page.goto(`${mock.origin}/?view=task&id=1`);
    const strip = page.locator(".strip-box");
    await strip.waitFor();
    await page.waitForFunction(() => document.querySelector(".strip-bars path")?.getAttribute("d") !== "");
    const shown = () => page.locator(".shown-samples").textContent();
    await page.locator(".flame-canvas").waitFor();
    // What it makes room for has come.
    await page.locator(".quality-chip", { hasText: "%" }).waitFor();
    await page.getByRole("button", { name: /^Threads: all/ }).waitFor();
    const box = await strip.boundingBox();
    const asked = await causing(page, /format=flamegraph&from=\d+&to=\d+/, async () => {
      await page.mouse.move(box.x + box.width * 0.25, box.y + box.height / 2);
      await page.mouse.down();
      await page.mouse.move(box.x + box.width * 0.5, box.y + box.height / 2, { steps: 4 });
      await page.mouse.up();
    });
    const url = new URL(asked.url());
    const [from, to] = ["from", "to"].map((name) => Number(url.searchParams.get(name)));
    // Task 1 has sixty seconds.
    assert(Math.abs(from - 15_000) <= 200 && Math.abs(to - 30_000) <= 200, `asked for ${from} to ${to}`);
    assert(
      /^15\.\d s to 30\.\d s$/.test(await page.locator(".strip-text .numeric").textContent()),
      "the text",
    );
    assert(/\d/.test(await shown()), await shown());
    await strip.focus();
    await causing(page, new RegExp(`from=${from + 100}&to=${to + 100}`), () =>
      page.keyboard.press("ArrowRight"),
    );
    await causing(page, new RegExp(`from=${from + 100}&to=${to + 200}`), () =>
      page.keyboard.press("Shift+ArrowRight"),
    );
    await page.reload();
    await page.locator(".strip-range").waitFor();
    await strip.focus();
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => !location.search.includes("from="));
  });
  await checks.run("the sub-second map is walked and picked with the keyboard", async () => {
    await page.goto(`${mock.origin}/?view=task&id=1&time=subsecond`);
    const slider = page.locator(".heat-box");
    // Keys walk the cells once these are there.
    await page.waitForFunction(
      () => Number(document.querySelector(".heat-box")?.getAttribute("aria-valuemax")) > 0,
    );
    await slider.focus();
    for (const key of ["ArrowRight", "ArrowRight", "ArrowDown"]) await page.keyboard.press(key);
    const text = await slider.getAttribute("aria-valuetext");
    assert(/^1\.02 s to 1\.04 s: \d+ samples/.test(text), `at the cursor: ${text}`);
    await page.keyboard.press("Shift+ArrowRight");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => /from=1020&to=2040/.test(location.search));
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => !location.search.includes("from="));
  });
}

/** The row of a thread by its name, or of a process by its number. */
const trackOf = (page, name) => page.getByRole("treeitem", { name });

async function tracks(checks, page, mock) {
  const open = async (query = "") => {
    await page.goto(`${mock.origin}/?view=task&id=1&time=threads${query}`);
    await trackOf(page, "wrk:worker_0").waitFor();
  };
  const tids = async () => new URL(page.url()).searchParams.get("tid") ?? "";
  await checks.run("one button opens and closes the threads, and says what is picked", async () => {
    await page.goto(`${mock.origin}/?view=task&id=1`);
    const button = page.getByRole("button", { name: "Threads: all 7" });
    await button.click();
    await trackOf(page, "wrk:worker_0").waitFor();
    assert((await button.getAttribute("aria-expanded")) === "true", "it does not say that it is open");
    const box = await page.locator(".heat-threads").boundingBox();
    assert(box.height <= 324, `the rows are ${box.height} high`);
    await button.click();
    await page.locator(".heat-threads").waitFor({ state: "detached" });
    await page.goto(`${mock.origin}/?view=task&id=1&tid=4250,4251`);
    await page.getByRole("button", { name: "Threads: 2 of 7" }).waitFor();
  });
  await checks.run("threads and processes are picked with the pointer", async () => {
    await open();
    await causing(page, /format=flamegraph&tid=4250(&|$)/, () => trackOf(page, "wrk:worker_0").click());
    await causing(page, /format=flamegraph&tid=4250&tid=4251(&|$)/, () =>
      trackOf(page, "wrk:worker_1").click({ modifiers: ["Control"] }),
    );
    await causing(page, /format=flamegraph&tid=4251(&|$)/, () =>
      trackOf(page, "wrk:worker_0").click({ modifiers: ["Control"] }),
    );
    await trackOf(page, "6 threads").click();
    await page.waitForFunction(() => location.search.split("tid=")[1].split("%2C").length === 6);
    assert(
      (await page.locator('.track[aria-selected="true"]').count()) === 7,
      "a process and all of its threads are picked",
    );
    await causing(page, /format=flamegraph&tid=5151(&|$)/, () => trackOf(page, "httpbin").click());
    await trackOf(page, "httpbin").click();
    await page.waitForFunction(() => !location.search.includes("tid="));
  });
  await checks.run("picked threads are left out, and all are shown again", async () => {
    await open("&tid=4250");
    await causing(page, /format=flamegraph.*not_tid=4250/, () =>
      page.getByRole("button", { name: "All but picked" }).click(),
    );
    assert((await address(page)).includes("except=1"), await address(page));
    const share = await page.locator(".thread-share").textContent();
    assert(/shows [\d.]+ % of the samples/.test(share), share);
    await page.getByRole("button", { name: "Threads: all but 1 of 7" }).waitFor();
    await page.getByRole("button", { name: "All", exact: true }).click();
    await page.waitForFunction(() => !location.search.includes("tid="));
  });
  await checks.run("threads are found by name, process and number, and picked together", async () => {
    await open();
    const filter = page.getByLabel("Filter threads by name, process or number");
    // What is found is drawn, however small it is.
    await causing(page, /timeline.*by=thread.*tid=4250&tid=4251&tid=4252&tid=4253(&|$)/, () =>
      filter.fill("worker 425"),
    );
    await page.waitForFunction(() => document.querySelectorAll(".track").length === 5);
    await page.getByRole("button", { name: "Pick 4" }).click();
    await page.waitForFunction(() => location.search.includes("tid=4250%2C4251%2C4252%2C4253"));
    await filter.fill("nothing is called so");
    await page.getByText("No thread is found.").waitFor();
    await filter.fill("httpbin");
    await page.waitForFunction(() => document.querySelectorAll(".track").length === 1);
  });
  await checks.run("threads are walked, folded and picked with the keyboard", async () => {
    await open();
    const process = trackOf(page, "6 threads");
    await process.focus();
    await page.keyboard.press("ArrowLeft");
    await page.waitForFunction(() => document.querySelectorAll(".track").length === 2);
    await page.keyboard.press("ArrowRight");
    await page.waitForFunction(() => document.querySelectorAll(".track").length === 8);
    for (const key of ["ArrowRight", "ArrowDown", "Enter"]) await page.keyboard.press(key);
    await page.waitForFunction(() => location.search.includes("tid=4251"));
    for (const key of ["ArrowDown", "Space"]) await page.keyboard.press(key);
    await page.waitForFunction(() => location.search.includes("tid=4251%2C4252"));
    await page.keyboard.press("Space");
    await page.waitForFunction(() => /tid=4251(&|$)/.test(location.search));
    await page.keyboard.press("ArrowLeft");
    const focused = await page.evaluate(() => document.activeElement.getAttribute("data-track"));
    assert(focused === "4242", `the focus is on ${focused}`);
    for (const key of ["End", "Enter"]) await page.keyboard.press(key);
    await page.waitForFunction(() => /tid=5151(&|$)/.test(location.search));
    assert((await tids()) === "5151", await tids());
  });
  await checks.run("a result with waits shows what threads did, in the colours of the bar", async () => {
    await page.goto(`${mock.origin}/?view=task&id=101&time=threads`);
    await page.locator(".track-legend").waitFor();
    const legend = await page.locator(".activity-key").allTextContents();
    assert(legend.includes("lock") && legend.includes("idle"), legend.join());
    assert((await page.getByText("once they have ended").count()) === 1, "it does not say when waits show");
    const colours = await page.evaluate(() => {
      const canvas = document.querySelector(".heat-canvas");
      const probe = document.querySelector(".activity-bar [data-activity=lock]");
      const [, red, green, blue] = /(\d+), (\d+), (\d+)/.exec(getComputedStyle(probe).backgroundColor);
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      let found = 0;
      for (let at = 0; at < data.length; at += 4)
        if (data[at] === Number(red) && data[at + 1] === Number(green) && data[at + 2] === Number(blue))
          found += 1;
      return found / (data.length / 4);
    });
    // Two seconds of nine.
    assert(colours > 0.12 && colours < 0.4, `locks have ${colours} of the picture`);
    const words = await trackOf(page, "wrk:worker_0").textContent();
    assert(/% of the time; running [\d.]+ %, waiting for CPU [\d.]+ %, idle/.test(words), words);
    const slider = page.locator(".heat-box");
    await slider.focus();
    for (const key of ["ArrowRight", "ArrowDown"]) await page.keyboard.press(key);
    const cell = await slider.getAttribute("aria-valuetext");
    assert(/^wrk:worker_0 4250, 0\.00 s to [\d.]+ s: lock \d+ ms/.test(cell), cell);
    await page.keyboard.press("Space");
    await page.waitForFunction(() => location.search.includes("tid=4250"));
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => /from=0&to=\d+/.test(location.search));
  });
}

async function timeOrder(checks, page, mock) {
  await checks.run("time order is read with the keyboard and says what it cannot know", async () => {
    await page.goto(`${mock.origin}/?view=task&id=3&tab=order`);
    await page.locator(".order-canvas").waitFor();
    const note = await page.locator("[data-order-note]").textContent();
    assert(/One column is \d+ ms/.test(note) && note.includes("order is not known"), note);
    await page.locator(".order-scroll").focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowDown");
    const item = await page.locator("[data-order-item]").textContent();
    assert(/^\S.*, \d+ samples?, [\d.]+ s to [\d.]+ s, .*worker_0/.test(item), item);
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => /from=\d+&to=\d+/.test(location.search));
    await page.locator(".order-scroll").focus();
    await page.keyboard.press("Backspace");
    await page.waitForFunction(() => !location.search.includes("from="));
  });
}

async function comparison(checks, page, mock) {
  await checks.run("a base is picked and the changed function comes first", async () => {
    await page.goto(`${mock.origin}/?view=task&id=1`);
    await page.getByRole("button", { name: "Compare", exact: true }).click();
    await page.locator(".base-list .menu-item", { has: page.locator("b", { hasText: /^3 / }) }).click();
    await page.waitForFunction(() => location.search.includes("base=3"));
    await page.locator("[data-diff-sides]").waitFor();
    await page.getByRole("button", { name: "Table", exact: true }).click();
    const first = await page.locator("[data-change-table] [data-row='0']").textContent();
    assert(/significant, q < 0\.0001/.test(first), first);
    const sizes = await page
      .locator("[data-change-table] [role=row][data-row] [role=gridcell]:nth-child(3)")
      .allTextContents();
    const numbers = sizes.map((text) => Number(/[\d.]+/.exec(text)[0]));
    assert(
      numbers.every((size, i) => i === 0 || numbers[i - 1] >= size),
      `changes: ${sizes.slice(0, 6)}`,
    );
    assert((await page.locator("[data-test-note]").textContent()).includes("two-proportion"), "no method");
  });
  await checks.run("the table of a part of the graph is asked for, and judged by itself", async () => {
    const note = page.locator("[data-test-note]");
    const tested = async () =>
      Number(/of ([\d,]+) tested/.exec(await note.textContent())[1].replace(",", ""));
    await page.goto(`${mock.origin}/?view=task&id=1&base=3&tab=table`);
    await note.waitFor();
    const all = await tested();
    await page.getByRole("button", { name: "Graph", exact: true }).click();
    await page.locator("[role=tree]").focus();
    for (let step = 0; step < 8; step += 1) await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => location.search.includes("zoom="));
    await causing(page, /\/diff\?.*format=table&norm=share&limit=\d+&below=\d+/, () =>
      page.getByRole("button", { name: "Table", exact: true }).click(),
    );
    await note.waitFor();
    const part = await tested();
    assert(part > 0 && part < all, `${part} of ${all} functions`);
  });
  await checks.run("sides are swapped, rates are shown, and the view survives a reload", async () => {
    await page.goto(`${mock.origin}/?view=task&id=1&base=3`);
    await page.getByRole("button", { name: "Per second" }).click();
    await page.getByRole("button", { name: "Swap sides" }).click();
    await page.waitForFunction(() => /id=3&.*base=1&.*norm=rate/.test(location.search));
    await page.locator("[data-diff-sides]").waitFor();
    const before = await address(page);
    await page.reload();
    await page.locator("[data-diff-sides]").waitFor();
    assert((await address(page)) === before, await address(page));
  });
  await checks.run("a time range becomes the base of the next one", async () => {
    await page.goto(`${mock.origin}/?view=task&id=1&from=1000&to=4000`);
    await page.getByRole("button", { name: "Compare", exact: true }).click();
    await causing(page, /\/diff\?a=1&b=1.*a_from=1000&a_to=4000/, () =>
      page.getByRole("button", { name: /The picked time of this task/ }).click(),
    );
    assert(!(await address(page)).includes("&from="), "the shown range was kept");
  });
  await checks.run("tasks that do not compare say why", async () => {
    await page.goto(`${mock.origin}/?view=task&id=1&base=7`);
    await page.getByText("No comparison to show").waitFor();
    await page.getByText(/task 7 is network/).waitFor();
  });
}

async function continuous(checks, page, mock, begun) {
  await checks.run("the continuous profile: the last hour of one pod, against the hour before", async () => {
    await page.goto(`${mock.origin}/?view=overview`);
    await page.locator(".rail").getByRole("link", { name: "Profile", exact: true }).click();
    await page.waitForSelector("[data-continuous] .strip-bars");
    // Task 6 began thirty hours before the stand-in.
    const asked = await causing(page, /format=flamegraph&from=\d+/, () =>
      page.getByRole("button", { name: "1 h", exact: true }).click(),
    );
    const from = Number(new URL(asked.url()).searchParams.get("from"));
    const since = 29 * 3_600_000 + Date.now() - begun;
    assert(Math.abs(from - since) < 60_000, `the hour begins at ${from}, not at ${since}`);
    const clock = await page.locator("[data-clock]").textContent();
    assert(/\d\d:\d\d.* to now$/.test(clock), `the clock says: ${clock}`);
    const whose = page.getByLabel("Whose samples are shown");
    const ended = await whose.locator('optgroup[label="Pods that have ended"] option').allTextContents();
    assert(ended.join() === "shop/cart-6c8f", `pods that have ended: ${ended.join()}`);
    const pod = await whose.locator("optgroup[label=Pods] option").first().getAttribute("value");
    const filtered = await causing(page, /format=flamegraph&from=\d+/, () => whose.selectOption(pod));
    const containers = new URL(filtered.url()).searchParams.getAll("container");
    assert(containers.join(",") === pod, `asked for the containers ${containers.join(",")}`);
    const compared = await causing(page, /\/diff\?/, () =>
      page.getByRole("button", { name: "Compare with an hour before" }).click(),
    );
    const sides = new URL(compared.url()).searchParams;
    const time = (side, end) => Number(sides.get(`${side}_${end}`));
    assert(sides.get("a") === "6" && sides.get("b") === "6", "another task is the base");
    assert(time("b", "from") - time("a", "from") === 3_600_000, "the base begins an hour before");
    assert(time("b", "to") - time("a", "to") === 3_600_000, "the base ends an hour before");
    for (const side of ["a", "b"])
      assert(sides.getAll(`${side}_container`).join(",") === pod, `side ${side} is of all containers`);
    await page.waitForSelector("[data-diff-sides]");
    await page.getByRole("button", { name: "Stop comparing" }).click();
    await page.locator("[data-cell-chip]").getByRole("button").first().click();
    await page.waitForFunction(() => !location.search.includes("containers="));
  });
}

async function live(checks, browser, mock) {
  await checks.run("a running task grows, keeps its zoom, and rests while hidden", async () => {
    const { context, page, faults } = await openPage(browser, mock.origin);
    page.setDefaultTimeout(WAIT_MS);
    await page.goto(mock.url);
    await page.waitForSelector(".overview-table, [role=grid]");
    await page.goto(`${mock.origin}/?view=task&id=6`);
    await page.locator(".flame-canvas").waitFor();
    const isProfile = (request) => /tasks\/6\/profile/.test(request.url());
    await page.locator("[role=tree]").focus();
    for (const key of ["ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "Enter"]) await page.keyboard.press(key);
    await page.waitForFunction(() => location.search.includes("zoom="));
    const zoomed = await address(page);
    await page.waitForRequest(isProfile);
    await page.waitForRequest(isProfile);
    assert((await address(page)) === zoomed, "the zoom was lost");
    await page.evaluate(() => {
      Object.defineProperty(document, "visibilityState", { configurable: true, get: () => "hidden" });
      document.dispatchEvent(new Event("visibilitychange"));
    });
    // What was asked before may still come; after that there is silence.
    await page.waitForTimeout(2500);
    let asked = 0;
    page.on("request", (request) => {
      if (/\/api\//.test(request.url())) asked += 1;
    });
    await page.waitForTimeout(5000);
    assert(asked === 0, `${asked} requests while hidden`);
    await causing(page, isProfile, () =>
      page.evaluate(() => {
        Object.defineProperty(document, "visibilityState", { configurable: true, get: () => "visible" });
        document.dispatchEvent(new Event("visibilitychange"));
      }),
    );
    assert(faults.length === 0, faults.join(" | "));
    await context.close();
  });
}

/** All of it; the stand-in must serve a fresh build of the page. */
export async function timeWalk(checks, shots) {
  const begun = Date.now();
  const mock = await startMock();
  const browser = await launch();
  await pages(checks, browser, mock, shots);
  const { context, page, faults } = await openPage(browser, mock.origin);
  page.setDefaultTimeout(WAIT_MS);
  await page.goto(mock.url);
  await page.waitForSelector(".overview-table, [role=grid]");
  await heatMaps(checks, page, mock);
  await continuous(checks, page, mock, begun);
  await tracks(checks, page, mock);
  await timeOrder(checks, page, mock);
  await comparison(checks, page, mock);
  await checks.run("time and comparison: no fault of the page", async () => {
    // The answer 422 of tasks that do not compare is the point of its step.
    const real = faults.filter((fault) => !/status of 422/.test(fault));
    assert(real.length === 0, real.join(" | "));
  });
  await context.close();
  await live(checks, browser, mock);
  await browser.close();
  await mock.close();
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const shots = process.env.SHOTS;
  if (shots !== undefined) mkdirSync(shots, { recursive: true });
  const checks = new Checks();
  await timeWalk(checks, shots);
  checks.finish();
}
