// The pages of diagnoses against the stand-in, as a person walks them: verdict, findings, settings to
// copy, the matrix by mouse and keyboard, the flame graph of a cell, proof by running again.
// Env: SHOTS (optional). Prints "N passed, M failed"; exit code 1 on failure. `diagnoseWalk` is used by the other tests.

import { mkdirSync, readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { launch, openOptions, openPage } from "./browser.mjs";
import { startMock } from "./mock-server.mjs";
import { assert, Checks } from "./real.mjs";
import { READY } from "./visits.mjs";

const ZIPKIN = "checkup-20261122-070000-zip";
const PLAIN = "checkup-20261122-080000-off";
const WAIT_MS = 15_000;

/** Numbers of a row or column as they are read. */
const numbers = (texts) => texts.map((text) => Number(text.replace(/[^\d.]/g, "") || 0));

export async function diagnoseWalk(checks, browser, mock, shots) {
  const opened = async (options = {}) => {
    const all = await openPage(browser, mock.origin, options);
    all.page.setDefaultTimeout(WAIT_MS);
    await all.page.goto(mock.url);
    await all.page.waitForSelector(READY);
    const go = async (query) => {
      await all.page.goto(`${mock.origin}/?${query}`);
      await all.page.waitForFunction(() => document.querySelector(".spinner") === null);
    };
    return { ...all, go };
  };
  const shot = async (page, name) => {
    if (shots !== undefined) await page.screenshot({ path: `${shots}/diagnose-${name}.png`, fullPage: true });
  };
  const clean = (faults) => assert(faults.length === 0, faults.join(" | "));

  await checks.run("the verdict stands above, with numbers and their intervals", async () => {
    const { context, page, faults, go } = await opened();
    await go(`view=checkup&id=${ZIPKIN}`);
    const verdict = await page.locator("[data-verdict]").textContent();
    assert(/tracing takes 39\.9 %/.test(verdict), verdict);
    const totals = await page.locator("[data-totals]").textContent();
    assert(/1\.36 cores/.test(totals) && /167 µs \(\d+ µs to \d+ µs\)/.test(totals), totals);
    const [first, ...rest] = await page.locator("[data-finding]").all();
    assert(
      (await first.getAttribute("data-finding")) === "tracing_share" && rest.length === 3,
      "the ranking",
    );
    const text = await first.textContent();
    assert(/High/.test(text), "a severity has no word");
    assert(/39\.9 %\s*38\.8 to 41\.0 %/.test(text), text.slice(0, 200));
    assert(/Saves about 39\.9 % of the CPU, 66\.\d µs of each request/.test(text), text.slice(0, 200));
    assert(/zipkin, random_sampling 100 %/.test(text), "what is configured now");
    const last = await rest.at(-1).textContent();
    // The headers of the evidence stand above its columns.
    const evidence = first.locator("table.evidence");
    const left = (selector) =>
      evidence
        .locator(selector)
        .first()
        .evaluate((cell) => cell.offsetLeft);
    assert((await left("thead th")) === (await left("tbody td")), "headers stand beside their columns");
    assert(
      /(CPU saving not known|Affects latency)/.test(last) && !/Saves about/.test(last),
      "an unknown saving is a number",
    );
    await page.getByText("The busiest worker uses").waitFor();
    const taken = await page.locator("[data-contention]").textContent();
    assert(/5\.00 s.*chromium 2\.30 s \(46/.test(taken), taken);
    await page.getByText("No sample fell into it").first().waitFor({ state: "attached" });
    await shot(page, "checkup");
    clean(faults);
    await context.close();
  });

  await checks.run(
    "the way of a request is above the findings, and what was done opens its flame graph",
    async () => {
      const { context, page, faults, go } = await opened();
      await go(`view=checkup&id=${ZIPKIN}`);
      const verdict = await page.locator("[data-verdict]").textContent();
      assert(/^Requests to envoy \(4242\) take 18\.0 ms on average/.test(verdict), verdict);
      const journey = page.locator("[data-journey]");
      const steps = await journey.locator(".journey-steps li").allTextContents();
      assert(steps.length === 6 && /reviews 4250\s*15\.0 ms\s*inside/.test(steps[3]), steps.join(" | "));
      const bar = await journey.locator(".journey-bar").boundingBox();
      const widest = await journey.locator(".journey-bar .journey-behind").boundingBox();
      const part = widest.width / bar.width;
      assert(part > 0.75 && part < 0.88, `the part of 83 % has ${part} of the bar`);
      const text = await journey.textContent();
      assert(/computing, 800 µs of it Tracing/.test(text), text);
      assert(/waiting for redis-server/.test(text), text);
      // A part of the way opens what its process did most, from the list and from the bar; nobody has the request between.
      const shown = await journey
        .locator(".journey-bar > span")
        .evaluateAll((parts) =>
          parts.map((part) =>
            new URL(part.querySelector("a")?.href ?? "about:blank").searchParams.get("reason"),
          ),
        );
      assert(shown.join() === ",,,sleep,,", `the bar opens ${shown}`);
      const [behind] = await journey.locator(".journey-bar .journey-behind a").all();
      await behind.click();
      await page.waitForURL(/view=task&id=101/);
      assert(new URL(page.url()).searchParams.get("pid") === "4250", page.url());
      await page.goBack();
      await journey.getByRole("link", { name: "request path" }).click();
      await page.waitForURL(/view=task&id=/);
      assert(new URL(page.url()).searchParams.get("pid") === "4242", page.url());
      await page.goBack();
      await journey.getByRole("link", { name: "asleep in a timer" }).click();
      await page.waitForURL(/view=task&id=101/);
      const { searchParams } = new URL(page.url());
      assert(searchParams.get("pid") === "4250", page.url());
      assert(searchParams.get("reason") === "sleep", page.url());
      clean(faults);
      await context.close();
    },
  );

  await checks.run("a check-up is about the sidecar until another process or both are chosen", async () => {
    const { context, page, faults, go } = await opened();
    await go(`view=checkup&id=${ZIPKIN}`);
    const about = page.getByRole("group", { name: "About" });
    const pressed = () => about.locator("[aria-pressed=true]").allTextContents();
    await about.waitFor();
    assert((await pressed()).join() === "Sidecar: envoy 4242", await pressed());
    const asked = (query) => page.waitForRequest((request) => request.url().endsWith(`/diagnosis${query}`));
    for (const [name, query, address] of [
      ["App: pilot-agent 4243", "?pid=4243", /pid=4243/],
      ["Both", "?scope=all", /scope=all/],
      ["Sidecar: envoy 4242", "", /^(?!.*(pid|scope)=)/],
    ]) {
      const request = asked(query);
      await about.getByRole("button", { name }).click();
      await request;
      await page.waitForURL(address);
      // Shown once the answer is there.
      await about.locator("[aria-pressed=true]", { hasText: name }).waitFor();
      assert((await pressed()).join() === name, await pressed());
    }
    await go(`view=compare-checkups&a=${ZIPKIN}&b=${PLAIN}`);
    const of = page.getByRole("group", { name: "CPU of" });
    const all = page.waitForRequest(/compare\?.*scope=all/);
    await of.getByRole("button", { name: "all processes" }).click();
    await all;
    clean(faults);
    await context.close();
  });

  await checks.run("settings are tabs for the keyboard, and their YAML is copied as it is", async () => {
    const { context, page, faults, go } = await opened({
      permissions: ["clipboard-read", "clipboard-write"],
    });
    await go(`view=checkup&id=${ZIPKIN}`);
    const card = page.locator("[data-finding=tracing_share]");
    await card.getByRole("tab", { name: "Istio" }).focus();
    await page.keyboard.press("ArrowRight");
    assert(
      (await card.getByRole("tab", { name: "Envoy" }).getAttribute("aria-selected")) === "true",
      "the arrow does not change the tab",
    );
    await card.getByText("HttpConnectionManager.tracing.random_sampling").waitFor();
    assert(!(await card.getByText("kind: Telemetry").isVisible()), "both tabs are shown");
    await page.keyboard.press("ArrowLeft");
    await card.getByRole("button", { name: "Copy YAML" }).click();
    await card.getByText("Copied").waitFor();
    const yaml = await page.evaluate(() => navigator.clipboard.readText());
    assert(yaml.startsWith("apiVersion: telemetry.istio.io/v1\nkind: Telemetry\n"), yaml);
    await page.getByRole("button", { name: "Copy report" }).click();
    await page.getByText("Report copied").waitFor();
    const report = await page.evaluate(() => navigator.clipboard.readText());
    for (const part of [
      `# Diagnosis of \`envoy\` (pid 4242), check-up ${ZIPKIN}\n`,
      "1. **\\[high\\] Distributed tracing records every request**: 39.9 %",
      "## Limits",
    ])
      assert(report.includes(part), `the report lacks ${part}`);
    clean(faults);
    await context.close();
  });

  await checks.run("rows and columns of the matrix add to 100 %", async () => {
    const { context, page, go } = await opened();
    await go(`view=checkup&id=${ZIPKIN}`);
    const rows = await page.locator(".matrix tbody tr").all();
    const cells = await Promise.all(
      rows.map(async (row) => numbers(await row.locator("td").allTextContents())),
    );
    const total = (list) => list.reduce((a, b) => a + b, 0);
    const sums = cells.pop();
    assert(sums.at(-1) === 100, `everything is ${sums.at(-1)}`);
    // What is shown is rounded to one decimal.
    for (const [i, row] of cells.entries())
      assert(Math.abs(total(row.slice(0, -1)) - row.at(-1)) < 0.4, `row ${i}: ${row}`);
    assert(Math.abs(total(sums.slice(0, -1)) - 100) < 0.6, `columns: ${sums}`);
    assert(Math.abs(total(cells.map((row) => row.at(-1))) - 100) < 0.6, "rows");
    await context.close();
  });

  await checks.run("the matrix is walked by keys, and Enter opens the samples of the cell", async () => {
    const { context, page, faults, go } = await opened();
    await go(`view=checkup&id=${ZIPKIN}`);
    await page.locator(".matrix td[tabindex='0']").focus();
    await page.keyboard.press("ArrowRight");
    const words = await page.locator("[data-matrix-words]").textContent();
    assert(
      /Tracing × Allocation: 11\.3 % \(.* to .*\), 910 samples; rules: tracing_frames/.test(words),
      words,
    );
    assert(
      (await page.locator(".matrix td[tabindex='0']").count()) === 1,
      "more than one cell takes the focus",
    );
    const asked = page.waitForRequest(/\/profile\?.*cell=tracing%3Aallocation/);
    await page.keyboard.press("Enter");
    await asked;
    await page.waitForURL(/view=task&id=100&cell=tracing%3Aallocation/);
    await page.locator("[data-cell-chip]", { hasText: "tracing × allocation" }).waitFor();
    await page.locator(".shown-samples", { hasText: "910 samples" }).waitFor();
    await shot(page, "cell");
    await page.reload();
    await page.locator("[data-cell-chip]").waitFor();
    await page.getByRole("button", { name: "Show all samples, not only tracing × allocation" }).click();
    await page.waitForFunction(() => !location.search.includes("cell="));
    await page.locator(".shown-samples", { hasText: "8,018 samples" }).waitFor();
    clean(faults);
    await context.close();
  });

  await checks.run("sums open rows and columns, and evidence opens its frame in the graph", async () => {
    const { context, page, faults, go } = await opened();
    await go(`view=checkup&id=${ZIPKIN}`);
    await page.locator(".matrix tbody tr").first().locator("td a").last().click();
    await page.waitForURL(/cell=tracing&pid=4242$/);
    await page.goBack();
    await page.locator(".matrix tbody tr").last().locator("td a").first().click();
    await page.waitForURL(/cell=%3Aparse/);
    await page.goBack();
    await page.getByRole("link", { name: /Zipkin::Span/ }).click();
    await page.waitForURL(/search=Envoy.*cell=tracing/);
    assert(
      (await page.locator("[data-search]").inputValue()).includes("Zipkin::Span"),
      "nothing is searched",
    );
    clean(faults);
    await context.close();
  });

  await checks.run("below 60 % of names the page says what to give, and finds nothing", async () => {
    const { context, page, faults, go } = await opened();
    await go("view=diagnosis&id=1");
    const poor = await page.locator("[data-poor]").textContent();
    assert(/Only 40\.0 % of the samples can be diagnosed/.test(poor) && /9e558093aa01/.test(poor), poor);
    await page.getByText("this is not proof that nothing does").waitFor();
    await shot(page, "poor");
    clean(faults);
    await context.close();
  });

  await checks.run("the longest stalls are listed, and all when asked for", async () => {
    const { context, page, faults, go } = await opened();
    await go(`view=checkup&id=${ZIPKIN}`);
    const stalls = page.locator("[data-stalls] li .stall");
    await stalls.first().waitFor();
    assert((await stalls.count()) === 5, `${await stalls.count()} stalls`);
    await page.getByRole("button", { name: "Show all 7" }).click();
    assert((await stalls.count()) === 7, `${await stalls.count()} of all stalls`);
    clean(faults);
    await context.close();
  });

  await checks.run("a check-up is a form again, and a comparison leads to its flame graphs", async () => {
    const { context, page, faults, go } = await opened();
    await go(`view=checkup&id=${ZIPKIN}`);
    await page.getByRole("button", { name: "Edit and run" }).click();
    await page.getByRole("heading", { name: "Edit and run the check-up" }).waitFor();
    await page.getByRole("button", { name: "Start check-up" }).waitFor();
    await page.keyboard.press("Escape");
    await go(`view=compare-checkups&a=${ZIPKIN}&b=${PLAIN}`);
    const link = page.getByRole("link", { name: "Differential flame graph" });
    await link.waitFor();
    const href = await link.getAttribute("href");
    assert(/view=task&id=\d+&base=\d+/.test(href), href);
    assert((await page.title()).includes("Check-ups"), await page.title());
    clean(faults);
    await context.close();
  });

  await checks.run("what a single result cannot tell is unknown with the reason, never zero", async () => {
    const { context, page, faults, go } = await opened();
    await go("view=task&id=4&from=1000&to=3000");
    await page.getByRole("link", { name: "Diagnose this result" }).click();
    await page.waitForURL(/view=diagnosis&id=4&from=1000&to=3000/);
    await page.locator("[data-totals] dd").nth(2).waitFor();
    const totals = await page.locator("[data-totals] dd").allTextContents();
    assert(
      /^about [\d.]+ cores by the samples$/.test(totals[0]) &&
        totals[1] === "unknown" &&
        totals[2] === "unknown",
      totals.join(),
    );
    const why = await page.locator("[data-totals] .unknown-value").first().getAttribute("title");
    assert(/A check-up reads them/.test(why), why);
    for (const part of ["event_loop", "network", "configuration"])
      assert(
        /^Not known\. ./.test(await page.locator(`[data-absent=${part}]`).textContent()),
        `${part} has no reason`,
      );
    const waits = await page.locator(".worker-table tbody tr").first().locator("td").nth(5).textContent();
    assert(waits === "unknown", `unwatched waits are ${waits}`);
    await page.getByRole("button", { name: "Sidecar: envoy 4242" }).click();
    await page.waitForURL(/pid=4242/);
    // The other one can still be chosen.
    await page.getByRole("button", { name: "pilot-agent 4243" }).waitFor();
    const asked = page.waitForRequest(/\/profile\?.*pid=4242/);
    await page.locator(".matrix tbody tr").first().locator("td a").first().click();
    await page.waitForURL(/from=1000&to=3000&cell=.*&pid=4242/);
    await asked;
    await page.getByRole("button", { name: "Show all samples, not only process 4242" }).waitFor();
    clean(faults);
    await context.close();
  });

  await checks.run("a check-up shows its progress and then its verdict", async () => {
    const { context, page, faults, go } = await opened();
    await go("view=processes&q=4242");
    await page.getByRole("button", { name: /^Check-up of envoy/ }).click();
    await openOptions(page);
    await page.fill("#duration", "3");
    await page.getByRole("button", { name: "Start check-up" }).click();
    await page.waitForURL(/view=checkup&id=checkup-/);
    await page.locator("[data-progress]").waitFor();
    assert((await page.locator("[data-progress] tbody tr").count()) === 3, "not every task is shown");
    await page.getByText(/The verdict is here in about \d s/).waitFor();
    await shot(page, "running");
    await page.locator("[data-diagnosis]").waitFor();
    await page.getByRole("heading", { name: "No findings" }).waitFor();
    await page.locator("[data-no-findings]", { hasText: "Not measured: request latency." }).waitFor();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("button", { name: "Really delete" }).click();
    await page.waitForURL(/view=diagnose/);
    await page.locator("[data-checkups] tbody tr").nth(1).waitFor();
    clean(faults);
    await context.close();
  });

  await checks.run("a check-up grows, may end early, and its end is told", async () => {
    const { context, page, faults, go } = await opened();
    await page.addInitScript(() => {
      window.notices = [];
      window.Notification = class {
        static permission = "default";
        static requestPermission = async () => "granted";
        constructor(title, { body }) {
          window.notices.push(`${title}: ${body}`);
        }
      };
    });
    await go("view=processes&q=4242");
    await page.getByRole("button", { name: /^Check-up of envoy/ }).click();
    await openOptions(page);
    await page.fill("#duration", "600");
    await page.getByRole("button", { name: "Start check-up" }).click();
    await page.waitForURL(/view=checkup&id=checkup-/);
    await page.locator("[data-live] [data-verdict]").waitFor();
    assert((await page.title()).startsWith("… envoy · pid 4242 – Check-up"), await page.title());
    await page.locator("[data-enough]", { hasText: /Enough samples: the largest cost, .* ± \d/ }).waitFor();
    await page.getByLabel("Notify me when it has ended").check();
    await shot(page, "live");
    // The end is told on another page as well.
    await page.locator(".rail").getByRole("link", { name: "Pods" }).click();
    await page.waitForURL(/view=pods/);
    for (const task of mock.agent.tasks.values()) {
      if (task.state !== "running" || !task.group?.startsWith("checkup-")) continue;
      mock.agent.finish(task, "finished");
      mock.agent.emit("task", task);
    }
    await page.waitForFunction(() => window.notices.length === 1);
    const [notice] = await page.evaluate(() => window.notices);
    assert(notice.startsWith("The measurement has ended: "), notice);
    await page.goBack();
    await page.waitForURL(/view=checkup/);
    await page.locator("[data-diagnosis]").waitFor();
    assert((await page.locator("[data-live]").count()) === 0, "it still grows");
    assert((await page.title()).startsWith("✓ envoy · pid 4242 – Check-up"), await page.title());
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("button", { name: "Really delete" }).click();
    await page.waitForURL(/view=diagnose/);
    clean(faults);
    await context.close();
  });

  await checks.run("a check-up that has enough may be ended", async () => {
    const { context, page, faults, go } = await opened();
    await go("view=processes&q=4242");
    await page.getByRole("button", { name: /^Check-up of envoy/ }).click();
    await openOptions(page);
    await page.fill("#duration", "600");
    await page.getByRole("button", { name: "Start check-up" }).click();
    await page.getByRole("button", { name: "End it now: enough samples" }).click();
    await page.getByRole("button", { name: "Run again and compare" }).waitFor();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("button", { name: "Really delete" }).click();
    await page.waitForURL(/view=diagnose/);
    clean(faults);
    await context.close();
  });

  await checks.run("running again proves the saving with its significance", async () => {
    const { context, page, faults, go } = await opened();
    await page.route(/\/api\/v1\/checkups$/, async (route) => {
      if (route.request().method() !== "POST") return route.fallback();
      const body = { ...route.request().postDataJSON(), duration_s: 2 };
      return route.continue({ postData: JSON.stringify(body) });
    });
    await go(`view=checkup&id=${ZIPKIN}`);
    // A setting says how it is undone, and is proved once it is applied.
    const undo = await page.locator("[data-undo]").first().textContent();
    assert(/^To undo: kubectl delete /.test(undo), undo);
    await page.getByRole("button", { name: "I applied it: verify" }).first().click();
    await page.waitForURL(new RegExp(`view=compare-checkups&a=${ZIPKIN}&b=checkup-`));
    await page.locator("[data-progress]").waitFor();
    await page.locator("[data-compared]").waitFor();
    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save as picture" }).click();
    const picture = await saved;
    assert(/^checkup-.*\.png$/.test(picture.suggestedFilename()), picture.suggestedFilename());
    const bytes = readFileSync(await picture.path());
    assert(bytes.subarray(1, 4).toString() === "PNG" && bytes.length > 10_000, `${bytes.length} bytes`);
    if (shots !== undefined) await picture.saveAs(`${shots}/diagnose-card.png`);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.getByRole("button", { name: "Copy as Markdown" }).click();
    await page.getByText("Comparison copied").waitFor();
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    assert(new RegExp(`^# checkup-.* against ${ZIPKIN}`).test(copied), copied);
    const verdict = await page.locator("[data-verdict]").textContent();
    assert(/167 µs of CPU before and 89 µs after/.test(verdict), verdict);
    const first = await page.locator("[data-compared] tbody tr").first().textContent();
    assert(/^Tracing66\.8 µs0 ns−66\.8 µs39\.9 %0 %−39\.9.*smaller share p < 0\.0001/.test(first), first);
    const chance = page.locator("[data-compared] tbody tr", { hasText: "no significant change" });
    assert((await chance.count()) > 0, "nothing is left to chance");
    const gone = await page.locator(".group-gone").textContent();
    assert(/Distributed tracing/.test(gone), gone);
    await shot(page, "compared");
    clean(faults);
    await context.close();
  });

  await checks.run(
    "a check-up that failed proves nothing: the page says why and compares nothing",
    async () => {
      const { context, page, go } = await opened();
      await page.route(/\/checkups\/compare/, (route) =>
        route.fulfill({
          status: 409,
          contentType: "application/problem+json",
          body: JSON.stringify({
            detail: "the later check-up failed: on_cpu: no such process: 4242",
            hint: "run the check-up again; after a restart choose the new processes as its target",
            code: "not_comparable",
          }),
        }),
      );
      await go(`view=compare-checkups&a=${ZIPKIN}&b=${PLAIN}`);
      const alert = page.getByRole("alert").filter({ hasText: "Not compared" });
      await alert.getByText("the later check-up failed: on_cpu: no such process: 4242").waitFor();
      await alert.getByText("choose the new processes").waitFor();
      const shown = await page.locator(".group-gone, [data-compared], [data-verdict]").count();
      assert(shown === 0, "something is compared");
      await shot(page, "refused");
      await context.close();
    },
  );

  await checks.run("two check-ups of the list are compared, the earlier one first", async () => {
    const { context, page, faults, go } = await opened();
    await go("view=processes");
    await page.keyboard.press("g");
    await page.keyboard.press("d");
    await page.waitForURL(/view=diagnose/);
    const compare = page.getByRole("button", { name: "Compare two" });
    await page.getByLabel(`Compare ${PLAIN}`).check();
    assert(await compare.isDisabled(), "one can be compared with nothing");
    await page.getByLabel(`Compare ${ZIPKIN}`).check();
    await compare.click();
    await page.waitForURL(new RegExp(`a=${ZIPKIN}&b=${PLAIN}`));
    await page.getByRole("button", { name: "Swap" }).click();
    await page.waitForURL(new RegExp(`a=${PLAIN}&b=${ZIPKIN}`));
    await page.locator(".group-new", { hasText: "Distributed tracing" }).waitFor();
    clean(faults);
    await context.close();
  });

  await checks.run("a check-up that cannot be run again says why, and offers another target", async () => {
    const { context, page, go } = await opened();
    await go(`view=checkup&id=${ZIPKIN}`);
    await page.route(/\/api\/v1\/checkups$/, (route) =>
      route.request().method() === "POST"
        ? route.fulfill({
            status: 422,
            contentType: "application/problem+json",
            body: JSON.stringify({ detail: "no process with pid 4242", code: "invalid_field" }),
          })
        : route.fallback(),
    );
    await page.getByRole("button", { name: "Run again and compare" }).click();
    await page.getByRole("alert").getByText("no process with pid 4242").waitFor();
    await page.getByRole("button", { name: "Check-up of another target" }).click();
    await page.getByRole("button", { name: "Start check-up" }).waitFor();
    await context.close();
  });

  await checks.run("a check-up without diagnosis, and one that is gone, say so", async () => {
    const { context, page, go } = await opened();
    await page.route(/\/checkups\/[^/]+\/diagnosis/, (route) =>
      route.fulfill({
        status: 409,
        contentType: "application/problem+json",
        body: JSON.stringify({ detail: "the check-up has no samples", hint: "Was the target idle?" }),
      }),
    );
    await go(`view=checkup&id=${PLAIN}`);
    await page.getByText("the check-up has no samples").waitFor();
    await page.getByRole("button", { name: "Run again and compare" }).waitFor();
    await go("view=checkup&id=checkup-gone");
    await page.getByText("no check-up checkup-gone").waitFor();
    await context.close();
  });

  await checks.run("printing shows every setting and no button", async () => {
    const { context, page, go } = await opened();
    await go(`view=checkup&id=${ZIPKIN}`);
    await page.emulateMedia({ media: "print" });
    const card = page.locator("[data-finding=tracing_share]");
    assert(await card.getByText("kind: Telemetry").isVisible(), "no Istio setting");
    assert(await card.getByText("HttpConnectionManager.tracing").isVisible(), "no Envoy setting");
    assert(!(await page.getByRole("button", { name: "Copy report" }).isVisible()), "a button on paper");
    assert(!(await page.locator(".rail").isVisible()), "the rail on paper");
    await context.close();
  });
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { SHOTS } = process.env;
  if (SHOTS !== undefined) mkdirSync(SHOTS, { recursive: true });
  const checks = new Checks();
  const mock = await startMock();
  const browser = await launch();
  await diagnoseWalk(checks, browser, mock, SHOTS);
  await browser.close();
  await mock.close();
  checks.finish();
}
