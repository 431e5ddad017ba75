// Headless Chromium that notes everything a correct page never does: console errors, exceptions,
// violations of the content security policy, and requests to anyone but the agent.

import { chromium } from "playwright-core";

const ARGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export async function launch() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ARGS });
}

/** Opens a page whose faults are collected in `faults`. `options` are those of a browser context. */
export async function openPage(browser, origin, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const faults = [];
  await context.exposeFunction("reportViolation", (text) => faults.push(`CSP: ${text}`));
  await context.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (event) => {
      globalThis.reportViolation(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
    });
  });
  const page = await context.newPage();
  page.on("console", (message) => {
    // Chromium gives up what it loads when an interface of the machine comes or goes, as those of other tests do.
    if (message.text().includes("net::ERR_NETWORK_CHANGED")) return;
    if (message.type() === "error" || message.type() === "warning")
      faults.push(`console: ${message.text()} (${message.location().url})`);
  });
  page.on("pageerror", (error) => faults.push(`exception: ${error.message}`));
  page.on("request", (request) => {
    const { protocol, origin: target } = new URL(request.url());
    if (protocol.startsWith("http") && target !== origin) faults.push(`request to ${request.url()}`);
  });
  return { context, page, faults };
}

/** Gives the window another size, and waits until the page has drawn itself in it. */
export async function resize(page, width, height) {
  await page.setViewportSize({ width, height });
  // What draws on a canvas measures its box within the next frame.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

/** Opens what the dialog of a new task keeps folded. */
export async function openOptions(page) {
  const options = page.locator("details.task-options");
  if ((await options.getAttribute("open")) === null) await options.locator("summary").click();
}
