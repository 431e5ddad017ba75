// The frame around the pages against a running agent with a pod: a program called envoy and its application, both
// busy, in a network namespace of their own.
// Env: AGENT_URL, SIDECAR_PID, APP_PID, NAMESPACE (its number), SHOTS (optional). Prints "N passed, M failed"; exit code 1 on failure.

import { mkdirSync } from "node:fs";
import { launch, openOptions, openPage } from "./browser.mjs";
import { address, assert, Checks } from "./real.mjs";

const WAIT_MS = 30_000;
const { AGENT_URL, SIDECAR_PID, APP_PID, NAMESPACE, SHOTS } = process.env;
if ([AGENT_URL, SIDECAR_PID, APP_PID, NAMESPACE].includes(undefined)) {
  console.error("AGENT_URL, SIDECAR_PID, APP_PID and NAMESPACE must be set");
  process.exit(2);
}
if (SHOTS !== undefined) mkdirSync(SHOTS, { recursive: true });

/** The pod alone with one of its processes: other processes of the machine may have the number in theirs. */
const inPod = (pid) => `${origin}/?view=pods&q=${NAMESPACE}%20${pid}`;

const checks = new Checks();
const { origin } = new URL(AGENT_URL);
const browser = await launch();
const { page, faults } = await openPage(browser, origin);
page.setDefaultTimeout(WAIT_MS);
const shot = async (name) => {
  if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/shell-${name}.png` });
};
await page.goto(AGENT_URL);
await page.waitForSelector(".overview-page h1");

await checks.run("the pod shows what its sidecar uses of its CPU", async () => {
  await page.goto(inPod(APP_PID));
  await page.getByText(APP_PID, { exact: true }).first().waitFor();
  const line = page.locator("[data-sidecar-line]").first();
  // Both spin, so that each has about half, however little CPU this machine gives them.
  await page.waitForFunction(() => {
    const found = /sidecar uses ([\d.]+) of ([\d.]+) cores \((\d+) %\)/.exec(
      document.querySelector("[data-sidecar-line]")?.textContent ?? "",
    );
    return found !== null && Number(found[2]) > 0.1 && Number(found[3]) > 20 && Number(found[3]) < 80;
  });
  assert((await page.locator(".role-app").count()) === 1, `no application: ${await line.textContent()}`);
  await page.goto(inPod(SIDECAR_PID));
  await page.locator(".role-sidecar").first().waitFor();
  await shot("1-pods");
});

await checks.run("the names of its profile are foretold from its file", async () => {
  await page
    .getByRole("button", { name: /^Names: / })
    .first()
    .click();
  await page.locator(".process-panel").getByText("build-id").first().waitFor();
  const text = await page.locator(".process-panel").textContent();
  assert(/On-CPU\s*possible/.test(text), `the kinds of task: ${text.slice(0, 400)}`);
  await shot("2-process");
  await page.keyboard.press("Escape");
});

let checkup = "";
await checks.run("a check-up of the pod runs three tasks to their end", async () => {
  await page.goto(inPod(APP_PID));
  await page.getByRole("button", { name: "Check-up…" }).first().click();
  await openOptions(page);
  await page.fill("#duration", "4");
  await page
    .locator("[data-estimate]")
    .getByText(/About [\d,]+ samples .* reads 10 ±/)
    .first()
    .waitFor();
  await shot("3-create");
  await page.getByRole("button", { name: "Start check-up" }).click();
  await page.waitForURL(/view=checkup&id=checkup-/);
  checkup = await address(page);
  await page.locator("[data-progress] tbody tr").nth(2).waitFor();
  assert((await page.locator("[data-progress] .field-error").count()) === 0, "not all were started");
  await page.getByRole("link", { name: "its tasks" }).click();
  await page.locator(".group-card").nth(2).waitFor();
});

await checks.run(
  "programs and maps in the kernel are shown while they run, with the time of each run",
  async () => {
    const group = await address(page);
    await page.goto(`${origin}/?view=node`);
    await page.locator("td:text-is('on_cpu')").first().waitFor();
    await page.getByLabel(/Measure runs while this page is open/).check();
    await page.waitForFunction(() =>
      [...document.querySelectorAll("tr")].some((row) => /^on_cpu.*\d\s(ns|µs)/.test(row.textContent)),
    );
    assert((await page.locator("meter").count()) > 3, "no fill of maps");
    await page.getByText("stack_tables").waitFor();
    await page.getByText("data_dir").waitFor();
    await shot("4-node");
    await page.goto(group);
  },
);

await checks.run("the check-up ends, with waits, requests and samples beside each other", async () => {
  const cards = page.locator(".group-card");
  await page
    .waitForFunction(() => document.querySelectorAll(".group-card .state-finished").length === 3)
    .catch(async () => assert(false, `not all have finished: ${(await cards.allTextContents()).join("; ")}`));
  const samples = Number(
    (await page.locator(".group-card").first().locator("dd").first().textContent()).replace(/\D/g, ""),
  );
  assert(samples > 20, `${samples} samples of two programs that spin`);
  await page.getByText("Lost pieces", { exact: true }).waitFor();
  await shot("5-checkup");
  await page.getByRole("link", { name: "Open the flame graph" }).first().click();
  await page.locator(".flame-canvas").waitFor();
});

await checks.run("its verdict shares out every sample, and a cell opens its samples alone", async () => {
  await page.goto(checkup);
  await page.locator("[data-diagnosis]").waitFor();
  assert(((await page.locator("[data-verdict]").textContent()) ?? "").length > 10, "no verdict");
  const all = await page.locator(".matrix tbody tr").last().locator("td").last().textContent();
  assert(all === "100.0", `the cells add to ${all}`);
  await shot("6-diagnosis");
  await page.locator(".matrix tbody tr").first().locator("td a").last().click();
  await page.waitForURL(/view=task&id=.*cell=/);
  await page.locator("[data-cell-chip]").waitFor();
  await page.locator(".flame-canvas").waitFor();
});

await checks.run("the support bundle is saved", async () => {
  await page.goto(`${origin}/?view=node`);
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Download", exact: true }).click(),
  ]);
  assert(download.suggestedFilename().endsWith(".tar.gz"), download.suggestedFilename());
});

await checks.run("the palette finds the process", async () => {
  await page.keyboard.press("Control+k");
  await page.fill(".palette-field", `shares-app ${APP_PID} process`);
  await page.keyboard.press("Enter");
  await page.waitForURL(new RegExp(`process=${APP_PID}-`));
  await page.locator(".process-panel").getByText("Threads (").waitFor();
});

await checks.run("no console error, exception, CSP violation or foreign request", async () => {
  // The lists of the node have processes of everybody, and one may have ended before its names were asked for.
  const ended = /status of 404 .*\/processes\/\d+-\d+\/symbols/;
  const real = faults.filter((fault) => !ended.test(fault));
  assert(real.length === 0, real.join(" | "));
});

await browser.close();
checks.finish();
