import { describe, expect, it } from "vitest";
import { containerNames } from "./containers_testing";
import { labelsMeet, selectorMeans, selectorOption, selectorText } from "./pod_selector";

// The cases of crates/host/src/container_names/labels.rs.
describe("a label selector", () => {
  const labels = { app: "web", "app.kubernetes.io/tier": "front" };
  it.each([
    ["app=web", true],
    ["app==web", true],
    [" app = web ", true],
    ["app!=web", false],
    ["app!=db", true],
    ["missing!=db", true],
    ["app", true],
    ["!app", false],
    ["!missing", true],
    ["app in (db, web)", true],
    ["app notin (db,web)", false],
    ["missing notin (db)", true],
    ["app=web,app.kubernetes.io/tier in (front),!canary", true],
    ["app=web,app.kubernetes.io/tier=back", false],
    ["toString", false],
  ])("%s: %s", (selector, expected) => {
    expect(labelsMeet(selector)?.(labels)).toBe(expected);
  });

  it.each([
    "",
    "app=web,",
    "app=web,tier within (a)",
    "app in (a",
    "a b",
    "=web",
    "app=we b",
    "app in (a b)",
  ])("is not: %s", (selector) => {
    expect(labelsMeet(selector)).toBeNull();
    expect(selectorMeans({ labels: selector })(containerNames("shop", "web-0", "web"))).toBe(false);
  });
});

describe("pods by their names", () => {
  const proxy = containerNames("shop", "web-0", "istio-proxy", { labels: { app: "web" } });

  it.each([
    [{ name: "web-0" }, true],
    [{ name: "web-0", namespace: "shop" }, true],
    [{ name: "web-0", namespace: "other" }, false],
    [{ name: "web-0", container: "web" }, false],
    [{ labels: "app=web", namespace: "shop", container: "istio-proxy" }, true],
    [{ container: "istio-proxy" }, true],
  ])("%o means the proxy: %s", (selector, expected) => {
    expect(selectorMeans(selector)(proxy)).toBe(expected);
    expect(selectorMeans(selector)(null)).toBe(false);
  });

  it.each([
    [{ name: "web-0" }, "pod web-0", ["--pod", "web-0"]],
    [{ name: "web-0", namespace: "shop" }, "pod shop/web-0", ["--pod", "shop/web-0"]],
    [
      { name: "web-0", namespace: "shop", container: "istio-proxy" },
      "pod shop/web-0, container istio-proxy",
      ["--pod", "shop/web-0/istio-proxy"],
    ],
    [{ name: "web-0", container: "istio-proxy" }, "pod web-0, container istio-proxy", null],
    [{ labels: "app=web" }, "labels app=web", ["--labels", "app=web"]],
    [{ labels: "app=web", namespace: "shop" }, "pods of shop, labels app=web", null],
    [{ container: "envoy" }, "container envoy", ["--container", "envoy"]],
    [{ container: "abcdefabcdef" }, "container abcdefabcdef", null],
  ] as const)("%o is written as the agent and the command do", (selector, text, option) => {
    expect(selectorText(selector)).toBe(text);
    expect(selectorOption(selector)).toEqual(option);
  });
});
