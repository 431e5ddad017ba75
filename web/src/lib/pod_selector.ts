// Pods as targets, by their names: what a selector matches, and how it is written. The agent decides; this is for
// what the page says before it is asked. Label selectors are read as the agent does
// (crates/host/src/container_names/labels.rs).

import type { ContainerNames, PodSelector } from "../api/types";

type Requirement = (labels: Readonly<Record<string, string>>) => boolean;

const KEY = "[A-Za-z0-9._/-]+";
const VALUE = "[A-Za-z0-9._-]*";
const EXISTS = new RegExp(`^(!?)\\s*(${KEY})$`);
const COMPARES = new RegExp(`^(${KEY})\\s*(==|=|!=)\\s*(${VALUE})$`);
const IS_IN = new RegExp(`^(${KEY})\\s+(in|notin)\\s*\\(([A-Za-z0-9._,\\s-]*)\\)$`);

function requirement(text: string): Requirement | null {
  const exists = EXISTS.exec(text);
  if (exists !== null) {
    const [, not, key] = exists;
    return (labels) => Object.hasOwn(labels, key!) === (not === "");
  }
  const compares = COMPARES.exec(text);
  if (compares !== null) {
    const [, key, operator, value] = compares;
    return (labels) => (Object.hasOwn(labels, key!) && labels[key!] === value) === (operator !== "!=");
  }
  const isIn = IS_IN.exec(text);
  if (isIn === null) return null;
  const [, key, operator, list] = isIn;
  const values = new Set(list!.split(",").map((value) => value.trim()));
  if ([...values].some((value) => /\s/.test(value))) return null;
  return (labels) => (Object.hasOwn(labels, key!) && values.has(labels[key!]!)) === (operator === "in");
}

/** Parts between commas that are not in parentheses. */
function parts(text: string): string[] {
  const found = [""];
  let depth = 0;
  for (const char of text) {
    if (char === "(") depth += 1;
    if (char === ")") depth -= 1;
    if (char === "," && depth <= 0) found.push("");
    else found[found.length - 1] += char;
  }
  return found;
}

/** Whether labels meet a selector; null for what is none. */
export function labelsMeet(selector: string): Requirement | null {
  const all = parts(selector).map((part) => requirement(part.trim()));
  if (all.some((one) => one === null)) return null;
  return (labels) => all.every((one) => one!(labels));
}

/** Whether a container is meant. */
export function selectorMeans(selector: PodSelector): (names: ContainerNames | null | undefined) => boolean {
  const { namespace, name, labels, container } = selector;
  const meet = labels === undefined ? (): boolean => true : labelsMeet(labels);
  return (names) =>
    names !== null &&
    names !== undefined &&
    meet !== null &&
    (namespace === undefined || names.pod?.namespace === namespace) &&
    (name === undefined || names.pod?.name === name) &&
    (container === undefined || names.name === container) &&
    meet(names.labels);
}

/** As the agent writes it: `pod shop/web-0, container istio-proxy`. */
export function selectorText({ namespace, name, labels, container }: PodSelector): string {
  const pods =
    name === undefined
      ? namespace === undefined
        ? null
        : `pods of ${namespace}`
      : namespace === undefined
        ? `pod ${name}`
        : `pod ${namespace}/${name}`;
  const rest = [
    labels === undefined ? null : `labels ${labels}`,
    container === undefined ? null : `container ${container}`,
  ];
  return [pods, ...rest].filter((part) => part !== null).join(", ");
}

/** What the command takes for an id instead of a name. */
const IS_ID = /^[0-9a-fA-F-]{12,}$/;

/** Option and value of the command; null where it has no such choice. */
export function selectorOption(selector: PodSelector): readonly [string, string] | null {
  const { namespace, name, labels, container } = selector;
  if (name !== undefined) {
    if (labels !== undefined || [namespace, name].some((part) => part?.includes("/"))) return null;
    if (namespace === undefined) return container === undefined ? ["--pod", name] : null;
    return ["--pod", [namespace, name, ...(container === undefined ? [] : [container])].join("/")];
  }
  if (namespace !== undefined) return null;
  if (labels !== undefined) return container === undefined ? ["--labels", labels] : null;
  return container === undefined || IS_ID.test(container) ? null : ["--container", container];
}
