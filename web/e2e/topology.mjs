// The map of a pod and the page of an edge, checked against what the API says: used over the stand-in, and
// by itself against a real agent.
// Env of the latter: AGENT_URL, TASK (a finished network task), EXPECT (lines that must be drawn, as
// "PID>PID:PORT,…"), SHOTS (folder for screenshots, optional).

import { pathToFileURL } from "node:url";
import { launch, openPage } from "./browser.mjs";
import { address, assert, Checks } from "./real.mjs";

const WAIT_MS = 20_000;

/** Asks the agent itself. */
function client(agentUrl) {
  const url = new URL(agentUrl);
  const token = url.hash.replace("#token=", "");
  return async (path) => {
    const response = await fetch(`${url.origin}/api/v1${path}`, {
      headers: { Authorization: `Bearer ${token}` },
    });
    assert(response.ok, `${path}: ${response.status}`);
    return response.json();
  };
}

/** What is drawn: nodes with their points, lines with their text and the point of their arrow. */
const drawn = (page) =>
  page.evaluate(() => {
    const point = (text) => text.match(/-?[\d.]+/g).map(Number);
    const nodes = [...document.querySelectorAll(".map-node")].map((node) => ({
      key: node.getAttribute("data-key"),
      at: point(node.getAttribute("transform")),
      label: node.querySelector("[data-item]").getAttribute("aria-label"),
    }));
    const ports = [...document.querySelectorAll(".map-port")].map((port) => ({
      text: port.querySelector("text").textContent,
      tip: point(port.querySelector(".head").getAttribute("points")).slice(0, 2),
    }));
    const lines = [...document.querySelectorAll(".map-line")].map((line) => ({
      key: line.getAttribute("data-key"),
      label: line.querySelector("[data-item]").getAttribute("aria-label"),
      tags: [
        ...document.querySelectorAll(
          `.map-text[data-key="${CSS.escape(line.getAttribute("data-key"))}"] text`,
        ),
      ].map((text) => text.textContent),
      tip:
        line.querySelector(".head") && point(line.querySelector(".head").getAttribute("points")).slice(0, 2),
    }));
    return { nodes, ports, lines };
  });

const ends = (key) => key.match(/^(.+)>(.+):(\d*)$/).slice(1);
const keyOf = (end) => (end.pid === null ? `a:${end.address}` : `p:${end.pid}-${end.start_ticks}`);
const far = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);

/** Every line has an edge of the API in the same direction, its port, and its arrow at the callee. */
function checkLines({ nodes, ports, lines }, table) {
  const at = new Map(nodes.map((node) => [node.key, node.at]));
  const known = new Set(
    table.edges.map((edge) => `${keyOf(edge.client)}>${keyOf(edge.server)}:${edge.server.port ?? ""}`),
  );
  assert(lines.length > 0, "no line is drawn");
  for (const { key, tags, tip, label } of lines) {
    assert(known.has(key), `no edge of the API is ${key}`);
    const [from, to, port] = ends(key);
    if (tip !== null) {
      assert(far(tip, at.get(to)) < far(tip, at.get(from)), `the arrow of ${key} is at the caller`);
      if (port !== "") assert(tags.includes(`:${port}`), `no port at ${key}: ${tags}`);
    } else {
      const met = ports.find(({ text }) => text === `:${port}`);
      assert(met !== undefined, `${key} meets no port`);
    }
    if (port !== "") assert(label.includes(`port ${port}`), `label of ${key}: ${label}`);
  }
}

