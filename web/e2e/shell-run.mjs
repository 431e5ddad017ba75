// The frame around the pages against the stand-in: pods, details of a process, check-up, palette, keys, node page,
// copying, hostile names, ten thousand processes, accessibility of each in every theme.

import { mkdirSync } from "node:fs";
import { launch, openOptions, openPage } from "./browser.mjs";
import { startMock } from "./mock-server.mjs";
import { accessibleInThemes } from "./pages.mjs";
import { address, assert, Checks } from "./real.mjs";

/** What the visits of all pages do not have. */
const PAGES = [
  "view=pods&process=4242-156954",
  "view=pods&create=1&checkup=1&pod=4026532201",
  "view=group&id=check-1",
];
const READY = "[role=grid], .state h2, .cards, .overview-table";
const shots = process.env.SHOTS;
if (shots !== undefined) mkdirSync(shots, { recursive: true });

const checks = new Checks();
const mock = await startMock();
for (const [i, kind] of ["on_cpu", "off_cpu", "requests"].entries()) {
  const task = mock.agent.create({ kind, target: { pids: [4242] }, duration_s: 600, group: "check-1" });
  if (i === 0) Object.assign(task, { state: "failed", reason: "on_cpu is denied by --deny-probe" });
}
const browser = await launch();

async function opened(options = {}, origin = mock) {
  const { context, page, faults } = await openPage(browser, origin.origin, options);
  await page.goto(origin.url);
  await page.waitForSelector(READY);
  return { context, page, faults };
}

const free = await opened({ bypassCSP: true });
for (const query of PAGES)
  await accessibleInThemes(checks, free.page, {
    name: (theme) => `accessible: ${query} (${theme})`,
    open: async () => {
      await free.page.goto(`${mock.origin}/?${query}`);
      await free.page.waitForSelector(READY);
      if (query.includes("process=")) await free.page.getByText("Partial symbols").first().waitFor();
    },
  });
for (const [what, keys, shown] of [
  ["palette", "Control+k", ".palette"],
  ["help", "?", ".help"],
])
  await accessibleInThemes(checks, free.page, {
    name: (theme) => `accessible: ${what} (${theme})`,
    open: async () => {
      await free.page.goto(`${mock.origin}/?view=pods`);
      await free.page.waitForSelector(READY);
      await free.page.keyboard.press(keys);
      await free.page.locator(shown).waitFor();
    },
  });
await free.context.close();

await checks.run("the first page says which pod needs attention, and one click checks it up", async () => {
  const { context, page, faults } = await opened();
  await page.goto(`${mock.origin}/`);
  const summary = await page.locator("[data-summary]").textContent();
  const first = page.locator(".overview-table tbody tr").first();
  const title = await first.locator("th .name").textContent();
  assert(summary.startsWith(`${title}: 5.0 % of its responses are errors`), summary);
  const cells = await first.locator("td").allTextContents();
  assert(cells[0] === "420" && cells[1] === "5.0 %" && cells[2] === "< 264 ms", cells.join(" | "));
  const troubles = await page.locator(".trouble-row").first().locator("li").allTextContents();
  assert(troubles.length === 2 && troubles[0].startsWith("Bad "), troubles.join(" | "));
  // What is not known is a dash with its reason.
  const unknown = page.locator("td[data-title='Requests/s'] [title*='a check-up measures them']").first();
  await unknown.waitFor();
  // Processes outside of pods are folded.
  const folded = page.locator("details.overview-node");
  assert((await folded.getAttribute("open")) === null, "what runs outside of pods is not folded");
  await folded.locator("summary").click();
  await folded.locator("table").waitFor();
  await page.fill("[data-search]", "CPU limit");
  await page.waitForFunction(() => document.querySelectorAll(".overview-table tr[data-row]").length === 1);
  await page.fill("[data-search]", "");
  await first.getByRole("button", { name: /^Check up / }).click();
  await page.waitForURL(/view=checkup&id=checkup-/);
  await page.goto(`${mock.origin}/`);
  await page.locator(".last-verdict", { hasText: "running…" }).first().waitFor();
  assert(faults.length === 0, faults.join(" | "));
  await context.close();
});

