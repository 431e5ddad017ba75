// The comparison page and the views over time against a running agent with two tasks whose
// difference is known. Env: AGENT_URL, BASE and TASK (ids), THREAD (of TASK), SHOTS (folder).

import { launch, openPage } from "./browser.mjs";
import { assert, Checks } from "./real.mjs";

const WAIT_MS = 20_000;
const { AGENT_URL, BASE, TASK, THREAD, SHOTS } = process.env;
const { origin } = new URL(AGENT_URL);
const checks = new Checks();
const browser = await launch();
const { page, faults } = await openPage(browser, origin);
page.setDefaultTimeout(WAIT_MS);
const shot = async (name) => {
  if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/${name}.png` });
};
await page.goto(AGENT_URL);
await page.waitForSelector(".overview-page h1");

await checks.run("the function that changed most comes first and is significant", async () => {
  await page.goto(`${origin}/?view=task&id=${TASK}&tid=${THREAD}&base=${BASE}&tab=table`);
  const first = page.locator("[data-change-table] [data-row='0']");
  await first.waitFor();
  const text = await first.textContent();
  assert(/hot_sixty/.test(text) && /−4\d|−5\d/.test(text), text);
  assert(/significant/.test(text), text);
  await shot("compare-table");
});
await checks.run("its frame tells both sides", async () => {
  await page.goto(`${origin}/?view=task&id=${TASK}&tid=${THREAD}&base=${BASE}`);
  await page.locator("[role=tree]").focus();
  // Up the heaviest children to the leaf.
  for (let step = 0; step < 12; step += 1) await page.keyboard.press("ArrowUp");
  const item = await page.locator("#diff-item").textContent();
  assert(/^\S+, total [\d.< ]+ % → [\d.< ]+ % \(/.test(item), item);
  await shot("compare-graph");
});
await checks.run("sub-second map, threads and time order of real samples", async () => {
  for (const time of ["subsecond", "threads"]) {
    await page.goto(`${origin}/?view=task&id=${TASK}&time=${time}`);
    await page.waitForFunction(() => (document.querySelector(".heat-canvas")?.clientWidth ?? 0) > 50);
    // The picture is there before its numbers.
    await page
      .locator(".heat-caption")
      .filter({ hasText: /[1-9][\d,]* samples/ })
      .waitFor();
    await shot(`time-${time}`);
  }
  await page.goto(`${origin}/?view=task&id=${TASK}&tab=order`);
  await page.locator(".order-canvas").waitFor();
  await page.locator(".order-scroll").focus();
  let item = "";
  // The first columns may have no sample.
  for (let press = 0; press < 40 && !/samples?, [\d.]+ s to [\d.]+ s/.test(item); press += 1) {
    await page.keyboard.press("ArrowRight");
    await page.waitForTimeout(100);
    item = await page.locator("[data-order-item]").textContent();
  }
  assert(/samples?, [\d.]+ s to [\d.]+ s/.test(item), item);
  await shot("time-order");
});
await checks.run("no console error, exception, CSP violation or foreign request", async () => {
  assert(faults.length === 0, faults.join(" | "));
});
await browser.close();
checks.finish();
