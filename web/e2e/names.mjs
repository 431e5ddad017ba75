// Names of containers where they are shown, and pods as targets, against the stand-in.

import { openPage } from "./browser.mjs";
import { SIDECAR } from "./mock_names.mjs";
import { assert } from "./real.mjs";

const POD = "checkout-7d9f8b6c5-x2x9z";
const PROXY = `shop/${POD}/istio-proxy`;

export async function namesWalk(checks, browser, mock) {
  const { context, page, faults } = await openPage(browser, mock.origin, {
    viewport: { width: 1280, height: 800 },
  });
  await page.goto(mock.url);
  await page.waitForSelector(".overview-table, [role=grid]");
  const open = (query) => page.goto(`${mock.origin}/?${query}`);

  await checks.run("a container has its name and its id in lists", async () => {
    await open(`view=processes&q=${POD}+envoy+sidecar`);
    await page.getByText("No process matches the filter").waitFor();
    await open(`view=processes&q=${POD}+usr/local/bin/envoy`);
    const cell = page.locator("[role=row] [title*='container ']").first();
    await cell.waitFor();
    assert((await cell.textContent()) === PROXY, `the cell says ${await cell.textContent()}`);
    const tip = await cell.getAttribute("title");
    for (const part of [SIDECAR, "proxyv2", "Deployment checkout", "named by the Kubernetes API"])
      assert(tip.includes(part), `the title of the cell is without ${part}: ${tip}`);
    await open("view=pods&q=demo-redis-1");
    await page.getByText("demo-redis-1").first().waitFor();
  });

  await checks.run("an end of an edge has the name of its container", async () => {
    await open(`view=task&id=7&net=table&q=${POD}/checkout`);
    await page
      .locator(".edge-table .chip-small", { hasText: `shop/${POD}/checkout` })
      .first()
      .waitFor();
    await open("view=task&id=7");
    await page
      .locator(".map text", { hasText: `shop/${POD}` })
      .first()
      .waitFor();
  });

  await checks.run("the node says who names containers, and why somebody does not", async () => {
    await open("view=node");
    const card = page.locator("section[aria-label='Names of containers']");
    await card.getByText("permission denied").waitFor();
    await card.getByText("4 of 5 running containers have a name").waitFor();
  });

  await checks.run("pods are targets by their names, and a refusal is shown", async () => {
    await open("view=processes&create=1");
    await page.getByRole("button", { name: "More…" }).click();
    await page.getByLabel("Pod by label", { exact: true }).check();
    const field = (title) => page.locator(".selector-fields label", { hasText: title }).locator("input");
    await field("Pod").fill("no-such-pod");
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.getByRole("alert").getByText("no running container of this node matches").waitFor();
    await field("Namespace").fill("shop");
    await field("Pod").fill(POD);
    await field("Container").fill("istio-proxy");
    const cli = await page.getByRole("button", { name: "Copy as CLI" }).getAttribute("title");
    assert(cli.includes(`--pod ${PROXY} `), `the command is ${cli}`);
    await page.getByRole("button", { name: "Start", exact: true }).click();
    await page.locator("h1", { hasText: `pod shop/${POD}, container istio-proxy` }).waitFor();
  });

  // The refusal is an answer with status 422, which the browser reports.
  const wrong = faults.filter((fault) => !fault.includes("422"));
  await checks.run("names cause no fault", async () => assert(wrong.length === 0, wrong.join(" | ")));
  await context.close();
}
