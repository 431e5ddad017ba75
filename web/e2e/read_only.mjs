// With the read-only token: every page shows what it has, offers no change and asks for none.

import { launch, openPage } from "./browser.mjs";
import { assertFits, assertNotBlank } from "./inspect.mjs";
import { startMock } from "./mock-server.mjs";
import { visit } from "./pages.mjs";
import { assert } from "./real.mjs";
import { client, READY, visitsOf } from "./visits.mjs";

/** What controls are called that change something. */
const CHANGES = [
  /^New task$/,
  /^(New )?[Cc]heck-up(…| of .*)?$/,
  /^Profile(…| .*)$/,
  /^Stop( all)?$/,
  /^Delete$/,
  /^Import…$/,
  /^Run again and compare$/,
  /^Download$/,
  /^Measure runs while this page is open/,
];

const controls = (page) =>
  page.evaluate(() =>
    [...document.querySelectorAll("button, label")].map(
      (control) => control.getAttribute("aria-label") ?? control.textContent.trim(),
    ),
  );

const changes = (names) => names.filter((name) => CHANGES.some((change) => change.test(name)));

/** Visits pages and hands on the controls that change something, and the requests that did not only ask. */
async function lookAround(browser, role, wanted, each) {
  const mock = await startMock(0, { role });
  const visits = (await visitsOf(client(mock.url))).filter((one) => !one.dialog && wanted(one));
  const { context, page } = await openPage(browser, mock.origin);
  const sent = [];
  page.on("request", (request) => {
    if (request.method() !== "GET") sent.push(`${request.method()} ${request.url()}`);
  });
  await page.goto(mock.url);
  await page.waitForSelector(READY);
  for (const one of visits) {
    await visit(page, mock.origin, one);
    await each(page, one, changes(await controls(page)), sent);
  }
  return { mock, context, page, sent };
}

export async function inspectReadOnly(checks, shots) {
  const browser = await launch();
  const known = new Set();
  // One page of each view, and a task that can be stopped.
  const views = new Set();
  const isWanted = ({ view, name }) => name === "task-running" || (!views.has(view) && views.add(view));
  const full = await lookAround(browser, "full", isWanted, (_page, _visit, found) => {
    for (const name of found) known.add(CHANGES.findIndex((change) => change.test(name)));
  });
  await checks.run("each control that changes something is on a page", () => {
    const unseen = CHANGES.filter((_, index) => !known.has(index));
    assert(unseen.length === 0, `no page has ${unseen.join(", ")}`);
  });
  await full.context.close();
  await full.mock.close();

  const look = await lookAround(
    browser,
    "read_only",
    () => true,
    (page, { name }, found, sent) =>
      checks.run(`read-only: ${name}`, async () => {
        await page.locator("[data-read-only]").getByText("read-only").waitFor();
        const offered = changes(await controls(page));
        assert(offered.length === 0, `offers ${offered.join(", ")} (before: ${found.join(", ")})`);
        assert(sent.length === 0, sent.join(", "));
        await assertNotBlank(page);
        await assertFits(page, 1440);
        if (shots !== undefined) await page.screenshot({ path: `${shots}/read-only-${name}.png` });
      }),
  );
  await checks.run("read-only: neither keys nor an address open what starts a task", async () => {
    const { page, mock } = look;
    await page.goto(`${mock.origin}/?view=processes&create=1`);
    await page.locator("[data-read-only]").waitFor();
    await page.keyboard.press("n");
    await page.keyboard.press("Control+k");
    await page.locator(".palette").waitFor();
    const text = await page.locator(".palette").textContent();
    assert(!text.includes("New task") && text.includes("Keys and help"), text);
    await page.keyboard.press("Escape");
    assert((await page.locator("dialog[open]").count()) === 0, "a dialog is open");
  });
  await look.context.close();
  await look.mock.close();
  await browser.close();
}