await checks.run("an overview that is off says so, and where processes are", async () => {
  const { context, page } = await opened();
  mock.agent.overview = false;
  await page.goto(`${mock.origin}/`);
  await page.getByText("The overview is off").waitFor();
  mock.agent.overview = true;
  await page.getByRole("main").getByRole("link", { name: "Pods" }).click();
  await page.waitForURL(/view=pods/);
  await context.close();
});

await checks.run("a pod says what its sidecar uses, and each process its role with the reason", async () => {
  const { context, page, faults } = await opened();
  await page.goto(`${mock.origin}/?view=pods&q=4242`);
  const line = page.locator("[data-sidecar-line]").first();
  await line.waitFor();
  const text = await line.textContent();
  assert(/sidecar uses \d+\.\d\d of \d+\.\d\d cores \(\d+ %\)/.test(text), text);
  await page.goto(`${mock.origin}/?view=pods&q=sidecar`);
  const chip = page.locator(".role-sidecar").first();
  await chip.waitFor();
  const reason = await chip.getAttribute("title");
  assert(reason === "Kubernetes runs its container istio-proxy as a sidecar", reason);
  assert((await page.locator(".role-app").count()) === 0, "the filter by role shows others");
  assert(faults.length === 0, faults.join(" | "));
  await context.close();
});

await checks.run("names of pods' processes are looked at by themselves, and explained", async () => {
  const { context, page, faults } = await opened();
  await page.goto(`${mock.origin}/?view=pods&q=4242`);
  await page.getByRole("button", { name: /Names: Partial symbols/ }).click();
  await page.getByText("give its debug file or unstripped build").first().waitFor();
  assert((await address(page)).includes("process=4242-"), "the details are not in the address");
  await page.getByText("wrk:worker_0").waitFor();
  // A path with markup and a direction mark is text.
  const body = await page.locator(".process-panel").textContent();
  assert(body.includes("<b>lib") && !body.includes("\u202e"), "a hostile path");
  assert((await page.locator(".process-panel b:has-text('lib')").count()) === 0, "a path became an element");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => !location.search.includes("process="));
  assert(faults.length === 0, faults.join(" | "));
  await context.close();
});

await checks.run("a process that is gone is told", async () => {
  const { context, page } = await opened();
  await page.goto(`${mock.origin}/?view=pods&process=99999-1`);
  await page.getByText("there is no process 99999-1").waitFor();
  await context.close();
});

await checks.run("the check-up of a pod starts three tasks, and its page leads to them", async () => {
  const { context, page, faults } = await opened();
  await page.goto(`${mock.origin}/?view=pods&q=4242`);
  await page.getByRole("button", { name: "Check-up…" }).first().click();
  await page.getByRole("button", { name: "Start check-up" }).waitFor();
  const estimate = await page.locator("[data-estimate]").textContent();
  assert(
    /About [\d,]+ samples \(30 s × 99 Hz × \d+\.\d\d cores as now\): .* reads 10 ±/.test(estimate),
    estimate,
  );
  const how = await page.locator("[data-estimate] .cost li").first().getAttribute("title");
  assert(/docs\/performance\.md/.test(how), "the cost has no source");
  await page.getByRole("button", { name: "Start check-up" }).click();
  await page.waitForURL(/view=checkup&id=checkup-/);
  const id = new URL(await address(page)).searchParams.get("id");
  const made = [...mock.agent.tasks.values()].filter(({ group }) => group === id);
  assert(made.length === 3, `${made.length} tasks`);
  const { pod } = made[0].target;
  assert(pod?.namespace === "shop" && pod.name.startsWith("checkout-"), JSON.stringify(made[0].target));
  await page.getByRole("link", { name: "its tasks" }).click();
  await page.waitForURL(/view=group&id=checkup-/);
  await page.locator(".group-card").nth(2).waitFor();
  const titles = await page.locator(".group-card h2").allTextContents();
  assert(titles.join() === "On-CPU,Off-CPU,Requests", titles.join());
  await page.reload();
  await page.locator(".group-card").nth(2).waitFor();
  await page.getByText("Waited, not idle").waitFor();
  if (shots !== undefined) await page.screenshot({ path: `${shots}/checkup.png` });
  await page.getByRole("button", { name: "Stop all" }).click();
  await page.getByText("all have ended").waitFor();
  await page.getByRole("link", { name: "Open the flame graph" }).first().click();
  await page.waitForURL(/view=task&id=/);
  assert(faults.length === 0, faults.join(" | "));
  await context.close();
});

