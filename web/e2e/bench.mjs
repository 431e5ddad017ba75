// The page's performance, each row with its target; exit code 1 when one is missed.
// `--short`: size, first paint and memory alone, with generous bounds, for loaded machines.
// `--only=flame` or `--only=pages`: one half. `--markdown`: the table for docs/performance.md at the end.
// Env AGENT: a profiler-agent, whose cost of serving the page is measured with recorded data.

import { readdirSync, statSync } from "node:fs";
import { flameRows } from "./bench_flame.mjs";
import { pageRows, weight } from "./bench_pages.mjs";
import { Rows } from "./bench_rows.mjs";
import { launch, openPage } from "./browser.mjs";

const short = process.argv.includes("--short") || process.env.SHORT === "1";
const only = process.argv.find((argument) => argument.startsWith("--only="))?.slice("--only=".length);
if (only !== undefined && only !== "flame" && only !== "pages") {
  console.error(`--only=${only} is neither flame nor pages`);
  process.exit(2);
}
const viewport = { width: 1600, height: 900 };
const rows = new Rows();
const browser = await launch();
/** Faults of all pages that were opened. */
const faults = [];

async function opened(mock, options = {}, prepare = async () => {}) {
  const made = await openPage(browser, mock.origin, { viewport, ...options });
  made.context.once("close", () => faults.push(...made.faults));
  await prepare(made.page);
  await made.page.goto(mock.url);
  await made.page.waitForSelector(".overview-table, [role=grid]");
  return made;
}

const bench = {
  browser,
  viewport,
  opened,
  rows,
  short,
  rounds: short ? 2 : 4,
  /** What a loaded machine may take longer; sizes and memory do not depend on the load. */
  slack: short ? 10 : 1,
};
if (only !== "flame") weight(bench);
if (only !== "pages") await flameRows(bench);
if (!short && only !== "flame") await pageRows(bench);
await browser.close();
const count = (start) => faults.filter((fault) => fault.startsWith(start)).length;
rows.add("requests to elsewhere, on all these pages", "", [count("request")], 0);
rows.add("violations of the policy, on all these pages", "", [count("CSP")], 0);
// The bench itself reads pixels back, about which the browser has an opinion.
const other = faults.filter((fault) => !/^request|^CSP|willReadFrequently/.test(fault));
rows.add("errors and exceptions, on all these pages", "", [other.length], 0);
for (const fault of new Set(faults)) console.log(fault);
if (process.argv.includes("--markdown")) console.log(`\n${rows.markdown()}\n`);
const built = readdirSync(new URL("../dist/assets/", import.meta.url));
const stamp = statSync(new URL("../dist/index.html", import.meta.url)).mtime.toISOString();
const { missed } = rows;
console.log(
  JSON.stringify({ viewport: "1600x900", built: stamp, files: built.length, rows: rows.rows, missed }),
);
process.exitCode = missed.length === 0 ? 0 : 1;
