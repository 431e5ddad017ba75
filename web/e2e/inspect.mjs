// What every page must hold, whatever it shows: accessible, reachable by keyboard, nothing cut off,
// nothing taken for markup.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { assert } from "./real.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** The rules of axe that judge colours; all others read what no theme changes. */
export const COLOURS = { runOnly: ["color-contrast", "link-in-text-block"] };

/**
 * Serious and critical findings of axe, in words. `options` are those of axe: without them every rule. The context must
 * bypass the policy: axe is injected.
 */
export async function graveFindings(page, options = {}) {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(AXE);
  const violations = await page.evaluate(
    async (given) => (await globalThis.axe.run(given)).violations,
    options,
  );
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 2).map((node) => node.html.slice(0, 120))}`);
}

/** What reaches beyond the right edge of the page; tables, graphs and code may scroll sideways in a part of their own. */
export async function assertFits(page, width) {
  const culprits = await page.evaluate((limit) => {
    const isPage = (each) => each === null || each.matches("main, main > *, body");
    const scrolls = (each) => getComputedStyle(each).overflowX !== "visible";
    const inPart = (each) => {
      for (let above = each.parentElement; !isPage(above); above = above.parentElement)
        if (scrolls(above)) return true;
      return false;
    };
    return [...document.querySelectorAll("main *")]
      .filter((each) => each.getBoundingClientRect().right > limit + 1 && !inPart(each))
      .map(
        (each) => `${each.tagName.toLowerCase()}.${each.className} to ${each.getBoundingClientRect().right}`,
      );
  }, width);
  assert(culprits.length === 0, `wider than ${width}: ${culprits.slice(0, 3).join(", ")}`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert(wide <= width, `${wide} wide instead of ${width}`);
}

/** Every cell of a table stands on the line of its row: there is a width for each column. */
export async function assertRowsOnOneLine(page) {
  const broken = await page.evaluate(() =>
    [...document.querySelectorAll("[role=grid] [role=row]")]
      .filter((row) => {
        const middles = [...row.children].map((cell) => {
          const { top, bottom } = cell.getBoundingClientRect();
          return (top + bottom) / 2;
        });
        return Math.max(...middles) - Math.min(...middles) > 6;
      })
      .map(
        (row) => `${row.closest("[role=grid]").getAttribute("aria-label")}: ${row.textContent.slice(0, 40)}`,
      ),
  );
  assert(broken.length === 0, `cells on several lines in ${broken[0]}`);
}

/**
 * Marks every control that Tab must reach; of a group of radio buttons and of a grid only one. Rows
 * of a list are alike and change places while they are walked: the first two stand for all.
 */
async function markControls(page) {
  return page.evaluate(() => {
    const scope = document.querySelector("dialog[open]") ?? document.body;
    const selector = "a[href], button, input, select, textarea, summary, [tabindex]";
    const groups = new Set();
    let count = 0;
    let all = 0;
    for (const each of document.querySelectorAll("[data-walk]")) each.removeAttribute("data-walk");
    for (const each of scope.querySelectorAll(selector)) {
      const radio = each instanceof HTMLInputElement && each.type === "radio";
      if (radio && groups.has(each.name)) continue;
      const row = each.closest("[data-row], .choices > li");
      const place = row === null ? 0 : [...row.parentElement.children].indexOf(row);
      const closed = each.closest("details:not([open])");
      const hidden =
        each.disabled === true ||
        each.tabIndex < 0 ||
        each.closest("[inert], [hidden]") !== null ||
        (closed !== null && !(each.tagName === "SUMMARY" && each.parentElement === closed)) ||
        !each.checkVisibility({ checkVisibilityCSS: true, opacityProperty: false });
      if (hidden) continue;
      all += 1;
      if (place > 1) continue;
      if (radio) groups.add(each.name);
      each.setAttribute("data-walk", String(count));
      count += 1;
    }
    return { count, all };
  });
}

/**
 * Presses Tab until it comes round. Every control must be reached and, when it is, look different
 * from when it is not.
 */
export async function walkByKeyboard(page) {
  for (let again = 5; ; again -= 1) {
    const problem = await walkOnce(page);
    if (problem === null) return;
    // A row may have changed places under the walk, and does not do so each time.
    assert(again > 0 && problem.startsWith("Tab does not reach"), problem);
  }
}

/** What is wrong, or null. */
async function walkOnce(page) {
  const { count, all } = await markControls(page);
  assert(count > 0, "the page has no control");
  const reached = new Set();
  const unseen = [];
  for (let press = 0; press < all + 12; press += 1) {
    await page.keyboard.press("Tab");
    const seen = await page.evaluate(() => {
      const active = document.activeElement;
      if (active === null || active === document.body) return null;
      const look = (element) => {
        const { outlineStyle, outlineWidth, boxShadow, borderColor, backgroundColor } =
          getComputedStyle(element);
        const outline = outlineStyle !== "none" && Number.parseFloat(outlineWidth) > 0;
        return { outline, rest: `${boxShadow} ${borderColor} ${backgroundColor}` };
      };
      const radio = active instanceof HTMLInputElement && active.type === "radio" ? active.name : null;
      const marked =
        active.getAttribute("data-walk") ??
        (radio === null
          ? null
          : (document
              .querySelector(`input[type=radio][name="${CSS.escape(radio)}"][data-walk]`)
              ?.getAttribute("data-walk") ?? null));
      // Some rings are drawn on what is around a field.
      const around = [active, active.parentElement, active.nextElementSibling].filter(Boolean);
      const focused = around.map(look);
      const name = `${active.tagName.toLowerCase()}.${active.className} "${(active.textContent ?? "").trim().slice(0, 30)}"`;
      if (focused.some(({ outline }) => outline)) return { marked, visible: true, name };
      active.blur();
      const plain = around.map(look);
      active.focus({ focusVisible: true });
      return { marked, visible: focused.some(({ rest }, i) => rest !== plain[i].rest), name };
    });
    if (seen === null) continue;
    if (!seen.visible) unseen.push(seen.name);
    if (seen.marked !== null) reached.add(seen.marked);
    if (reached.size === count) break;
  }
  const missed = await page.evaluate(
    (known) =>
      [...document.querySelectorAll("[data-walk]")]
        .filter((each) => !known.includes(each.getAttribute("data-walk")))
        .map(
          (each) =>
            `${each.tagName.toLowerCase()}.${each.className} "${(each.textContent ?? "").slice(0, 30)}"`,
        ),
    [...reached],
  );
  if (unseen.length > 0) return `no visible focus: ${[...new Set(unseen)].slice(0, 3).join("; ")}`;
  if (missed.length > 0) return `Tab does not reach ${missed.length}: ${missed.slice(0, 3).join("; ")}`;
  return null;
}

/** Characters that change how what stands around them is read: controls, and marks of direction. */
const UNSAFE =
  "[\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]";

/** No name was taken for markup, and none turns the text around it. */
export async function assertOnlyText(page) {
  const found = await page.evaluate((unsafe) => {
    const pattern = new RegExp(unsafe);
    const problems = [];
    if (document.querySelector("img, script:not([src]), iframe, object, embed, b[onmouseover]") !== null)
      problems.push("an element was made from a name");
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
    for (let node = walker.nextNode(); node !== null && problems.length < 4; node = walker.nextNode()) {
      if (node.nodeType === Node.TEXT_NODE) {
        if (pattern.test(node.data))
          problems.push(
            `raw in a text: ${JSON.stringify(node.data.slice(0, 60))} in ${node.parentElement.className}`,
          );
        continue;
      }
      for (const name of ["title", "aria-label", "aria-valuetext", "placeholder"]) {
        const value = node.getAttribute(name);
        if (value !== null && pattern.test(value))
          problems.push(`raw in ${name}: ${JSON.stringify(value.slice(0, 60))} of ${node.className}`);
      }
    }
    return problems;
  }, UNSAFE);
  assert(found.length === 0, found.join("; "));
}

/** There is something to read, and no endless "loading". */
export async function assertNotBlank(page) {
  const text = await page.evaluate(() => document.querySelector("main")?.innerText.trim() ?? "");
  assert(text.length > 10, `the page says: ${text}`);
}