/** What is drawn on the map of the node: what lies on what, and between which boxes lines go. */
const drawnNode = (page) =>
  page.evaluate(() => {
    const nodes = [...document.querySelectorAll(".map-node")];
    const boxes = nodes.map((node) => ({
      key: node.getAttribute("data-key"),
      box: node.querySelector(".shape").getBoundingClientRect(),
    }));
    const texts = [...document.querySelectorAll(".flow-text")].map((text) => ({
      key: text.getAttribute("data-key"),
      box: text.querySelector("rect").getBoundingClientRect(),
    }));
    const over = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
    const all = [...boxes, ...texts];
    const lying = all.flatMap((a, i) =>
      all
        .slice(i + 1)
        .filter((b) => over(a.box, b.box))
        .map((b) => `${a.key} on ${b.key}`),
    );
    const lines = [...document.querySelectorAll(".map-line")];
    const behind = lines.flatMap((line) => {
      const path = line.querySelector(".line");
      const matrix = path.getScreenCTM();
      const points = Array.from({ length: 200 }, (_, i) =>
        path.getPointAtLength((path.getTotalLength() * i) / 199).matrixTransform(matrix),
      );
      const isIn = ({ x, y }, box) => x > box.left && x < box.right && y > box.top && y < box.bottom;
      return boxes
        .filter(({ box }) => points.some((point) => isIn(point, box)))
        .map(({ key }) => `${line.getAttribute("data-key")} behind ${key}`);
    });
    return {
      lying,
      behind,
      nodes: boxes.map(({ key }) => key),
      flows: lines.map((line) => line.getAttribute("data-key")),
    };
  });

/**
 * Flows between the pods of some processes that the API has edges for. Pods of other tests end meanwhile, and the number
 * of their namespace is given to another.
 */
function flowsOf(table, pids) {
  const ends = table.edges.flatMap(({ client, server }) => [client, server]);
  const spaces = new Set(ends.filter(({ pid }) => pids.has(pid)).map((end) => end.network_namespace));
  const flows = table.edges
    .map(({ client, server }) => [client.network_namespace, server.network_namespace])
    .filter(([from, to]) => from !== null && from !== to && spaces.has(from) && spaces.has(to))
    .map(([from, to]) => `!${from}>!${to}`);
  return [...new Set(flows)];
}

/** Opens the map of the pod that has a process; all pods are tried. */
async function openPodOf(page, pid) {
  const inside = ":is(.role-sidecar, .role-app, .role-helper)";
  const has = () => page.locator(`.map-node${inside}[data-key^="p:${pid}-"]`).count();
  await page.locator(".map").waitFor();
  if ((await has()) > 0) return;
  const pods = await page
    .locator(".topology select")
    .first()
    .locator("option")
    .evaluateAll((all) => all.map(({ value }) => value));
  for (const pod of pods) {
    await page.locator(".topology select").first().selectOption(pod);
    if ((await has()) > 0) return;
  }
  throw new Error(`no pod shows process ${pid}`);
}

const sum = (numbers) => numbers.reduce((all, number) => all + number, 0);

/** The page of an edge has the API's totals, both of the table and of the series. */
async function checkEdgePage(page, ask, task, edge) {
  await page.goto(`${new URL(page.url()).origin}/?view=edge&id=${task}&edge=${edge.id}`);
  await page.locator(".row-card").first().waitFor();
  const series = await ask(`/tasks/${task}/edges/${edge.id}/series`);
  for (const name of ["client", "server"]) {
    const side = edge.metrics[name];
    assert((series[name] === null) === (side === null), `${name}: one has it, the other has not`);
    if (side === null) continue;
    for (const [metric, found] of [
      ["write", side.write],
      ["read", side.read],
    ]) {
      if (found === null) continue;
      const [calls, bytes] = [sum(series[name][metric].count), sum(series[name][metric].bytes)];
      assert(
        calls === found.count && bytes === found.bytes,
        `${name} ${metric}: ${calls}, ${bytes} and not ${found.count}, ${found.bytes}`,
      );
      const card = page.locator(`[data-side=${name}][data-row-kind=${metric}]`);
      const text = await card.textContent();
      if (calls > 0)
        assert(text.includes(`${calls.toLocaleString("en")} calls`), `${name} ${metric}: ${text}`);
    }
    const rtt = side.write_rtt_us;
    if (rtt === null) continue;
    const counts = new Array(rtt.histogram.counts.length).fill(0);
    for (const step of series[name].write_rtt_us.buckets)
      for (const [bucket, number] of step) counts[bucket] += number;
    assert(
      String(counts) === String(rtt.histogram.counts),
      `${name} RTT: ${counts} and not ${rtt.histogram.counts}`,
    );
  }
}

