// Screenshots of every page in light and dark, for looking at them. Env SHOTS: where to put them.

import { mkdirSync } from "node:fs";
import { launch, openPage } from "./browser.mjs";
import { startMock } from "./mock-server.mjs";

const DIR = process.env.SHOTS ?? "test-results";
mkdirSync(DIR, { recursive: true });
const mock = await startMock();
for (const kind of ["on_cpu", "off_cpu", "network"])
  mock.agent.create({ kind, target: { pids: [4242] }, duration_s: 60, group: "check-1" });
const browser = await launch();

const PAGES = [
  ["overview", "view=overview"],
  ["processes", "view=processes"],
  ["processes-grouped", "view=processes&group=1"],
  ["create", "view=processes&create=1&pids=4242"],
  ["tasks", "view=tasks"],
  ["task", "view=task&id=4"],
  ["task-icicle-search", "view=task&id=1&layout=icicle&search=Http"],
  ["task-table", "view=task&id=1&tab=table"],
  ["task-inverted", "view=task&id=4&layout=inverted&panel=1"],
  ["task-sandwich", "view=task&id=4&layout=sandwich"],
  ["task-modules", "view=task&id=1&colour=module&layout=icicle&x=p"],
  ["task-running", "view=task&id=6"],
  ["task-failed", "view=task&id=2"],
  ["task-empty", "view=task&id=5"],
  ["create-network", "view=processes&create=1&pids=4242"],
  ["network-task", "view=task&id=7"],
  ["network", "view=network"],
  ["network-pod", "view=network&net=map"],
  ["network-picked", "view=task&id=7&node=p:4242-156954"],
  ["create-requests", "view=processes&create=1&pids=4242"],
  ["requests", "view=task&id=8"],
  ["requests-trouble", "view=task&id=9&sort=-errors"],
  ["requests-samples", "view=task&id=9&requests=samples"],
  ["requests-sidecars", "view=task&id=8&requests=sidecars"],
  ["requests-logged", "view=task&id=11"],
  ["requests-access-logs", "view=task&id=11&requests=access_logs"],
  ["requests-connections", "view=task&id=8&requests=connections&net=table"],
  ["requests-nothing", "view=task&id=10"],
  ["requests-operation", "view=task&id=9"],
  ["requests-sample", "view=task&id=9&requests=samples"],
  ["edge", "view=edge&id=7&edge=91a4dc2f61cb0ec5"],
  ["network-edge", "view=network&net=table&edge=91a4dc2f61cb0ec5"],
  ["node", "view=node"],
  ["pods", "view=pods"],
  ["process", "view=pods&process=4242-156954"],
  ["create-checkup", "view=pods&create=1&checkup=1&pod=4026532201"],
  ["group", "view=group&id=check-1"],
  ["diagnose", "view=diagnose"],
  ["checkup", "view=checkup&id=checkup-20261122-070000-zip"],
  ["diagnosis-poor", "view=diagnosis&id=1"],
  ["diagnosis-task", "view=diagnosis&id=4"],
  ["compare-checkups", "view=compare-checkups&a=checkup-20261122-070000-zip&b=checkup-20261122-080000-off"],
  ["cell", "view=task&id=100&cell=tracing:allocation"],
  ["palette", "view=pods"],
];

const only = process.argv[2];
for (const colorScheme of ["light", "dark"]) {
  const { context, page, faults } = await openPage(browser, mock.origin, { colorScheme });
  await page.goto(mock.url);
  await page.waitForSelector(".overview-table, [role=grid]");
  for (const [name, query] of PAGES) {
    if (only !== undefined && !name.includes(only)) continue;
    await page.goto(`${mock.origin}/?${query}`);
    await page.waitForTimeout(name === "processes" ? 7000 : 1200);
    if (name === "create-network") await page.getByLabel("Network", { exact: true }).check();
    if (name === "create-requests") {
      await page.getByLabel("Requests", { exact: true }).check();
      await page.getByLabel("TLS libraries").check();
    }
    if (name === "requests-operation" || name === "requests-sample")
      await page.locator("[role=row][data-row='2']").click();
    if (name === "palette") {
      await page.keyboard.press("Control+k");
      await page.fill(".palette-field", "envoy");
    }
    if (name === "task") await page.mouse.move(500, 620);
    await page.waitForTimeout(250);
    await page.screenshot({ path: `${DIR}/${name}-${colorScheme}.png` });
  }
  if (only === undefined || only === "help") {
    await page.keyboard.press("?");
    await page.waitForTimeout(200);
    await page.screenshot({ path: `${DIR}/help-${colorScheme}.png` });
  }
  await context.close();
  const { context: locked, page: door } = await openPage(browser, mock.origin, { colorScheme });
  await door.goto(`${mock.origin}/#token=wrong`);
  await door.waitForSelector(".token-page");
  await door.screenshot({ path: `${DIR}/token-${colorScheme}.png` });
  await locked.close();
  for (const fault of faults) console.log(fault);
}
await browser.close();
await mock.close();
