// From the first page to the cause, counted in clicks, against a running agent and two meshes with a trouble each: one whose app
// sleeps, one whose sidecar computes. Env: AGENT_URL, CASES (JSON: [{pod, words}]: the title of the row, and what the verdict has to
// say), GONE (instead of CASES: the id of a check-up whose processes have ended since), SHOTS (optional).
// Prints "checkup ID" for each, and "N passed, M failed"; exit code 1 on failure.

import { mkdirSync } from "node:fs";
import { launch, openPage } from "./browser.mjs";
import { assert, Checks } from "./real.mjs";

const WAIT_MS = 60_000;
/** From the first page, as the review of the page asks for. */
const MOST_CLICKS = 2;
const { AGENT_URL, CASES, GONE, SHOTS } = process.env;
if (AGENT_URL === undefined || (CASES === undefined) === (GONE === undefined)) {
  console.error("AGENT_URL and one of CASES and GONE must be set");
  process.exit(2);
}
if (SHOTS !== undefined) mkdirSync(SHOTS, { recursive: true });

const checks = new Checks();
const { origin } = new URL(AGENT_URL);
const browser = await launch();
const { page, faults } = await openPage(browser, origin);
page.setDefaultTimeout(WAIT_MS);
await page.goto(AGENT_URL);
await page.waitForSelector(".overview-page h1");
const shot = async (name) => {
  if (SHOTS !== undefined) await page.screenshot({ path: `${SHOTS}/journey-${name}.png` });
};

/** Started one after the other, so that they measure beside each other. */
const started = [];
for (const { pod, net, words } of JSON.parse(CASES ?? "[]"))
  await checks.run(`${pod}: one click on the first page checks it up`, async () => {
    await page.goto(`${origin}/`);
    // Other tests may have pods of the same name.
    const row = page.getByRole("row").filter({ hasText: `net ${net} ` });
    await row.getByRole("button", { name: `Check up ${pod}`, exact: true }).click();
    await page.waitForURL(/view=checkup&id=checkup-/);
    const id = new URL(page.url()).searchParams.get("id");
    started.push({ pod, words, id, clicks: 1 });
    console.log(`checkup ${id}`);
  });

for (const { pod, words, id, clicks } of started)
  await checks.run(`${pod}: the verdict names the layer and the cause`, async () => {
    await page.goto(`${origin}/?view=checkup&id=${id}`);
    await page.locator(".state-chip.state-finished").first().waitFor();
    const verdict = await page.locator("[data-verdict]").textContent();
    const [first] = verdict.split(")").filter((part) => part.includes(" ms in ") || part.includes(" s in "));
    assert(first?.includes(words), `no "${words}" in front: ${verdict}`);
    assert(clicks <= MOST_CLICKS, `${clicks} clicks`);
    await shot(id);
    // The part of the way with most of the time opens its flame graph.
    const parts = await page
      .locator(".journey-bar > span")
      .evaluateAll((all) =>
        all.map((part) => ({ grow: Number(part.style.flexGrow), link: part.querySelector("a") !== null })),
      );
    const most = parts.reduce((a, b) => (a.grow > b.grow ? a : b));
    assert(most.link, `the largest part is no link: ${JSON.stringify(parts)}, ${verdict}`);
    await page
      .locator(".journey-bar a")
      .nth(parts.filter(({ link }) => link).indexOf(most))
      .click();
    await page.waitForURL(/view=task&id=\d+.*pid=\d+/);
    await page.getByRole("tree").waitFor();
    await shot(`${id}-flame`);
  });

if (GONE !== undefined)
  await checks.run(
    "a check-up whose processes have ended is compared with nothing, and the page says why",
    async () => {
      await page.goto(`${origin}/?view=checkup&id=${GONE}`);
      await page.getByRole("button", { name: "Run again and compare" }).click();
      const said = await page.getByRole("alert").first().textContent();
      assert(/ended|no process|not running|no such process|gone/.test(said), said);
      assert((await page.locator("[data-verdict]").count()) === 0, "it was compared");
      await shot("gone");
    },
  );

await checks.run("no console error, exception, CSP violation or foreign request", async () => {
  // What was refused is an answer of 4xx, which the browser reports.
  const real = faults.filter((fault) => GONE === undefined || !/Failed to load resource/.test(fault));
  assert(real.length === 0, real.join(" | "));
});

await browser.close();
checks.finish();
