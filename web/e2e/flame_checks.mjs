// The views, changes and details of a flame graph, by keyboard and pointer, against the stand-in.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { openPage, resize } from "./browser.mjs";
import { address, assert } from "./real.mjs";

const tree = "[role=tree]";

async function openTask(browser, mock, query) {
  const opened = await openPage(browser, mock.origin);
  await opened.page.goto(mock.url);
  await opened.page.waitForSelector(".overview-table, [role=grid]");
  await opened.page.goto(`${mock.origin}/?view=task&${query}`);
  await opened.page.waitForSelector(`${tree}, [data-function-table]`);
  return opened;
}

/** What the mirror for screen readers says about the selected frame. */
const spoken = (page, id = "flame-item") => page.locator(`#${id}`).textContent();

export async function flameChecks(checks, browser, mock, shots) {
  const shot = async (page, name) => {
    if (shots !== undefined) await page.screenshot({ path: `${shots}/${name}.png` });
  };

  await checks.run("number keys change the view, and the address says which", async () => {
    const { context, page, faults } = await openTask(browser, mock, "id=1");
    for (const [key, button, wanted] of [
      ["5", "Time order", /tab=order/],
      ["2", "Icicle", /layout=icicle/],
      ["3", "Inverted", /layout=inverted/],
      ["4", "Sandwich", /layout=sandwich/],
      ["6", "Table", /tab=table/],
    ]) {
      await page.keyboard.press(key);
      await page.getByRole("button", { name: button, exact: true, pressed: true }).waitFor();
      assert(wanted.test(await address(page)), `key ${key}: ${await address(page)}`);
    }
    await page.keyboard.press("1");
    await page.getByRole("button", { name: "Flame", exact: true, pressed: true }).waitFor();
    assert(faults.length === 0, faults.join(" | "));
    await context.close();
  });

  await checks.run("the keyboard walks the inverted view from functions to their callers", async () => {
    const { context, page } = await openTask(browser, mock, "id=1&layout=inverted");
    await page.focus(tree);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    const first = await spoken(page);
    assert(/by this path, depth 2 of/.test(first), `the first function: ${first}`);
    await page.keyboard.press("ArrowDown");
    const caller = await spoken(page);
    assert(/depth 3 of/.test(caller), `its caller: ${caller}`);
    await page.keyboard.press("ArrowUp");
    assert((await spoken(page)) === first, "up does not come back");
    await page.keyboard.press("Enter");
    await page.waitForURL(/zoom=[0-9a-f]{16}/);
    await shot(page, "flame-inverted");
    await context.close();
  });

  await checks.run(
    "a frame's function goes into the middle of a sandwich, with one total on both sides",
    async () => {
      const { context, page } = await openTask(browser, mock, "id=1");
      await page.focus(tree);
      for (let i = 0; i < 6; i += 1) await page.keyboard.press("ArrowUp");
      const name = (await spoken(page)).split(",")[0];
      await page.keyboard.press("s");
      await page.waitForURL(/layout=sandwich&fn=[0-9a-f]{16}/);
      assert(
        (await page.locator("[data-sandwich] code").textContent()) === name,
        "another function is shown",
      );
      const above = await spoken(page, "flame-item-callers");
      const below = await spoken(page);
      const share = (text) => /([\d.]+ %)/.exec(text)?.[1];
      assert(share(above) === share(below), `above ${above}; below ${below}`);
      const trees = page.locator(tree);
      assert((await trees.count()) === 2, "not two trees");
      await trees.first().focus();
      await page.keyboard.press("ArrowUp");
      await page.keyboard.press("ArrowUp");
      assert(/depth 2 of/.test(await spoken(page, "flame-item-callers")), "the callers cannot be walked");
      await page.locator(".sandwich-table [role=row][data-row='3']").click();
      await page.waitForFunction(
        (before) => document.querySelector("[data-sandwich] code").textContent !== before,
        name,
      );
      await shot(page, "flame-sandwich");
      await context.close();
    },
  );

  await checks.run("a row of the table opens the sandwich", async () => {
    const { context, page } = await openTask(browser, mock, "id=1&tab=table");
    await page.locator("[data-function-table] [role=row][data-row='0']").focus();
    await page.keyboard.press("Enter");
    await page.waitForURL(/layout=sandwich&.*fn=|fn=.*layout=sandwich/);
    await page.locator("[data-sandwich]").waitFor();
    await page.goBack();
    await page.locator("[data-function-table]").waitFor();
    await context.close();
  });

  await checks.run("changes are chips in the address that state what they leave out", async () => {
    const { context, page } = await openTask(browser, mock, "id=1");
    await page.focus(tree);
    for (let i = 0; i < 12; i += 1) await page.keyboard.press("ArrowUp");
    await page.keyboard.press("d");
    await page.waitForURL(/[?&]x=d-[0-9a-f]{16}/);
    const dropped = await page.locator("[data-dropped]").textContent();
    const share = /([\d.]+) % of all/.exec(dropped);
    assert(share !== null && Number(share[1]) > 0, `left out: ${dropped}`);
    await page.focus(tree);
    await page.keyboard.press("p");
    await page.waitForURL(/%2Cp/);
    const before = await address(page);
    await page.reload();
    await page.locator("[data-transforms] .chip").nth(1).waitFor();
    assert((await address(page)) === before, `the address changed to ${await address(page)}`);
    await shot(page, "flame-transforms");
    await page.getByRole("button", { name: "Take all away" }).click();
    await page.locator("[data-transforms]").waitFor({ state: "detached" });
    await page.goto(`${mock.origin}/?view=task&id=1&x=f-0123456789abcdef`);
    await page.getByText("not in this profile").waitFor();
    await page.getByRole("heading", { name: "Nothing is left" }).waitFor();
    await page.getByRole("button", { name: "Take all away" }).click();
    await page.locator(tree).waitFor();
    await context.close();
  });

  await checks.run("changes are put into another order by keyboard", async () => {
    const { context, page } = await openTask(browser, mock, "id=1");
    await page.focus(tree);
    for (let i = 0; i < 6; i += 1) await page.keyboard.press("ArrowUp");
    await page.keyboard.press("r");
    await page.focus(tree);
    await page.keyboard.press("p");
    await page.waitForURL(/x=r-[0-9a-f]{16}%2Cp/);
    await page
      .locator("[data-transforms] .chip")
      .first()
      .getByRole("button", { name: /^Apply later/ })
      .focus();
    await page.keyboard.press("Enter");
    await page.waitForURL(/x=p%2Cr-[0-9a-f]{16}/);
    // The focus has gone with the chip.
    await page.keyboard.press("Alt+ArrowLeft");
    await page.waitForURL(/x=r-[0-9a-f]{16}%2Cp/);
    await context.close();
  });

  await checks.run(
    "Ctrl and the wheel, drags and keys move over the width; the address has the part",
    async () => {
      const { context, page, faults } = await openTask(browser, mock, "id=4");
      const canvas = page.locator(".flame-canvas");
      const box = await canvas.boundingBox();
      const part = async () => {
        await page.waitForFunction(() => /[?&]part=\d+-\d+/.test(location.search));
        await page.waitForTimeout(400);
        const [, from, to] = /part=(\d+)-(\d+)/.exec(await address(page)).map(Number);
        return { from: from / 1e7, to: to / 1e7 };
      };
      const x = box.x + box.width * 0.25;
      const y = box.y + box.height - 18 * 4 - 9;
      await page.mouse.move(x, y);
      await page.locator("[data-tooltip]").waitFor();
      const under = () => page.locator("[data-tooltip] .tooltip-name").textContent();
      const name = await under();
      // The graph moves below a pointer that rests: the frame of before must not stay in the tooltip.
      const scrolled = await page.locator(".flame-scroll").evaluate((box) => {
        const before = box.scrollTop;
        box.scrollTop -= 54;
        return before - box.scrollTop;
      });
      if (scrolled > 0) {
        await page.waitForFunction(
          (old) => document.querySelector("[data-tooltip] .tooltip-name")?.textContent !== old,
          name,
        );
        await page.locator(".flame-scroll").evaluate((box) => {
          box.scrollTop += 54;
        });
      }
      await page.keyboard.down("Control");
      for (let i = 0; i < 6; i += 1) await page.mouse.wheel(0, -120);
      await page.keyboard.up("Control");
      const near = await part();
      const width = near.to - near.from;
      assert(Math.abs(width - 0.8 ** 6) < 0.02, `six notches show ${width}`);
      // What is under the pointer stays there.
      assert(Math.abs((0.25 - near.from) / width - 0.25) < 0.01, `from ${near.from} to ${near.to}`);
      await page.mouse.move(x + 1, y);
      assert((await under()) === name, `${await under()} instead of ${name}`);
      await shot(page, "flame-part");
      await page.mouse.down();
      await page.mouse.move(x - 200, y, { steps: 5 });
      await page.mouse.up();
      const moved = await part();
      const by = ((moved.from - near.from) / width) * box.width;
      assert(Math.abs(by - 201) < 4, `a drag of 201 pixels moved by ${by}`);
      assert(!(await address(page)).includes("zoom="), "the end of a drag was a click");
      await page.reload();
      await page.locator("[data-part]").waitFor();
      const again = await part();
      assert(again.from === moved.from && again.to === moved.to, "a reload shows another part");
      await page.focus(tree);
      await page.keyboard.press("Shift+ArrowLeft");
      await page.waitForFunction((before) => location.search !== before, new URL(await address(page)).search);
      const left = await part();
      assert(
        Math.abs(moved.from - left.from - 0.2 * width) < 0.002,
        `moved from ${moved.from} to ${left.from}`,
      );
      await page.keyboard.press("-");
      await page.waitForTimeout(400);
      const wider = await part();
      assert(wider.to - wider.from > width * 1.3, `farther shows ${wider.to - wider.from}`);
      await page.keyboard.press("Backspace");
      await page.locator("[data-part]").waitFor({ state: "detached" });
      assert(!(await address(page)).includes("part="), await address(page));
      assert(faults.length === 0, faults.join(" | "));
      await context.close();
    },
  );

  await checks.run("a high graph has a map beside it, which goes where it is clicked", async () => {
    const { context, page } = await openPage(browser, mock.origin, {
      // So low that the graph is much higher than its window.
      viewport: { width: 1000, height: 420 },
    });
    await page.goto(mock.url);
    await page.waitForSelector(".overview-table, [role=grid]");
    await page.goto(`${mock.origin}/?view=task&id=4`);
    const map = page.locator(".flame-minimap");
    await map.waitFor();
    const top = () => page.evaluate(() => document.querySelector(".flame-scroll").scrollTop);
    // The root, at the bottom, comes into view.
    await page.waitForFunction(() => document.querySelector(".flame-scroll").scrollTop > 0);
    const before = await top();
    const box = await map.boundingBox();
    await page.mouse.click(box.x + 20, box.y + 3);
    assert((await top()) < before / 2, `still at ${await top()}`);
    const graph = await page.locator(".flame-canvas").boundingBox();
    assert(graph.x + graph.width <= box.x + 1, "the map hides a part of the graph");
    await shot(page, "flame-minimap");
    await context.close();
  });

  await checks.run("the graph is saved as a picture with all its rows", async () => {
    const { context, page } = await openTask(browser, mock, "id=4");
    await page.getByRole("button", { name: /^Export/ }).click();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: /^PNG/ }).click(),
    ]);
    assert(download.suggestedFilename() === "task-4.png", download.suggestedFilename());
    const bytes = readFileSync(await download.path());
    const [width, height] = [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
    const shown = await page.evaluate(() => {
      const { width, clientHeight } = document.querySelector(".flame-canvas");
      return { width, high: document.querySelector(".flame-scroll").scrollHeight, clientHeight };
    });
    assert(bytes.subarray(1, 4).toString() === "PNG" && width === shown.width, `${width} of ${shown.width}`);
    const rows = Number(/depth \d+ of (\d+)/.exec(await spoken(page))[1]);
    assert(height === rows * 18, `${height} pixels for ${rows} rows`);
    await context.close();
  });

  await checks.run("the panel has an interval, callers and callees of the selected frame", async () => {
    const { context, page, faults } = await openTask(browser, mock, "id=1&layout=icicle");
    await page.focus(tree);
    for (let i = 0; i < 8; i += 1) await page.keyboard.press("ArrowDown");
    await page.keyboard.press("o");
    const panel = page.locator("[data-panel]");
    await panel.waitFor();
    const interval = await page.locator("[data-interval]").textContent();
    const [, low, high] = /([\d.]+) – ([\d.]+) %/.exec(interval) ?? [];
    assert(Number(low) < Number(high) && Number(high) <= 100, `the interval is ${interval}`);
    assert((await panel.locator(".relatives button").count()) >= 2, "no callers or callees");
    await shot(page, "flame-panel");
    await panel.locator(".relatives button").first().click();
    await page.waitForURL(/layout=sandwich/);
    assert(faults.length === 0, faults.join(" | "));
    await context.close();
  });

  await checks.run("the legend shows one kind or module alone", async () => {
    const { context, page } = await openTask(browser, mock, "id=1");
    await page.getByRole("button", { name: "Display" }).click();
    await page.locator(".legend-entry", { hasText: "kernel" }).click();
    await page.waitForURL(/search=kind%3Akernel/);
    assert(/% matched/.test(await page.locator("[data-matched]").textContent()), "nothing is said");
    await page.getByRole("button", { name: "By module" }).click();
    await page.waitForURL(/colour=module/);
    await page.locator(".legend-entry", { hasText: "envoy" }).click();
    await page.waitForURL(/search=mod%3A/);
    await page.locator(".legend-entry", { hasText: "envoy" }).click();
    assert(!(await address(page)).includes("search="), "a second click does not end it");
    await context.close();
  });

  await checks.run("the graph has three quarters of the window, and z gives it the rest", async () => {
    for (const [width, height, least] of [
      [1440, 900, 0.75],
      [1024, 768, 0.6],
    ]) {
      const { context, page, faults } = await openTask(browser, mock, "id=1");
      await resize(page, width, height);
      const share = () =>
        page.locator(".flame-frame").evaluate((frame) => {
          const box = frame.getBoundingClientRect();
          return (box.width * box.height) / (innerWidth * innerHeight);
        });
      const shown = await share();
      assert(shown >= least, `${(100 * shown).toFixed(1)} % of ${width} x ${height}`);
      if (width === 1440) {
        const bar = await page.locator(".result-bar").boundingBox();
        assert(bar.height <= 40, `the toolbar is ${bar.height} high`);
      }
      await page.focus(tree);
      await page.keyboard.press("z");
      await page.locator(".task-page.full").waitFor();
      assert((await share()) > 0.87, `full screen: ${await share()}`);
      await page.keyboard.press("z");
      await page.locator(".task-page.full").waitFor({ state: "detached" });
      assert(faults.length === 0, faults.join(" | "));
      await context.close();
    }
  });

  await checks.run("a graph that is higher than its window shows the side of its root", async () => {
    const { context, page } = await openTask(browser, mock, "id=4&unfold=1");
    await resize(page, 1024, 500);
    const at = () =>
      page.locator(tree).evaluate(({ scrollTop, scrollHeight, clientHeight }) => ({
        above: scrollTop,
        below: scrollHeight - clientHeight - scrollTop,
      }));
    await page.waitForFunction(() => document.querySelector("[role=tree]").scrollTop > 50);
    const flame = await at();
    assert(flame.below <= 1 && flame.above > 50, `flame: ${JSON.stringify(flame)}`);
    await page.keyboard.press("2");
    await page.waitForURL(/layout=icicle/);
    await page.waitForFunction(() => document.querySelector("[role=tree]").scrollTop <= 1);
    const icicle = await at();
    assert(icicle.above <= 1 && icicle.below > 50, `icicle: ${JSON.stringify(icicle)}`);
    await context.close();
  });

  await checks.run("start-up frames are one frame until it is clicked", async () => {
    const { context, page } = await openTask(browser, mock, "id=1");
    await page.focus(tree);
    for (let i = 0; i < 3; i += 1) await page.keyboard.press("ArrowUp");
    const folded = await spoken(page);
    assert(/^3 first frames,/.test(folded), folded);
    const names = await page.locator("[data-details] .origin").textContent();
    assert(names.startsWith("clone3 › start_thread › "), names);
    await page.fill("[data-search]", "start_thread");
    const share = await page.locator("[data-matched] b").textContent();
    assert(/^8\d\.\d % matched/.test(share), `folded frames are not found: ${share}`);
    await page.fill("[data-search]", "");
    await page.focus(tree);
    for (let i = 0; i < 3; i += 1) await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    await page.waitForURL(/unfold=1/);
    assert(
      (await spoken(page)).startsWith("clone3,"),
      `the first of them is selected: ${await spoken(page)}`,
    );
    await page.focus(tree);
    await page.keyboard.press("ArrowUp");
    assert((await spoken(page)).startsWith("start_thread,"), await spoken(page));
    await page.getByRole("button", { name: "Display" }).click();
    await page.getByLabel(/^Fold first frames/).check();
    assert(!(await address(page)).includes("unfold"), await address(page));
    await context.close();
  });

  await checks.run("the menu of a frame opens by pointer and by keys, and does what it says", async () => {
    const { context, page, faults } = await openTask(browser, mock, "id=1");
    const menu = page.locator("[data-frame-menu]");
    const box = await page.locator(tree).boundingBox();
    // The second row from below: the process of most samples.
    await page.mouse.click(box.x + 60, box.y + box.height - 27, { button: "right" });
    await menu.waitFor();
    const items = await menu.getByRole("menuitem").allTextContents();
    for (const wanted of [
      "Zoom in",
      "Focus",
      "Hide",
      "Drop stacks",
      "Callers and callees",
      "Explain",
      "Copy name",
    ])
      assert(
        items.some((text) => text.startsWith(wanted)),
        `${wanted} is not in ${items}`,
      );
    await shot(page, "flame-menu");
    await page.keyboard.press("Escape");
    await menu.waitFor({ state: "detached" });
    assert(await page.locator(tree).evaluate((node) => node === document.activeElement), "the focus is lost");
    for (let i = 0; i < 6; i += 1) await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Shift+F10");
    await menu.waitFor();
    assert(
      (await menu
        .getByRole("menuitem")
        .first()
        .evaluate((node) => node === document.activeElement)) === true,
    );
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.waitForURL(/[?&]x=f-[0-9a-f]{16}/);
    await menu.waitFor({ state: "detached" });
    assert(faults.length === 0, faults.join(" | "));
    await context.close();
  });

  await checks.run("a long press opens the menu of a frame, and picks nothing from it", async () => {
    const opened = await openPage(browser, mock.origin, {
      viewport: { width: 390, height: 844 },
      hasTouch: true,
    });
    const { context, page, faults } = opened;
    await page.goto(mock.url);
    await page.waitForSelector(".overview-table, [role=grid]");
    await page.goto(`${mock.origin}/?view=task&id=1`);
    await page.waitForSelector(tree);
    const box = await page.locator(".flame-canvas").boundingBox();
    const point = { x: box.x + 60, y: box.y + box.height - 60 };
    const before = await address(page);
    const touch = await context.newCDPSession(page);
    await touch.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [point] });
    await page.waitForTimeout(800);
    await touch.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
    await page.locator("[data-frame-menu]").waitFor();
    await page.waitForTimeout(400);
    await page.locator("[data-frame-menu]").waitFor();
    assert((await address(page)) === before, `something was picked: ${await address(page)}`);
    await page.touchscreen.tap(200, 300);
    await page.locator("[data-frame-menu]").waitFor({ state: "detached" });
    assert(faults.length === 0, faults.join(" | "));
    await context.close();
  });

  await checks.run("presets hide plumbing, or show the kernel alone", async () => {
    const { context, page } = await openTask(browser, mock, "id=1");
    for (const [button, letter, dropped] of [
      ["Hide Envoy's plumbing", "e", /nothing left out/],
      ["Kernel only", "e%2Ck", /% of all .* left out/],
    ]) {
      await page.getByRole("button", { name: "Display" }).click();
      await page.getByRole("button", { name: button }).click();
      await page.waitForURL(new RegExp(`x=${letter}(&|$)`));
      const text = await page.locator("[data-dropped]").textContent();
      assert(dropped.test(text), `${button}: ${text}`);
    }
    await context.close();
  });

  await checks.run("frames have the colour of the feature that asked for them", async () => {
    const { context, page, faults } = await openTask(browser, mock, "id=1");
    await page.getByRole("button", { name: "Display" }).click();
    await page.getByRole("button", { name: "By feature" }).click();
    await page.waitForURL(/colour=feature/);
    const entry = page.locator(".legend-entry", { hasText: "Routing" });
    await entry.click();
    await page.waitForURL(/search=feature%3A%22Routing%22/);
    const matched = await page.locator("[data-matched]").textContent();
    assert(/^\d+\.\d % matched/.test(matched) && !matched.startsWith("0.0"), matched);
    await shot(page, "flame-features");
    assert(faults.length === 0, faults.join(" | "));
    await context.close();
  });

  await checks.run("one exported file opens alone: search, zoom, views, and no request", async () => {
    const { context, page } = await openTask(browser, mock, "id=1");
    await page.getByRole("button", { name: /^Export/ }).click();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: /^HTML/ }).click(),
    ]);
    assert(/^task-1.*\.html$/.test(download.suggestedFilename()), download.suggestedFilename());
    const folder = mkdtempSync(join(tmpdir(), "profile-"));
    const path = join(folder, "profile.html");
    await download.saveAs(path);
    await context.close();

    const alone = await openPage(browser, "file://");
    const requests = [];
    alone.page.on("request", (request) => requests.push(request.url()));
    await alone.page.goto(pathToFileURL(path).href);
    await alone.page.waitForSelector(tree);
    const title = await alone.page.locator("h1").textContent();
    assert(title.includes("</script><img src=x>"), `the title is ${title}`);
    assert((await alone.page.locator("img").count()) === 0, "an element was made from the title");
    await alone.page.fill("[data-search]", "kind:kernel");
    assert(/% matched/.test(await alone.page.locator("[data-matched]").textContent()), "nothing is found");
    await alone.page.focus(tree);
    for (let i = 0; i < 4; i += 1) await alone.page.keyboard.press("ArrowUp");
    await alone.page.keyboard.press("Enter");
    await alone.page.waitForURL(/#\?.*zoom=[0-9a-f]{16}/);
    await alone.page.keyboard.press("3");
    await alone.page.getByRole("button", { name: "Inverted", exact: true, pressed: true }).waitFor();
    await alone.page.keyboard.press("4");
    await alone.page.locator("[data-sandwich]").waitFor();
    const before = await address(alone.page);
    await alone.page.reload();
    await alone.page.locator("[data-sandwich]").waitFor();
    assert((await address(alone.page)) === before, "a reload changes the view");
    assert((await alone.page.getByRole("button", { name: "Time order" }).count()) === 0, "a dead control");
    await shot(alone.page, "flame-offline");
    const foreign = requests.filter((url) => !url.startsWith("file:") && !url.startsWith("data:"));
    assert(foreign.length === 0, `requests: ${foreign}`);
    assert(alone.faults.length === 0, alone.faults.join(" | "));
    await alone.context.close();
    rmSync(folder, { recursive: true });
  });
}
