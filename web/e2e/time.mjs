// Everything about time on the task page against the stand-in: heat maps, thread picker, time order,
// comparison, live growth. Run alone: node e2e/time.mjs. Env SHOTS: folder for pictures (optional).

import { mkdirSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { launch, openPage } from "./browser.mjs";
import { graveFindings } from "./inspect.mjs";
import { startMock } from "./mock-server.mjs";
import { THEMES, visit } from "./pages.mjs";
import { address, assert, Checks } from "./real.mjs";

/** How fast the page is, is measured elsewhere: here a busy machine has its time. */
const WAIT_MS = 60_000;
/** Name, query, and what tells that the page is complete: what the visits of all pages do not have. */
const PAGES = [
  ["heat-picked", "view=task&id=1&time=subsecond&from=3100&to=6700", ".heat-canvas"],
  ["heat-thread-picked", "view=task&id=1&time=threads&tid=4250", ".heat-name"],
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
  for (const { name: theme, options } of THEMES) {
    const { context, page, faults } = await openPage(browser, mock.origin, { ...options, bypassCSP: true });
    page.setDefaultTimeout(WAIT_MS);
    await page.goto(mock.url);
    await page.waitForSelector(".overview-table, [role=grid]");
    for (const [name, query, ready] of PAGES) {
      await checks.run(`accessible: ${name} (${theme})`, async () => {
        await visit(page, mock.origin, { query });
        await page.waitForSelector(ready);
        if (shots !== undefined) {
          await page.screenshot({ path: `${shots}/${name}-${theme.replace(" ", "-")}.png` });
        }
        const grave = await graveFindings(page);
        assert(grave.length === 0, grave.join("; "));
        assert(faults.length === 0, faults.join(" | "));
      });
    }
    await context.close();
  }
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
    await page.getByRole("button", { name: /^All threads/ }).waitFor();
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
  await checks.run("a thread is picked in its row and left out in the menu", async () => {
    await page.goto(`${mock.origin}/?view=task&id=1&time=threads`);
    await causing(page, /format=flamegraph.*&tid=4250/, () =>
      page.getByRole("button", { name: "wrk:worker_0", exact: true }).click(),
    );
    await page.getByRole("button", { name: /1 of 7 threads/ }).click();
    await causing(page, /format=flamegraph.*not_tid=4250/, () =>
      page.getByRole("button", { name: "All but picked" }).click(),
    );
    assert((await address(page)).includes("except=1"), await address(page));
    assert(
      /shows [\d.]+ % of the samples/.test(await page.locator(".thread-share").textContent()),
      "no share",
    );
    await page.keyboard.press("Escape");
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

async function continuous(checks, page, mock) {
  await checks.run("the continuous profile: the last hour of one pod, against the hour before", async () => {
    await page.goto(`${mock.origin}/?view=overview`);
    await page.locator(".rail").getByRole("link", { name: "Profile", exact: true }).click();
    await page.waitForSelector("[data-continuous] .strip-bars");
    // Task 6 began thirty hours ago.
    const asked = await causing(page, /format=flamegraph&from=\d+/, () =>
      page.getByRole("button", { name: "1 h", exact: true }).click(),
    );
    const from = Number(new URL(asked.url()).searchParams.get("from"));
    assert(Math.abs(from - 29 * 3_600_000) < 60_000, `the hour begins at ${from}`);
    const clock = await page.locator("[data-clock]").textContent();
    assert(/\d\d:\d\d.* to now$/.test(clock), `the clock says: ${clock}`);
    const whose = page.getByLabel("Whose samples are shown");
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
  const mock = await startMock();
  const browser = await launch();
  await pages(checks, browser, mock, shots);
  const { context, page, faults } = await openPage(browser, mock.origin);
  page.setDefaultTimeout(WAIT_MS);
  await page.goto(mock.url);
  await page.waitForSelector(".overview-table, [role=grid]");
  await heatMaps(checks, page, mock);
  await continuous(checks, page, mock);
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
