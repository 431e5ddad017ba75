// After the build: dist/viewer.html, the page of an exported profile with its script and style inside.
// The agent puts the profile in place of the marks. The policy in the file allows exactly this script
// and this style, and no request at all.

import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { build } from "vite";

const BUDGET_BYTES = 400_000;
const ROOT = new URL("..", import.meta.url).pathname;

const result = await build({
  root: ROOT,
  configFile: false,
  logLevel: "warn",
  build: {
    write: false,
    target: "es2022",
    cssTarget: ["chrome123", "firefox128", "safari17.5"],
    cssCodeSplit: false,
    modulePreload: false,
    reportCompressedSize: false,
    rollupOptions: { input: `${ROOT}src/viewer/main.tsx`, output: { format: "iife" } },
  },
});
const { output } = Array.isArray(result) ? result[0] : result;
const scripts = output.filter((item) => item.type === "chunk");
const styles = output.filter((item) => item.type === "asset" && item.fileName.endsWith(".css"));
if (scripts.length !== 1 || styles.length !== 1)
  throw new Error(`the viewer is not one script and one style: ${output.map((item) => item.fileName)}`);
const script = scripts[0].code.trim();
const style = String(styles[0].source).trim();
if (/<\/script|<!--|@@/i.test(script) || /<\/style|@@|url\(/i.test(style))
  throw new Error("the viewer has text that cannot stand inside an HTML file");

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const policy = [
  "default-src 'none'",
  `script-src ${hash(script)}`,
  `style-src ${hash(style)}`,
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");
const page = `<!doctype html>
<html lang="en" data-viewer="offline">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<title>Profile</title>
<style>${style}</style>
</head>
<body>
<div id="app"></div>
<noscript>This file draws a profile in the browser and needs JavaScript.</noscript>
<script type="text/plain" id="about">@@ABOUT@@</script>
<script type="text/plain" id="profile">@@PROFILE@@</script>
<script>${script}</script>
</body>
</html>
`;
if (page.length > BUDGET_BYTES) throw new Error(`the viewer has ${page.length} bytes of ${BUDGET_BYTES}`);
writeFileSync(`${ROOT}dist/viewer.html`, page);
// What the agent embeds.
writeFileSync(`${ROOT}dist/viewer.html.gz`, gzipSync(page, { level: 9 }));
console.log(`viewer.html                        ${page.length} B`);
