// What only a stand-in can show: hostile text on every page, and every page while the agent answers
// late, with an error, or not at all.

import { launch, openPage, resize } from "./browser.mjs";
import { assertFits, assertNotBlank, assertOnlyText } from "./inspect.mjs";
import { startMock } from "./mock-server.mjs";
import { visit } from "./pages.mjs";
import { inspectReadOnly } from "./read_only.mjs";
import { assert } from "./real.mjs";
import { client, READY, visitsOf } from "./visits.mjs";

const API = /\/api\/v1\/(?!meta)/;

async function hostileText(checks, browser, shots) {
  const mock = await startMock(0, { hostile: true });
  const visits = await visitsOf(client(mock.url));
  const { context, page, faults } = await openPage(browser, mock.origin);
  await page.goto(mock.url);
  await page.waitForSelector(READY);
  for (const each of visits) {
    await checks.run(`hostile text stays text: ${each.name}`, async () => {
      faults.length = 0;
      await visit(page, mock.origin, each);
      await assertOnlyText(page);
      for (const width of [320, 720, 1440]) {
        await resize(page, width, 900);
        await assertFits(page, width);
      }
      if (shots !== undefined) await page.screenshot({ path: `${shots}/hostile-${each.name}.png` });
      const real = faults.filter((fault) => !(each.fails && /status of 404/.test(fault)));
      assert(real.length === 0, real.join(" | "));
    });
  }
  await context.close();
  await mock.close();
}

const problem = (status, code, detail) => ({
  status,
  contentType: "application/problem+json",
  body: JSON.stringify({ type: "about:blank", title: code, status, detail, code }),
});

/** Every call but the first ones is answered by `answer`; the page must say what it was. */
async function whileAnswering(checks, browser, visits, mock, { name, answer, says }) {
  const { context, page } = await openPage(browser, mock.origin);
  await page.goto(mock.url);
  await page.waitForSelector(READY);
  await page.route(API, answer);
  for (const each of visits) {
    await checks.run(`${name}: ${each.name}`, async () => {
      await page.goto(`${mock.origin}/?${each.query}`);
      await page.getByText(says).first().waitFor({ timeout: 10_000 });
      await assertNotBlank(page);
    });
  }
  await context.close();
}

async function troubledAgent(checks, browser) {
  const mock = await startMock();
  const visits = (await visitsOf(client(mock.url))).filter(({ dialog, fails }) => !dialog && !fails);
  const broken = "the store cannot be read (for this test)";
  const refused = "this page may not ask (for this test)";
  await whileAnswering(checks, browser, visits, mock, {
    name: "an error of the agent is told",
    answer: (route) => route.fulfill(problem(500, "internal", broken)),
    says: broken,
  });
  await whileAnswering(checks, browser, visits.slice(0, 1), mock, {
    name: "a refusal of the agent is told",
    answer: (route) => route.fulfill(problem(403, "foreign_origin", refused)),
    says: refused,
  });
  await whileAnswering(checks, browser, visits, mock, {
    name: "an agent that does not answer is told",
    answer: (route) => route.abort(),
    says: "The agent does not answer.",
  });
  await whileAnswering(checks, browser, visits, mock, {
    name: "waiting is shown",
    answer: () => {},
    says: /loading|waiting|reading/i,
  });
  await checks.run("a task that is refused says why, next to the button", async () => {
    const { context, page } = await openPage(browser, mock.origin);
    await page.goto(mock.url);
    await page.waitForSelector(READY);
    const detail = "this agent shows demo data and records nothing";
    await page.route(/\/api\/v1\/tasks$/, (route) =>
      route.request().method() === "POST"
        ? route.fulfill(problem(409, "tasks_refused", detail))
        : route.fallback(),
    );
    await page.goto(`${mock.origin}/?view=processes&create=1&pids=4242`);
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.locator("dialog[open]").getByText(detail).waitFor();
    await context.close();
  });
  await mock.close();
}

async function dialogs(checks, browser) {
  const mock = await startMock();
  const { context, page } = await openPage(browser, mock.origin);
  await page.goto(mock.url);
  await page.waitForSelector(READY);
  for (const [name, label] of [
    ["help", "Keys and help"],
    ["create", "New task"],
  ]) {
    await checks.run(`the dialog keeps the focus and gives it back: ${name}`, async () => {
      const opener = page.getByRole("button", { name: label, exact: true }).first();
      await opener.focus();
      await page.keyboard.press("Enter");
      await page.waitForSelector("dialog[open]");
      for (let press = 0; press < 60; press += 1) {
        await page.keyboard.press("Tab");
        const outside = await page.evaluate(() => {
          const active = document.activeElement;
          return active !== null && active !== document.body && active.closest("dialog[open]") === null;
        });
        assert(!outside, `Tab leaves the dialog after ${press + 1} presses`);
      }
      await page.keyboard.press("Escape");
      await page.waitForFunction(() => document.querySelector("dialog[open]") === null);
      const back = await opener.evaluate((each) => each === document.activeElement);
      assert(back, "the focus does not come back to what opened the dialog");
    });
  }
  await context.close();
  await mock.close();
}

async function imports(checks, browser, shots) {
  const mock = await startMock();
  const { context, page } = await openPage(browser, mock.origin);
  await page.goto(mock.url);
  await page.waitForSelector(READY);
  await page.goto(`${mock.origin}/?view=tasks`);
  const give = (name, text) =>
    page.setInputFiles("[data-import-file]", { name, mimeType: "text/plain", buffer: Buffer.from(text) });
  await checks.run("a file that is not a profile is refused with the reason", async () => {
    await page.waitForSelector("[data-import-file]", { state: "attached" });
    await give("<b>letter.txt", "hello");
    await page.getByRole("alert").getByText("<b>letter.txt: line 1: no count follows the stack").waitFor();
    if (shots !== undefined) await page.screenshot({ path: `${shots}/import-refused.png` });
  });
  await checks.run("a given file opens as a task that says what the file does not", async () => {
    await give("before.folded", "main;work 10\n");
    await page.waitForURL(/view=task&id=/);
    await page.getByRole("heading", { name: /before\.folded/ }).waitFor();
    await page.getByText("The file does not say when samples were taken.").waitFor();
    await page.locator(".quality-chip > button").click();
    assert((await page.getByText("not in the file").count()) > 0, "the unknown is not said");
    if (shots !== undefined) await page.screenshot({ path: `${shots}/imported.png` });
  });
  await checks.run("a file can be dropped on the task list", async () => {
    await page.goto(`${mock.origin}/?view=tasks`);
    await page.waitForSelector("[data-import-file]", { state: "attached" });
    const transfer = await page.evaluateHandle(() => {
      const data = new DataTransfer();
      data.items.add(new File(["main;work 3\n"], "dropped.folded"));
      return data;
    });
    await page.dispatchEvent(".list-page", "dragover", { dataTransfer: transfer });
    await page.getByText("Drop a pprof file").waitFor();
    await page.dispatchEvent(".list-page", "drop", { dataTransfer: transfer });
    await page.getByRole("heading", { name: /dropped\.folded/ }).waitFor();
  });
  await context.close();
  await mock.close();
}

export async function inspectStates(checks, shots) {
  const browser = await launch();
  await hostileText(checks, browser, shots);
  await troubledAgent(checks, browser);
  await dialogs(checks, browser);
  await imports(checks, browser, shots);
  await browser.close();
  await inspectReadOnly(checks, shots);
}