/** `expect`: [pid, pid, port] of lines that must be drawn. `pod`: a process whose pod is looked at. */
export async function topologyWalk(checks, { agentUrl, task, expect, pod, shots }) {
  const ask = client(agentUrl);
  const { origin } = new URL(agentUrl);
  const browser = await launch();
  const { page, faults } = await openPage(browser, origin);
  page.setDefaultTimeout(WAIT_MS);
  const shot = async (name) => {
    if (shots !== undefined) await page.screenshot({ path: `${shots}/${name}.png` });
  };
  await page.goto(agentUrl);
  await page.locator(".overview-table, [role=grid]").first().waitFor();
  const table = await ask(`/tasks/${task}/edges`);
  const map = `${origin}/?view=task&id=${task}`;
  const pids = new Set(expect.flatMap((line) => line.slice(0, 2)));

  await checks.run("the map draws what the API says: direction, port, arrow at the callee", async () => {
    await page.goto(map);
    await openPodOf(page, pod);
    const found = await drawn(page);
    checkLines(found, table);
    for (const [from, to, port] of expect) {
      await openPodOf(page, from);
      const { lines } = await drawn(page);
      const line = lines.find(({ key }) => new RegExp(`^p:${from}-\\d+>p:${to}-\\d+:${port}$`).test(key));
      assert(line !== undefined, `no line ${from}>${to}:${port} among ${lines.map(({ key }) => key)}`);
    }
    await openPodOf(page, pod);
    await shot("topology");
  });
  await checks.run(
    "the map of the node has every flow between pods, and nothing lies on anything",
    async () => {
      await page.goto(`${map}&net=pods`);
      await page.locator(".node-map .map-node").first().waitFor();
      const { lying, behind, nodes, flows } = await drawnNode(page);
      const expected = flowsOf(table, pids);
      assert(expected.length > 0, "no edge goes from one pod to another");
      for (const flow of expected) assert(flows.includes(flow), `${flow} is not among ${flows}`);
      for (const end of expected.flatMap((flow) => flow.split(">")))
        assert(nodes.includes(end), `${end} is not among ${nodes}`);
      assert(lying.length === 0, `${lying}`);
      assert(behind.length === 0, `${behind}`);
      await shot("node-map");
    },
  );
  await checks.run("a pod that is picked shows its ways and opens to its own map", async () => {
    const [from, to] = flowsOf(table, pids)[0].split(">");
    const item = (key) => page.locator(`.node-map [data-item="${key}"]`);
    await item(from).focus();
    await page.keyboard.press("Enter");
    await page.locator(".map-panel h2").waitFor();
    assert((await page.locator(`.map-node.dim[data-key="${to}"]`).count()) === 0, `${to} is dim`);
    const dim = await page.locator(".map-line.dim").count();
    const all = await page.locator(".map-line").count();
    assert(dim < all, "all lines are dim");
    await item(`${from}>${to}`).focus();
    await page.keyboard.press("Enter");
    await page.locator(".map-panel .panel-edges a").first().waitFor();
    await shot("node-map-flow");
    await item(from).focus();
    await page.keyboard.press("Enter");
    await page.keyboard.press("Enter");
    await page.waitForURL(/net=map/);
    await page.locator(".hexagon").waitFor();
    assert((await address(page)).includes(encodeURIComponent(from).slice(-8)), await address(page));
  });
  await checks.run(
    "no text of the map lies on another one, and the pointer shows those without room",
    async () => {
      await page.goto(map);
      await openPodOf(page, pod);
      const over = await page.evaluate(() => {
        const seen = [...document.querySelectorAll(".map-text > g:not(.crowded) rect, .map-port g rect")];
        const boxes = seen.map((rect) => rect.getBoundingClientRect());
        const apart = (a, b) =>
          a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
        return boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) => !apart(a, b))).length;
      });
      assert(over === 0, `${over} texts lie on others`);
      const line = page.locator(".map-line").first();
      await line.dispatchEvent("pointerover");
      await line.evaluate((element) => element.dispatchEvent(new PointerEvent("pointerenter")));
      await page.locator(".map-pointed text").first().waitFor();
    },
  );
  await checks.run("the sidecar is in the centre, and nobody else", async () => {
    await page.goto(map);
    await openPodOf(page, pod);
    const center = page.locator(".map-node.role-sidecar");
    assert((await center.count()) === 1, `${await center.count()} in the centre`);
    const label = await center.locator("[data-item]").getAttribute("aria-label");
    assert(/sidecar proxy/.test(label), label);
  });
  await checks.run("arrow keys reach nodes and lines, Enter opens, t is the table and back", async () => {
    await page.locator(".map-node.role-sidecar [data-item]").focus();
    const first = await page.evaluate(() => document.activeElement.getAttribute("data-item"));
    const seen = new Set([first]);
    for (const key of [
      "ArrowLeft",
      "ArrowLeft",
      "ArrowRight",
      "ArrowRight",
      "ArrowRight",
      "ArrowDown",
      "ArrowUp",
    ]) {
      await page.keyboard.press(key);
      seen.add(await page.evaluate(() => document.activeElement.getAttribute("data-item")));
    }
    assert(seen.size >= 3 && !seen.has(null), `reached ${[...seen]}`);
    await page.keyboard.press("Enter");
    await page.locator(".map-panel h2").waitFor();
    assert(/node=/.test(await address(page)), await address(page));
    await page.keyboard.press("t");
    await page.locator(".edge-table [data-row]").first().waitFor();
    assert(/net=table/.test(await address(page)), await address(page));
    await page.keyboard.press("t");
    await page.locator(".map").waitFor();
    await page.reload();
    await page.locator(".map-panel h2").waitFor();
  });
  await checks.run("a line leads to the page of its edge, whose sums are the API's totals", async () => {
    await page.goto(map);
    await openPodOf(page, pod);
    const [from, to, port] = expect[0];
    await openPodOf(page, from);
    const line = page.locator(
      `.map-line [data-item^="p:${from}-"][data-item*=">p:${to}-"][data-item$=":${port}"]`,
    );
    await line.focus();
    await page.keyboard.press("Enter");
    await page.locator("[data-trends] li").nth(5).waitFor();
    await shot("topology-line");
    await page.locator(".map-panel .panel-edges a").first().click();
    await page.waitForURL(/view=edge/);
    await page.locator(".row-card").first().waitFor();
    await shot("edge");
    for (const [client, server, at] of expect) {
      const fits = (edge) =>
        edge.client.pid === client && edge.server.pid === server && edge.server.port === at;
      for (const edge of table.edges.filter(fits)) await checkEdgePage(page, ask, task, edge);
    }
  });
  await checks.run("dragging picks a time, and the numbers are of that time", async () => {
    const whole = await page.locator("[data-row-kind=write] .row-total").first().textContent();
    const box = await page.locator("[data-row-kind=write] .chart-box").first().boundingBox();
    const steps = await page.locator(".edge-covered").textContent();
    await page.mouse.move(box.x + box.width * 0.2, box.y + 20);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.5, box.y + 20, { steps: 3 });
    await page.mouse.up();
    await page.waitForURL(/from=\d+&to=\d+/);
    await page.waitForFunction((text) => document.querySelector(".edge-covered").textContent !== text, steps);
    const part = await page.locator("[data-row-kind=write] .row-total").first().textContent();
    assert(part !== whole, `still ${part}`);
    await page.getByLabel("with the time before it").check();
    await page.locator("[data-row-kind=write] .row-earlier").first().waitFor();
    const before = await page.locator("[data-row-kind=write] .row-earlier").first().textContent();
    assert(/^before: [\d.,]+ \S*B\/s$/.test(before), before);
    await page.locator(".histogram-ghost").first().waitFor({ state: "attached" });
    await page.reload();
    await page.locator(".range-picked").waitFor();
    await page.getByRole("button", { name: "Whole time" }).click();
    await page
      .waitForFunction(
        (text) => document.querySelector("[data-row-kind=write] .row-total").textContent === text,
        whole,
      )
      .catch(async () => {
        const now = await page.locator("[data-row-kind=write] .row-total").first().textContent();
        throw new Error(`the whole time says ${now} and said ${whole}`);
      });
  });
  await checks.run(
    "map and edge: no console error, exception, CSP violation or foreign request",
    async () => {
      assert(faults.length === 0, faults.join(" | "));
    },
  );
  await browser.close();
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const checks = new Checks();
  const expect = process.env.EXPECT.split(",").map((line) => line.split(/[>:]/).map(Number));
  await topologyWalk(checks, {
    agentUrl: process.env.AGENT_URL,
    task: process.env.TASK,
    expect,
    pod: expect[0][0],
    shots: process.env.SHOTS,
  });
  checks.finish();
}
