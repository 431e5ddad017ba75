// The pictures of the README that are of recorded data: the overview in light, the map of connections in dark. Run as: AGENT=../target/release/profiler-agent node e2e/readme_shots.mjs

import { launch, openPage } from "./browser.mjs";
import { startDemo } from "./demo.mjs";
import { visit } from "./pages.mjs";
import { client, READY } from "./visits.mjs";

const IMAGES = new URL("../../docs/images/", import.meta.url).pathname;
const { AGENT } = process.env;
if (AGENT === undefined) {
  console.error("AGENT must name a profiler-agent");
  process.exit(2);
}
/** The pod of the client, with the line from its sidecar to the other one. */
async function pickHop(page) {
  const pods = page.locator(".topology select").first();
  const client = await pods.locator("option", { hasText: "mesh-client" }).first().getAttribute("value");
  await pods.selectOption(client);
  await page.locator('.map-line [data-item$=":15006"]').first().focus();
  await page.keyboard.press("Enter");
  await page.locator("[data-trends] li").first().waitFor();
}

const { url, stop } = await startDemo(AGENT);
const browser = await launch();
try {
  const { items } = await client(url)("/tasks");
  const network = items.find(({ kind }) => kind === "network");
  for (const { file, colorScheme, width, height = 800, query, pick, prepare } of [
    {
      file: "overview.png",
      colorScheme: "light",
      width: 1440,
      height: 330,
      query: "view=overview",
      // Read once more, the verdict of the check-up is there.
      pick: ".last-verdict[title^=Requests]",
    },
    {
      file: "topology.png",
      colorScheme: "dark",
      width: 1560,
      query: `view=task&id=${network.id}&net=map&labels=bytes,rtt`,
      pick: ".map-node",
      prepare: pickHop,
    },
  ]) {
    const { origin } = new URL(url);
    const { context, page } = await openPage(browser, origin, {
      colorScheme,
      viewport: { width, height },
    });
    await page.goto(url);
    await page.waitForSelector(READY);
    await visit(page, origin, { query });
    await page.waitForSelector(pick);
    await prepare?.(page);
    await page.screenshot({ path: `${IMAGES}${file}` });
    console.log(`${IMAGES}${file}`);
    await context.close();
  }
} finally {
  await browser.close();
  await stop();
}
