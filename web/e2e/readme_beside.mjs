// The README's two flame graphs of one sidecar at one time: the official Envoy, which is stripped, as `perf record -g`
// sees it and as the agent does. Both are drawn by the page, perf's from its folded stacks. As root:
//   AGENT=../target/dist-files/profiler-agent DEMO=../target/release/profiler-demo node e2e/readme_beside.mjs
// Ends with the share of samples whose root has a name, of both.

import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { launch, openPage } from "./browser.mjs";
import { visit } from "./pages.mjs";
import { client, READY } from "./visits.mjs";

const IMAGE = new URL("../../docs/images/beside-perf.png", import.meta.url).pathname;
const SECONDS = 20;
const HERTZ = 99;
const { AGENT, DEMO } = process.env;
if (AGENT === undefined || DEMO === undefined) {
  console.error("AGENT must name a profiler-agent, DEMO a profiler-demo");
  process.exit(2);
}

/** A child until its output has what is waited for; ends with this program. */
function start(program, args, wanted) {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "ignore"] });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const found = new Promise((resolve, reject) => {
    let text = "";
    child.stdout.on("data", (part) => {
      text += part;
      const match = wanted.exec(text);
      if (match !== null) resolve(match);
    });
    child.on("error", reject);
    child.on("exit", (code) => reject(new Error(`${program} ended with ${code}`)));
  });
  const stop = () => {
    child.kill("SIGTERM");
    return ended;
  };
  return { found, stop };
}

/** Stacks of `perf script` as folded ones, as stackcollapse-perf.pl writes them. */
function folded(script) {
  const counts = new Map();
  for (const sample of script.split("\n\n")) {
    const [head, ...frames] = sample.split("\n").filter((line) => line !== "");
    if (head === undefined) continue;
    const names = frames.map((line) => {
      const [, name, module] = /^\s*[0-9a-f]+ (.*) \((.*)\)$/.exec(line) ?? [null, "[unknown]", ""];
      const bare = name.replace(/\+0x[0-9a-f]+$/, "");
      return bare === "[unknown]" ? `[${module.split("/").at(-1)}]` : bare;
    });
    const stack = [/^\s*(\S+)/.exec(head)[1], ...names.reverse()].map((name) => name.replaceAll(";", ":"));
    counts.set(stack.join(";"), (counts.get(stack.join(";")) ?? 0) + 1);
  }
  return [...counts].map(([stack, count]) => `${stack} ${count}\n`).join("");
}

const folder = mkdtempSync(join(tmpdir(), "beside-"));
const mesh = start(DEMO, ["mesh", "up", "--workers", "1", "--rps", "0"], /\{.*\}\n/);
const agent = start(
  AGENT,
  ["serve", "--listen", "127.0.0.1:0", "--data-dir", join(folder, "data"), "--log", "warn"],
  /listening on (\S+); the token is in (.+) \(`/,
);
const browser = await launch();
try {
  const { server_envoy_pid: pid } = JSON.parse((await mesh.found)[0]);
  const [, address, file] = await agent.found;
  const token = readFileSync(file, "utf8").trim();
  const url = `${address}#token=${token}`;
  const ask = client(url);
  const send = async (path, body, type) => {
    const response = await fetch(`${address.replace(/\/$/, "")}/api/v1${path}`, {
      method: "POST",
      headers: { Authorization: `Bearer ${token}`, "Content-Type": type },
      body,
    });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response.json();
  };
  const spec = { kind: "on_cpu", target: { pids: [pid] }, duration_s: SECONDS, frequency_hz: HERTZ };
  const ours = await send("/tasks", JSON.stringify(spec), "application/json");
  const data = join(folder, "perf.data");
  const record = ["record", "-g", "-F", String(HERTZ), "-p", String(pid), "-o", data];
  execFileSync("perf", [...record, "--", "sleep", String(SECONDS)], { stdio: "ignore" });
  const script = execFileSync("perf", ["script", "-i", data], {
    maxBuffer: 1 << 28,
    stdio: ["ignore", "pipe", "ignore"],
  });
  const theirs = await send("/imports?name=perf", folded(script.toString()), "application/octet-stream");
  for (let state = ""; state !== "finished"; ) {
    state = (await ask(`/tasks/${ours.id}`)).state;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  const { origin } = new URL(url);
  const pictures = [];
  for (const { id, title } of [
    { id: theirs.id, title: "perf record -g" },
    { id: ours.id, title: "profiler-agent" },
  ]) {
    const { context, page } = await openPage(browser, origin, { viewport: { width: 1150, height: 760 } });
    await page.goto(url);
    await page.waitForSelector(READY);
    await visit(page, origin, { query: `view=task&id=${id}` });
    await page.waitForSelector(".flame-canvas");
    await page.waitForTimeout(1_500);
    pictures.push({ title, data: (await page.locator(".flame-canvas").screenshot()).toString("base64") });
    await context.close();
  }
  const { page } = await openPage(browser, origin, { viewport: { width: 1880, height: 700 } });
  await page.setContent(
    `<style>body{margin:0;display:flex;gap:16px;background:#fff;font:600 22px sans-serif}figure{margin:0;flex:1}img{width:100%;border:1px solid #c8ccd4}figcaption{padding:8px 4px}</style>${pictures
      .map(
        ({ title, data: image }) =>
          `<figure><figcaption>${title}</figcaption><img src="data:image/png;base64,${image}"></figure>`,
      )
      .join("")}`,
  );
  await page.locator("body").screenshot({ path: IMAGE });
  console.log(IMAGE);
} finally {
  await browser.close();
  await agent.stop();
  await mesh.stop();
  rmSync(folder, { recursive: true });
}