await checks.run("a check-up that is refused says why, next to the button", async () => {
  const { context, page } = await opened();
  const { create } = mock.agent;
  mock.agent.create = () => {
    throw Object.assign(new Error("no room for another check-up"), { status: 429, code: "too_many_tasks" });
  };
  await page.goto(`${mock.origin}/?view=pods&create=1&checkup=1&pids=4242`);
  await page.getByRole("button", { name: "Start check-up" }).click();
  await page.locator("dialog[open]").getByText("no room for another check-up").waitFor();
  mock.agent.create = create;
  await context.close();
});

await checks.run("conflicts stand in the dialog before the agent is asked", async () => {
  const { context, page } = await opened();
  await page.goto(`${mock.origin}/?view=processes&create=1&pids=4242`);
  await openOptions(page);
  await page.fill("#frequency", "100");
  await page.getByText("100 Hz may run in step").waitFor();
  await page.fill("#frequency", "9999");
  await page.getByText("The frequency must be 1 to 4999 Hz.").waitFor();
  await page.getByLabel("Off-CPU", { exact: true }).check();
  await page.fill("#min-wait", "soon");
  await page.getByText("No estimate yet: a number of milliseconds.").waitFor();
  await page.fill("#min-wait", "0.5");
  await page.selectOption("#wait-mode", "sampled");
  const curl = await page.getByRole("button", { name: "Copy as curl" }).getAttribute("title");
  assert(/"off_cpu_mode":"sampled"/.test(curl) && /"min_wait_ns":500000/.test(curl), curl);
  assert(!curl.includes("0123456789abcdef"), "the token is in the command");
  await context.close();
});

await checks.run("the palette goes to a process, a pod, a task and a page", async () => {
  const { context, page, faults } = await opened();
  const goTo = async (text, address) => {
    await page.keyboard.press("Control+k");
    await page.fill(".palette-field", text);
    const [first] = await page.locator(".palette-entry").allTextContents();
    await page.keyboard.press("Enter");
    await page
      .waitForFunction((wanted) => new RegExp(wanted).test(location.href), address.source, {
        timeout: 15_000,
      })
      .catch(async () => assert(false, `${text} went to ${page.url()}; the first entry was ${first}`));
  };
  await goTo("task 4", /view=task&id=4/);
  await goTo("envoy 4242", /process=4242-/);
  await page.locator(".process-panel").waitFor();
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => !location.search.includes("process="));
  await goTo("pods", /view=pods/);
  await goTo("pod 4026532344", /view=pods&q=4026532344/);
  await page.locator("[data-sidecar-line]").waitFor();
  await page.keyboard.press("Control+k");
  await page.fill(".palette-field", "<img");
  assert(
    (await page.locator(".palette-entry .name").first().textContent()) === '<img src=x>"&',
    "a hostile name",
  );
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Escape");
  assert((await page.locator(".palette").count()) === 0, "the palette stays open");
  assert(faults.length === 0, faults.join(" | "));
  await context.close();
});

await checks.run("the keys of the help do what it says, and can be turned off", async () => {
  const { context, page } = await opened();
  const press = async (...keys) => {
    for (const key of keys) await page.keyboard.press(key);
  };
  await press("g", "p");
  await page.waitForURL(/view=pods/);
  await press("g", "d");
  await page.waitForURL(/view=diagnose/);
  await press("g", "o");
  await page.waitForURL(/view=node/);
  await press("u");
  await page.getByRole("button", { name: "Start check-up" }).waitFor();
  await press("Escape", "?");
  await page.getByLabel(/Single keys are shortcuts/).uncheck();
  await press("Escape", "g", "t");
  assert((await address(page)).includes("view=node"), "a single key works though it is off");
  await press("Control+k");
  await page.locator(".palette").waitFor();
  await context.close();
});

