// The page of a task of requests against the stand-in: what it says, what it keeps in the address, how a task
// is asked for, and the files that it gives. Runs alone: node e2e/requests.mjs (env SHOTS: folder for screenshots).

import { mkdirSync, readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { launch, openPage } from "./browser.mjs";
import { assertFits, assertRowsOnOneLine } from "./inspect.mjs";
import { startMock } from "./mock-server.mjs";
import { accessibleInThemes, THEMES } from "./pages.mjs";
import { address, assert, Checks } from "./real.mjs";
import { READY } from "./visits.mjs";

/** Tasks of the stand-in: nothing lost, with trouble, nothing seen. */
const GOOD = "8";
const TROUBLED = "9";
const EMPTY = "10";
/** Of access logs and sockets. */
const LOGGED = "11";
const WAIT_MS = 20_000;

async function open(browser, mock, options = {}) {
  const opened = await openPage(browser, mock.origin, options);
  opened.page.setDefaultTimeout(WAIT_MS);
  await opened.page.goto(mock.url);
  await opened.page.waitForSelector(READY);
  const show = async (query) => {
    await opened.page.goto(`${mock.origin}/?${query}`);
    await opened.page.waitForSelector(".quality-chip");
  };
  return { ...opened, show };
}

const rowsOf = (page, label) => page.getByRole("grid", { name: label }).locator("[role=row][data-row]");

/** Texts of a column, by the title of its header. */
async function column(page, label, title) {
  const grid = page.getByRole("grid", { name: label });
  const titles = await grid.getByRole("columnheader").allTextContents();
  const at = titles.findIndex((text) => text.replace(/[▲▼]/g, "") === title);
  assert(at !== -1, `no column ${title}: ${titles.join(", ")}`);
  const cells = await grid
    .locator(`[role=row][data-row] [role=gridcell]:nth-child(${at + 1})`)
    .allTextContents();
  return cells;
}

async function operations(checks, { page, faults, show }, mock) {
  await checks.run("requests: the table says what the API says", async () => {
    await show(`view=task&id=${GOOD}`);
    const { operations: found } = await (
      await fetch(`${mock.origin}/api/v1/tasks/${GOOD}/requests`, {
        headers: { Authorization: `Bearer ${new URL(mock.url).hash.slice("#token=".length)}` },
      })
    ).json();
    const counts = (await column(page, "Operations", "Requests")).map((text) =>
      Number(text.replaceAll(",", "")),
    );
    assert(
      counts.join() === found.map(({ count }) => count).join(),
      `${counts} instead of ${found.map(({ count }) => count)}`,
    );
    const latencies = await column(page, "Operations", "p99");
    assert(
      latencies.every((text) => /^(≤ )?[\d.]+ (ns|µs|ms|s)$/.test(text)),
      latencies.join(", "),
    );
    await assertRowsOnOneLine(page);
  });
  await checks.run("requests: a result without loss says so, one with trouble says all of it", async () => {
    const chip = page.locator(".quality-chip > button");
    const strip = page.locator("[data-quality]");
    assert((await chip.textContent()).includes("Quality: good"), await chip.textContent());
    await chip.click();
    assert((await strip.textContent()).includes("nothing lost"), await strip.textContent());
    assert((await strip.locator(".warn").count()) === 0, "a whole result is marked");
    await show(`view=task&id=${TROUBLED}`);
    assert((await chip.textContent()).includes("▲ Losses: 37 pieces lost"), await chip.textContent());
    await chip.click();
    const text = await strip.textContent();
    for (const said of [
      "37 pieces lost, 21 gaps in 3 connections",
      "1 of 4 connections",
      "3 connections, 303 KiB",
      "47.1 KiB",
      "1 connection",
      "17 requests of too many operations, 4 requests of too many edges",
      "12 left out",
      "Withdrawn guesses2",
    ])
      assert(text.includes(said), `“${said}” is not in: ${text}`);
  });
  await checks.run("requests: where not all was captured, edges have what the kernel counted", async () => {
    await show(`view=task&id=${GOOD}`);
    assert((await page.locator("[data-counted]").count()) === 0, "counted twice");
    await show(`view=task&id=${TROUBLED}`);
    await page.click("[data-counted] summary");
    const cells = page.locator("[data-counted] tbody td:nth-child(4)");
    const texts = await cells.allTextContents();
    assert(texts.length > 1 && texts.some((text) => text.endsWith(" or more")), texts.join(", "));
    const counts = texts.map((text) => Number.parseInt(text.replaceAll(",", ""), 10));
    const sum = counts.reduce((all, one) => all + one, 0);
    const said = await page.locator("[data-counted] summary").textContent();
    assert(said.includes(`${sum.toLocaleString("en-US")} requests of HTTP or more`), said);
  });
  await checks.run(
    "requests: filter, protocol and failing cut the table, and the address keeps them",
    async () => {
      await show(`view=task&id=${GOOD}`);
      const all = await rowsOf(page, "Operations").count();
      await page.fill("[data-search]", "cart");
      await page.waitForFunction((n) => document.querySelectorAll("[data-row]").length < n, all);
      const routes = await column(page, "Operations", "Route");
      assert(routes.length > 0 && routes.every((route) => route.includes("cart")), routes.join());
      await page.fill("[data-search]", "");
      await page.getByLabel("Protocol", { exact: true }).selectOption("redis");
      assert(
        (await column(page, "Operations", "Protocol")).every((text) => text === "Redis"),
        "not only Redis",
      );
      await page.getByLabel("failing").check();
      await page.getByText("No operation matches the filter").waitFor();
      assert(
        /speaks=redis/.test(await address(page)) && /failing=1/.test(await address(page)),
        await address(page),
      );
      await page.getByRole("button", { name: "Clear the filter" }).click();
      assert((await rowsOf(page, "Operations").count()) === all, "not all are back");
    },
  );
  await checks.run("requests: headers sort, by keyboard too", async () => {
    const header = page.getByRole("grid", { name: "Operations" }).getByRole("button", { name: "5xx" });
    await header.focus();
    await page.keyboard.press("Enter");
    const failed = (await column(page, "Operations", "5xx")).map(Number);
    assert(failed.join() === failed.toSorted((a, b) => b - a).join() && failed[0] > 0, failed.join());
  });
  await checks.run(
    "requests: the panel of an operation has both ends, sizes, outcomes and samples",
    async () => {
      await show(`view=task&id=${GOOD}`);
      const row = rowsOf(page, "Operations").filter({ hasText: "15001" }).first();
      await row.focus();
      await page.keyboard.press("Enter");
      const panel = page.getByRole("complementary", { name: "One operation" });
      await panel.waitFor();
      for (const name of ["Latency", "First byte", "Sizes", "What became of them", "Slowest samples"])
        await panel.getByRole("region", { name }).waitFor();
      const latency = await panel.getByRole("region", { name: "Latency" }).textContent();
      assert(latency.includes("Seen by the client") && latency.includes("Seen by the server"), latency);
      const outcome = await panel.getByRole("region", { name: "What became of them" }).textContent();
      assert(/6 × 4xx.*2 × 5xx.*1 aborted/.test(outcome), outcome);
      assert(/Of 2 \(.*\) the end was not seen whole/.test(outcome), outcome);
      assert((await panel.locator("[data-sidecar]").count()) > 0, "no sidecar in the panel");
      const kept = await address(page);
      assert(/operation=[0-9a-f]{16}/.test(kept), kept);
      await page.reload();
      await panel.waitFor();
      await panel.getByRole("button", { name: "Only this edge" }).click();
      const servers = await column(page, "Operations", "Server");
      assert(
        servers.every((text) => text.includes("15001")),
        servers.join(),
      );
      await page.getByRole("button", { name: /^only checkout/ }).click();
      assert((await rowsOf(page, "Operations").count()) > servers.length, "the edge still cuts");
    },
  );
  assert(faults.length === 0, faults.join(" | "));
}

async function trends(checks, { page, show }, mock) {
  await checks.run("requests: charts over time are of all edges, or of the picked one", async () => {
    await show(`view=task&id=${GOOD}`);
    const box = page.locator("[data-over-time]");
    const labels = async () =>
      (await box.getByRole("img").all()).map((image) => image.getAttribute("aria-label"));
    const all = await Promise.all(await labels());
    assert(all.length === 3 && all.every((label) => / over time: /.test(label)), all.join(" | "));
    assert(/p50 at most .*; p95 .*; p99 /.test(all[2]), all[2]);
    await page.fill("[data-search]", "15001");
    await box.getByText("time is not kept by operation").waitFor();
    const { operations: found, over_time } = await (
      await fetch(`${mock.origin}/api/v1/tasks/${GOOD}/requests`, {
        headers: { Authorization: `Bearer ${new URL(mock.url).hash.slice("#token=".length)}` },
      })
    ).json();
    const [id] = Object.keys(over_time.edges);
    await show(`view=task&id=${GOOD}&edge=${id}`);
    const own = await Promise.all(await labels());
    assert(own[0] !== all[0], `the same charts: ${own[0]}`);
    const without = found.find(({ edge }) => edge !== null && over_time.edges[edge.id] === undefined);
    await show(`view=task&id=${GOOD}&edge=${without.edge.id}`);
    await box.getByText("there was no room for this edge").waitFor();
  });
  await checks.run("requests: charts fold by keyboard, and begin folded in a low window", async () => {
    const summary = page.locator("[data-over-time] > summary");
    await summary.focus();
    await page.keyboard.press("Enter");
    await page.locator("[data-over-time]:not([open])").waitFor();
    await page.setViewportSize({ width: 390, height: 844 });
    await show(`view=task&id=${GOOD}`);
    await page.locator("[data-over-time]:not([open])").waitFor();
    await page.setViewportSize({ width: 1440, height: 900 });
  });
}

async function samples(checks, { page, show }) {
  await checks.run("requests: a sample opens with its ids, headers and time in parts", async () => {
    await show(`view=task&id=${TROUBLED}&requests=samples&sort=-begin`);
    await page.fill("[data-search]", "cart");
    await rowsOf(page, "Single requests").first().click();
    const panel = page.getByRole("complementary", { name: "One request" });
    await panel.waitFor();
    const text = await panel.textContent();
    for (const said of ["Request id", "x-envoy-upstream-service-time", "checkout.shop:8080", "/cart/7"])
      assert(text.includes(said), `“${said}” is not in: ${text}`);
    assert(text.includes("?token=***"), "the query is not masked");
    const bars = await panel.getByRole("img").all();
    for (const bar of bars) assert((await bar.getAttribute("aria-label")).length > 10, "a bar has no words");
    assert(bars.length > 0, "no bar");
    assert(/sample=[0-9a-f]{16}/.test(await address(page)), await address(page));
  });
  await checks.run("requests: the slowest of an operation leads to the sample", async () => {
    await show(`view=task&id=${TROUBLED}`);
    await rowsOf(page, "Operations").filter({ hasText: "15001" }).first().click();
    await page.getByRole("region", { name: "Slowest samples" }).getByRole("button").first().click();
    await page.getByRole("complementary", { name: "One request" }).waitFor();
    assert(/requests=samples/.test(await address(page)), await address(page));
  });
}

async function way(checks, { page, show }, mock) {
  const panel = page.getByRole("complementary", { name: "One request" });
  const section = panel.getByRole("region", { name: "Its way" });
  await checks.run(
    "requests: the legs of one request stand on one axis, and lead to each other",
    async () => {
      await show(`view=task&id=${TROUBLED}&requests=samples&sort=-duration&q=7711`);
      await rowsOf(page, "Single requests").filter({ hasText: "15001" }).first().click();
      const text = await section.textContent();
      for (const said of [
        "in 3 legs: 48.2 ms",
        "alike, nothing else fits",
        "same request id",
        "There: inside the pod and the client's sidecar envoy",
        "There: network and the server's sidecar envoy",
        "Waiting: inside the pod and httpbin",
      ])
        assert(text.includes(said), `“${said}” is not in: ${text}`);
      const first = await address(page);
      await section.getByRole("link", { name: "envoy → httpbin:8080" }).focus();
      await page.keyboard.press("Enter");
      await section.locator("[aria-current=true]").filter({ hasText: "httpbin" }).waitFor();
      assert((await address(page)) !== first, "the address stays");
      assert((await section.textContent()).includes("in 3 legs"), "the other legs are gone");
    },
  );
  await checks.run("requests: a leg leads to the flame graph of its thread and time", async () => {
    await section.getByRole("listitem").filter({ hasText: "thread 4251" }).getByRole("link").click();
    await page.waitForURL(/view=task&id=4&from=2000&to=2060&tid=4251/);
    await page.locator(".flame-canvas").waitFor();
  });
  await checks.run("requests: parts stand beside the median, with what it is of", async () => {
    await show(`view=task&id=${TROUBLED}&requests=samples&q=7711`);
    await rowsOf(page, "Single requests").filter({ hasText: "15001" }).first().click();
    const against = panel.getByRole("region", { name: "Against the median request" });
    const text = await against.textContent();
    for (const said of ["Waiting for the response", "the client's end saw whole", "12 later requests"])
      assert(text.includes(said), `“${said}” is not in: ${text}`);
    await against.getByRole("link", { name: "A request of median length" }).click();
    await section.locator("[aria-current=true]").waitFor();
  });
  await checks.run(
    "requests: where no profile ran, one button starts a check-up of the same target",
    async () => {
      const task = mock.agent.create({ kind: "requests", target: { pids: [4242] } });
      const began = task.started_at_ns - 40 * 3600e9;
      Object.assign(task, { state: "finished", started_at_ns: began, ended_at_ns: began + 10e9 });
      await show(`view=task&id=${task.id}&requests=samples`);
      await rowsOf(page, "Single requests").first().click();
      await section.getByText("No profile of these processes was recorded").waitFor();
      const sent = page.waitForRequest(
        (request) => request.method() === "POST" && /\/checkups$/.test(request.url()),
      );
      await section.getByRole("button", { name: "Start a check-up of the same target" }).click();
      const body = JSON.parse((await sent).postData());
      assert(JSON.stringify(body) === '{"target":{"pids":[4242]},"duration_s":10}', JSON.stringify(body));
      await page.waitForURL(/view=checkup&id=/);
      mock.agent.tasks.delete(task.id);
    },
  );
  await checks.run(
    "requests: one leg says why it is alone, and a task that keeps all is one step",
    async () => {
      await show(`view=task&id=${GOOD}&requests=samples`);
      await rowsOf(page, "Single requests").first().click();
      await section.getByText("keeps only the slowest and the first failing").waitFor();
      const against = await panel.getByRole("region", { name: "Against the median request" }).textContent();
      assert(against.includes("Parts of the median request are not known"), against);
      await section.getByRole("button", { name: "Keep all samples and run again" }).click();
      assert((await page.locator("#samples-kept").inputValue()) === "all", "not all are asked for");
      await page.keyboard.press("Escape");
    },
  );
}

async function sidecars(checks, { page, show }) {
  await checks.run("requests: a sidecar's time is split, and order alone is not evidence", async () => {
    await show(`view=task&id=${GOOD}&requests=sidecars`);
    const known = page.locator("[data-sidecar='4242']");
    const text = await known.textContent();
    for (const said of [
      "874 µs",
      "Inbound socket queue",
      "Response path",
      "request id71.",
      "not in the times",
      "within 2 ms",
    ])
      assert(text.includes(said), `“${said}” is not in: ${text}`);
    const poor = await page.locator("[data-sidecar='5150']").textContent();
    assert(poor.includes("No split into parts") && poor.includes("cannot be told"), poor);
  });
}

async function accessLogs(checks, { page, show }) {
  await checks.run("requests: those of access logs are marked, and can be looked for", async () => {
    await show(`view=task&id=${LOGGED}`);
    const sources = new Set(await column(page, "Operations", "Source"));
    assert(sources.has("access log") && sources.has("sockets"), [...sources].join());
    await page.fill("[data-search]", "access log");
    await page.waitForFunction(() => !document.querySelector("[role=grid]").textContent.includes("sockets"));
    await assertRowsOnOneLine(page);
    await show(`view=task&id=${GOOD}`);
    const titles = await page.getByRole("columnheader").allTextContents();
    assert(!titles.includes("Source"), titles.join());
  });
  await checks.run("requests: each Envoy of the access logs has a section", async () => {
    await show(`view=task&id=${LOGGED}&requests=access_logs`);
    const text = await page.locator("[data-envoy='4242']").textContent();
    for (const said of [
      "99.95 % of ",
      " are missing.",
      "retried, with",
      "TLSv1.3",
      "without TLS",
      "Request path",
      "to_upstream",
      "The connection to the upstream could not be made",
      "via_upstream",
      "10.1.0.23:8080",
      "11.2 % of its requests fail",
    ])
      assert(text.includes(said), `“${said}” is not in: ${text}`);
    const hosts = page.locator("[data-envoy='4242']").getByRole("region", { name: "Upstream hosts" });
    const first = await hosts.first().locator("tbody tr").first().textContent();
    assert(first.includes("10.1.0.23:8080"), `the host that stands out is not the first: ${first}`);
    const claimed = await page.locator("[data-envoy='']").textContent();
    assert(claimed.includes("only claimed") && claimed.includes("is unknown"), claimed);
    await page.locator(".quality-chip > button").click();
    const quality = await page.locator("[data-quality]").textContent();
    for (const said of ["requests missing", "At sockets too", "214 requests"])
      assert(quality.includes(said), `“${said}” is not in: ${quality}`);
    await page.keyboard.press("Escape");
  });
  await checks.run("requests: a sidecar by its access log says so", async () => {
    await show(`view=task&id=${LOGGED}&requests=sidecars`);
    const text = await page.locator("[data-sidecar='4242']").textContent();
    assert(text.includes("access log100.0 %") && !text.includes("x-envoy-upstream"), text);
  });
}

/** `GET /access-logs` on the node's page, in each of its states. */
async function receivedLogs(checks, { page }, mock) {
  const card = page.locator("[data-access-logs]");
  const open = async (state) => {
    mock.agent.accessLogs = state;
    await page.goto(`${mock.origin}/?view=node`);
    await card.locator(".copy-command, table").first().waitFor();
    return card.textContent();
  };
  await checks.run("access logs: the page of the node says who sends them", async () => {
    const text = await open("on");
    for (const said of [
      "envoy (4242)",
      "shop/checkout-7d9f8b6c5-x2x9z",
      "99.94 %",
      "522",
      "gateway~172.16.9.30",
    ])
      assert(text.includes(said), `“${said}” is not in: ${text}`);
    assert(text.includes("Its node id names another pod") && text.includes("Only claimed"), text);
  });
  await checks.run("access logs: where none arrives, the commands for it are there", async () => {
    const text = await open("silent");
    for (const system of ["envoy", "istio", "envoy-gateway"])
      assert(text.includes(`access-logs snippet --for ${system}`), text);
    assert((await card.getByRole("button", { name: "Copy" }).count()) === 3, "not each can be copied");
  });
  await checks.run("access logs: where they are off, how to switch them on is said", async () => {
    const text = await open("off");
    assert(text.includes("serve --access-logs 127.0.0.1:7118"), text);
    mock.agent.accessLogs = "on";
  });
}

async function states(checks, { page, show }, mock) {
  await checks.run("requests: nothing seen is said, not drawn", async () => {
    await show(`view=task&id=${EMPTY}`);
    await page.getByText("No requests were seen").waitFor();
    assert((await page.getByRole("grid").count()) === 0, "there is a table of nothing");
  });
  await checks.run("requests: a running task's numbers grow", async () => {
    const { id } = mock.agent.create({ kind: "requests", target: { pids: [4242] }, duration_s: 60 });
    await show(`view=task&id=${id}`);
    await page.waitForSelector("[role=grid]");
    const first = (await column(page, "Operations", "Requests"))[0];
    await page.waitForFunction(
      (before) =>
        document.querySelector("[data-row='0'] [role=gridcell]:nth-child(6)").textContent !== before,
      first,
    );
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await page.locator(".task-title .state-finished").waitFor();
  });
  await checks.run("requests: the page of the edge leads to them", async () => {
    await show(`view=task&id=${GOOD}`);
    await rowsOf(page, "Operations").filter({ hasText: "15001" }).first().click();
    await page.getByRole("link", { name: "Open the edge" }).click();
    await page.waitForURL(/view=edge/);
    await page.getByRole("link", { name: `task ${GOOD}` }).click();
    await page.waitForURL(/view=task&id=8&edge=/);
    // The page of the edge has no such table: it comes with the task's page.
    await rowsOf(page, "Operations").first().waitFor();
    const servers = await column(page, "Operations", "Server");
    assert(servers.length > 0 && servers.every((text) => text.includes("15001")), servers.join());
  });
}

async function creation(checks, { page }, mock) {
  const dialog = async () => {
    await page.goto(`${mock.origin}/?view=processes&create=1&pids=4242`);
    await page.getByLabel("Requests", { exact: true }).check();
  };
  await checks.run("requests: a task is asked for with TLS, its price told", async () => {
    await dialog();
    await page.getByLabel("TLS libraries").check();
    await page.fill("#tls-duty", "20");
    await page.locator(".capture-more summary").click();
    await page.locator("#samples-kept").selectOption("all");
    assert(/in 20 % of the time/.test(await page.locator("[data-estimate]").textContent()), "no price");
    const sent = page.waitForRequest(
      (request) => request.method() === "POST" && /\/tasks$/.test(request.url()),
    );
    await page.getByRole("button", { name: "Start", exact: true }).click();
    const body = JSON.parse((await sent).postData());
    assert(
      body.kind === "requests" && body.tls === true && body.tls_duty_percent === 20 && body.samples === "all",
      JSON.stringify(body),
    );
    await page.getByText("yes, 20 % of the time").waitFor();
  });
  await checks.run(
    "requests: what the agent does not allow cannot be asked for, and why is said",
    async () => {
      await page.route(/\/api\/v1\/config$/, (route) =>
        route.fulfill({ json: { items: [{ name: "allow_tls_capture", value: "false" }] } }),
      );
      await dialog();
      await page.getByText("must be started with --allow-tls-capture").waitFor();
      assert(await page.getByLabel("TLS libraries").isDisabled(), "it can be asked for");
      await page.unroute(/\/api\/v1\/config$/);
    },
  );
  await checks.run("requests: a task is asked for with access logs alone", async () => {
    await dialog();
    await page.getByLabel("Envoy access logs").check();
    await page.getByLabel("Sockets").uncheck();
    assert(await page.getByLabel("TLS libraries").isDisabled(), "TLS can be asked for without sockets");
    assert(/decode each request/.test(await page.locator("[data-estimate]").textContent()), "no price");
    const sent = page.waitForRequest(
      (request) => request.method() === "POST" && /\/tasks$/.test(request.url()),
    );
    await page.getByRole("button", { name: "Start", exact: true }).click();
    const body = JSON.parse((await sent).postData());
    assert(JSON.stringify(body.source) === '["access_log"]' && !("tls" in body), JSON.stringify(body));
    await page.getByText("access logs", { exact: true }).waitFor();
  });
  await checks.run("requests: access logs that are not received cannot be asked for", async () => {
    mock.agent.accessLogs = "off";
    await dialog();
    await page.getByText("The agent was started without --access-logs").waitFor();
    assert(await page.getByLabel("Envoy access logs").isDisabled(), "they can be asked for");
    mock.agent.accessLogs = "on";
  });
}

async function exports_(checks, { page, show }) {
  for (const [title, has] of [
    ["JSON", '"connections_by_protocol"'],
    ["CSV", "latency_p99_at_most_ns"],
  ])
    await checks.run(`requests: the result as ${title}`, async () => {
      await show(`view=task&id=${GOOD}`);
      await page.getByRole("button", { name: /^Export/ }).click();
      const download = page.waitForEvent("download");
      await page.locator(".menu-item").filter({ hasText: title }).click();
      const text = readFileSync(await (await download).path(), "utf8");
      assert(text.includes(has), `no ${has} in: ${text.slice(0, 200)}`);
    });
}

/** With an operation and a sample open, where the pages' own visits have none. */
async function looks(checks, browser, mock, shots) {
  for (const [width, themes] of [
    [1440, THEMES],
    [760, THEMES.slice(0, 1)],
  ]) {
    const viewport = { width, height: 900 };
    const { context, page, show } = await open(browser, mock, { viewport, bypassCSP: true });
    for (const [what, query, label] of [
      ["operation", `view=task&id=${TROUBLED}`, "Operations"],
      ["sample", `view=task&id=${TROUBLED}&requests=samples`, "Single requests"],
    ])
      await accessibleInThemes(checks, page, {
        name: (theme) => `requests: accessible with an ${what} open (${width} wide, ${theme})`,
        open: async () => {
          await show(query);
          await rowsOf(page, label).nth(1).click();
          await page.locator(".edge-panel").waitFor();
        },
        themes,
        done: async (theme) => {
          if (shots !== undefined)
            await page.screenshot({ path: `${shots}/requests-open-${what}-${width}-${theme}.png` });
          await assertFits(page, width);
        },
      });
    await context.close();
  }
}

export async function requestsWalk(checks, browser, mock, shots) {
  const opened = await open(browser, mock);
  await operations(checks, opened, mock);
  await trends(checks, opened, mock);
  await samples(checks, opened);
  await way(checks, opened, mock);
  await sidecars(checks, opened);
  await accessLogs(checks, opened);
  await receivedLogs(checks, opened, mock);
  await states(checks, opened, mock);
  await creation(checks, opened, mock);
  await exports_(checks, opened);
  await checks.run("requests: no fault on the way", async () => {
    assert(opened.faults.length === 0, opened.faults.join(" | "));
  });
  await opened.context.close();
  await looks(checks, browser, mock, shots);
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const shots = process.env.SHOTS;
  if (shots !== undefined) mkdirSync(shots, { recursive: true });
  const checks = new Checks();
  const mock = await startMock();
  const browser = await launch();
  await requestsWalk(checks, browser, mock, shots);
  await browser.close();
  await mock.close();
  checks.finish();
}
