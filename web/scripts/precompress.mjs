// After the build: writes .br and .gz beside every text file of dist/, so that the agent never
// compresses, and fails when the page's first load is above its budget: what index.html names, and the
// largest of the pages that are fetched when they are opened.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const BUDGET_BYTES = 150_000;
const DIST = new URL("../dist/", import.meta.url).pathname;
const TEXT = /\.(html|js|css|svg)$/;

const named = readFileSync(join(DIST, "index.html"), "utf8");
let shell = 0;
let largestPage = 0;
for (const entry of readdirSync(DIST, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !TEXT.test(entry.name)) continue;
  const path = join(entry.parentPath, entry.name);
  const raw = readFileSync(path);
  const gzip = gzipSync(raw, { level: 9 });
  const brotli = brotliCompressSync(raw, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
  writeFileSync(`${path}.gz`, gzip);
  writeFileSync(`${path}.br`, brotli);
  if (/\.(js|css)$/.test(entry.name)) {
    if (named.includes(entry.name)) shell += gzip.length;
    else largestPage = Math.max(largestPage, gzip.length);
  }
  console.log(
    `${path.slice(DIST.length).padEnd(34)} ${raw.length} B, gzip ${gzip.length}, brotli ${brotli.length}`,
  );
}
const firstLoad = shell + largestPage;
console.log(`every page, JS and CSS: ${shell} bytes gzip; the largest page of its own: ${largestPage}`);
console.log(`first load, JS and CSS: ${firstLoad} bytes gzip of ${BUDGET_BYTES}`);
if (firstLoad > BUDGET_BYTES) {
  console.error("the first load is above its budget");
  process.exit(1);
}