await checks.run("the keys of a new task and a check-up take the row that has the focus", async () => {
  const { context, page } = await opened();
  await page.goto(`${mock.origin}/?view=pods&q=4242`);
  await page.locator(".pod-table [data-subject^=pod]").first().focus();
  await page.keyboard.press("u");
  await page.getByRole("heading", { name: "New check-up" }).waitFor();
  assert(/^40265/.test(await page.getByLabel("Pod", { exact: true }).last().inputValue()), "not the pod");
  await page.keyboard.press("Escape");
  await page.locator(".pod-table [data-subject='pid 4242']").focus();
  await page.keyboard.press("n");
  await page.locator(".chips .chip", { hasText: "4242" }).waitFor();
  await context.close();
});

await checks.run("what can be done with a row is reached on narrow screens", async () => {
  const { context, page } = await opened();
  for (const [width, query, names] of [
    [1024, "view=pods", ["Check-up…", "Profile pod…", /^Profile /]],
    [390, "view=pods", ["Check-up…", "Profile pod…", /^Profile /]],
    [390, "view=tasks", [/^(Stop|Delete)$/]],
  ]) {
    await page.setViewportSize({ width, height: 800 });
    await page.goto(`${mock.origin}/?${query}`);
    await page.waitForSelector("[role=grid] [data-row]");
    for (const name of names) {
      const box = await page.getByRole("grid").getByRole("button", { name }).first().boundingBox();
      assert(box !== null && box.x + box.width <= width, `${name} at ${width}: ${JSON.stringify(box)}`);
    }
  }
  for (const [query, titles] of [
    ["view=task&id=8", ["p90", "p99"]],
    ["view=network&net=table", ["Retr", "Drops", "Resets", "Errors"]],
  ]) {
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.goto(`${mock.origin}/?${query}`);
    await page.waitForSelector("[role=grid] [data-row]");
    for (const name of titles) {
      const box = await page.getByRole("columnheader", { name, exact: true }).boundingBox();
      assert(box !== null && box.x + box.width <= 1440, `${name}: ${JSON.stringify(box)}`);
    }
  }
  await context.close();
});

await checks.run("with demo data nothing is started, and the dialog says why", async () => {
  const { context, page } = await opened();
  await page.route(/\/api\/v1\/meta$/, async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ json: { ...(await answer.json()), demo_data: true } });
  });
  await page.goto(`${mock.origin}/?view=processes&create=1&pids=4242`);
  await page.getByText("Demo data: nothing can be recorded here").waitFor();
  assert(await page.getByRole("button", { name: "Start", exact: true }).isDisabled(), "it can be started");
  await context.close();
});

await checks.run("a group runs once more as a group of its own", async () => {
  const { context, page } = await opened();
  await page.goto(`${mock.origin}/?view=group&id=check-1`);
  await page.getByRole("button", { name: "Stop all" }).click();
  await page.getByRole("button", { name: "Run again" }).click();
  await page.waitForURL(/view=group&id=check-1\.2/);
  await page.locator(".group-card").nth(2).waitFor();
  await context.close();
});

await checks.run("the link that is copied has the view and no token", async () => {
  const { context, page } = await opened({ permissions: ["clipboard-read", "clipboard-write"] });
  await page.goto(`${mock.origin}/?view=pods&q=envoy`);
  await page.waitForSelector(READY);
  await page.getByRole("button", { name: /^Copy/ }).click();
  await page.getByRole("button", { name: /Copy link/ }).click();
  await page.getByText("Link copied").waitFor();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  assert(link.endsWith("/?view=pods&q=envoy"), link);
  await page.getByRole("button", { name: /^Copy/ }).click();
  await page.getByRole("button", { name: /Copy as curl/ }).click();
  await page.getByText("Command copied").waitFor();
  const command = await page.evaluate(() => navigator.clipboard.readText());
  assert(command.includes("/api/v1/pods") && command.includes("$PROFILER_TOKEN"), command);
  await context.close();
});

