// Every page of the router against a running agent: accessible in every theme, walked by keyboard,
// narrow and zoomed, without a violation of the policy, a foreign request or an error.
// Env as for real.mjs: AGENT_URL, SHOTS (optional); THEMES: names of some, without it all. `inspectPages` is used by the other tests.

import { mkdirSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { launch, openPage } from "./browser.mjs";
import {
  assertFits,
  assertNotBlank,
  assertRowsOnOneLine,
  COLOURS,
  graveFindings,
  walkByKeyboard,
} from "./inspect.mjs";
import { assert, Checks } from "./real.mjs";
import { client, READY, unvisited, visitsOf } from "./visits.mjs";

export const THEMES = [
  { name: "light", media: { colorScheme: "light", forcedColors: "none" } },
  { name: "dark", media: { colorScheme: "dark", forcedColors: "none" } },
  { name: "forced colours", media: { colorScheme: "light", forcedColors: "active" } },
];
const WAIT_MS = 20_000;
/** 1440 pixels at a zoom of 200 % are laid out as half as many. */
const ZOOMED = { viewport: { width: 720, height: 450 }, deviceScaleFactor: 2 };
const NARROW = { viewport: { width: 320, height: 640 } };

/** Opens the page with its token; visits follow in the same tab. */
async function open(browser, agentUrl, options) {
  const { origin } = new URL(agentUrl);
  const opened = await openPage(browser, origin, options);
  opened.page.setDefaultTimeout(WAIT_MS);
  await opened.page.goto(agentUrl);
  await opened.page.waitForSelector(READY);
  return { ...opened, origin };
}

/** Goes to a page and waits until it shows its data and has stopped moving. */
export async function visit(page, origin, { query, dialog }) {
  await page.goto(`${origin}/?${query}`);
  await page.waitForSelector(dialog ? "dialog[open]" : READY);
  await page.waitForFunction(() => document.querySelector(".spinner") === null);
  await page.evaluate(() => document.fonts.ready);
  await painted(page);
}

/** Two frames: what was asked for before is painted. */
async function painted(page) {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

/**
 * An open page is accessible in every theme: a check for each, the first with all rules, the others with those of colours.
 * `name` makes the name of a check from that of a theme; `done` is called in each theme.
 */
export async function accessibleInThemes(
  checks,
  page,
  { name, open, themes = THEMES, done = async () => {} },
) {
  for (const [index, theme] of themes.entries())
    await checks.run(name(theme.name), async () => {
      if (index === 0) await open();
      await page.emulateMedia(theme.media);
      await painted(page);
      const findings = await graveFindings(page, index === 0 ? {} : COLOURS);
      assert(findings.length === 0, findings.join("; "));
      await done(theme.name.replace(" ", "-"));
    });
  await page.emulateMedia(themes[0].media);
}

async function eachVisit(checks, visits, what, check) {
  for (const each of visits) await checks.run(`${what}: ${each.name}`, () => check(each));
}

/** `missing`: views for which this agent has no data. */
export async function inspectPages(checks, { agentUrl, shots, label = "", themes = THEMES, missing = [] }) {
  const visits = await visitsOf(client(agentUrl));
  const prefix = label === "" ? "" : `${label}, `;
  await checks.run(`${prefix}every view of the router is visited`, async () => {
    const left = unvisited(visits).filter((view) => !missing.includes(view));
    assert(left.length === 0, `no visit opens: ${left.join(", ")}`);
  });
  const browser = await launch();
  const free = await open(browser, agentUrl, { bypassCSP: true });
  for (const each of visits)
    await accessibleInThemes(checks, free.page, {
      name: (theme) => `${prefix}accessible (${theme}): ${each.name}`,
      open: () => visit(free.page, free.origin, each),
      themes,
      done: async (theme) => {
        if (shots !== undefined)
          await free.page.screenshot({ path: `${shots}/${label}${label && "-"}${each.name}-${theme}.png` });
      },
    });
  await free.context.close();
  const plain = await open(browser, agentUrl, {});
  await eachVisit(checks, visits, `${prefix}keyboard walk, no fault`, async (each) => {
    plain.faults.length = 0;
    await visit(plain.page, plain.origin, each);
    await assertNotBlank(plain.page);
    await assertRowsOnOneLine(plain.page);
    await walkByKeyboard(plain.page);
    // A process may have ended when its names are asked for.
    const gone = each.fails || ["pods", "process"].includes(each.name);
    const faults = plain.faults.filter((fault) => !(gone && /status of 404/.test(fault)));
    assert(faults.length === 0, faults.join(" | "));
  });
  await plain.context.close();
  for (const [name, options, width] of [
    ["320 pixels wide", NARROW, 320],
    ["at a zoom of 200 %", ZOOMED, 720],
  ]) {
    const { context, page, origin } = await open(browser, agentUrl, options);
    await eachVisit(checks, visits, `${prefix}${name}`, async (each) => {
      await visit(page, origin, each);
      await assertFits(page, width);
    });
    await context.close();
  }
  await browser.close();
  return visits;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { AGENT_URL, SHOTS, LABEL, MISSING, THEMES: names } = process.env;
  if (AGENT_URL === undefined) {
    console.error("AGENT_URL must be set");
    process.exit(2);
  }
  if (SHOTS !== undefined) mkdirSync(SHOTS, { recursive: true });
  const checks = new Checks();
  await inspectPages(checks, {
    agentUrl: AGENT_URL,
    shots: SHOTS,
    label: LABEL ?? "",
    themes: THEMES.filter(({ name }) => names === undefined || names.split(",").includes(name)),
    missing: (MISSING ?? "").split(",").filter((view) => view !== ""),
  });
  checks.finish();
}