await checks.run("the node page shows what is in the kernel, and measures runs when asked", async () => {
  const { context, page, faults } = await opened();
  await page.goto(`${mock.origin}/?view=node`);
  await page.getByText("rates and times are unknown, not zero").waitFor();
  const cells = () =>
    page.locator("tr:has(td:text-is('network_send'))").first().locator("td").allTextContents();
  assert((await cells())[2] === "–", `unmeasured runs a second: ${await cells()}`);
  await page.getByLabel(/Measure runs while this page is open/).check();
  await page.waitForFunction(() =>
    [...document.querySelectorAll("tr")].some((row) => /network_send.*\d ns/.test(row.textContent)),
  );
  const counts = page.locator("tr:has(td:text-is('COUNTS_A'))");
  assert(/88\.5 % nearly full/.test(await counts.textContent()), await counts.textContent());
  const ring = await page.locator("tr:has(td:text-is('EVENTS'))").textContent();
  assert(/ring buffer: what does not fit/.test(ring), ring);
  await page.getByText("***@debug.example").waitFor();
  await page.getByText("run with CAP_SYSLOG").waitFor();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download", exact: true }).click(),
  ]);
  assert(/^profiler-agent-.*\.tar\.gz$/.test(download.suggestedFilename()), download.suggestedFilename());
  assert(faults.length === 0, faults.join(" | "));
  await context.close();
});

await checks.run("a pod leads to its map of connections, whose rings are shares of its CPU", async () => {
  const { context, page, faults } = await opened();
  await page.goto(`${mock.origin}/?view=pods&q=4242`);
  await page.getByRole("link", { name: "Network map" }).first().click();
  await page.waitForURL(/view=network&net=map&map=%21\d+/);
  await page.locator(".map-node .cpu-ring .part").first().waitFor();
  // At once: both change with each reading.
  const [label, box] = await page.evaluate(() => [
    document.querySelector(".map-node.role-sidecar [data-item]").getAttribute("aria-label"),
    document.querySelector(".map-box").textContent,
  ]);
  const [, cores, share] = /([\d.]+) cores, (\d+) % of the pod's CPU/.exec(label) ?? [];
  const [, total] = /share of the ([\d.]+) cores/.exec(box) ?? [];
  assert(Math.abs(Number(cores) / Number(total) - Number(share) / 100) < 0.02, `${label}; of ${total}`);
  assert(faults.length === 0, faults.join(" | "));
  await context.close();
});

await checks.run("320 pixels wide: nothing is cut off sideways", async () => {
  const { context, page } = await opened({ viewport: { width: 320, height: 640 } });
  for (const query of PAGES) {
    await page.goto(`${mock.origin}/?${query}`);
    await page.waitForSelector(READY);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert(wide <= 320, `${query} is ${wide} wide`);
  }
  await context.close();
});

await checks.run("ten thousand processes: a key in the filter is answered at once", async () => {
  const many = await startMock(0, { processes: 10_000, tickMs: 60_000 });
  const { context, page } = await opened({}, many);
  await page.goto(`${many.origin}/?view=pods`);
  await page.locator("[data-sidecar-line]").first().waitFor();
  const told = await page.locator(".list-page .push").textContent();
  assert(/1\d,\d{3} processes/.test(told), `not ten thousand: ${told}`);
  // The handler and the drawing that it asks for, in the page itself; the best of some tries is what the code
  // takes, the others are what else this machine does.
  const best = await page.evaluate(async () => {
    const field = document.querySelector("[data-search]");
    const times = [];
    for (const text of ["a", "ap", "app", "app-", "app-3", "app-", "app"]) {
      const start = performance.now();
      field.value = text;
      field.dispatchEvent(new InputEvent("input", { bubbles: true }));
      await new Promise((resolve) => setTimeout(resolve, 0));
      times.push(performance.now() - start);
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
    return Math.min(...times);
  });
  console.log(`        key stroke with 10,000 processes: ${best.toFixed(1)} ms (target 50)`);
  assert(best < 150, `${best} ms`);
  assert((await page.locator("[role=row][data-row]").count()) < 100, "rows out of sight are drawn");
  await context.close();
  await many.close();
});

await browser.close();
await mock.close();
checks.finish();
