// Text as a hostile program chooses it, put wherever an answer has text from outside.

export const MARKUP = `<img src=x onerror="alert(1)"><b onmouseover='x'>&amp;`;
export const HOSTILE = [
  MARKUP,
  "evil\u202egnp.exe\u2066\u061c",
  "bell\u0007 escape\u001b[31m null\u0000 newline\n tab\t c1\u0085 end",
  `long-${"x".repeat(4096)}`,
  "quotes ' \" ` {{y}} %s \\",
];

/** Keys whose text comes from programs, files or connections; everything else is the agent's own. */
const OUTSIDE = new Set([
  "comm",
  "program",
  "exe",
  "user",
  "process",
  "path",
  "module",
  "file",
  "host",
  "header",
  "server_name",
  "service",
  "reason",
  "detail",
  "title",
  "frame",
  "container",
  "image",
  "namespace",
  "endpoint",
  "configured",
  "verdict",
  "text",
  "summary",
  "requests_unknown",
  "workload",
  "supply",
  "about",
  "rule",
  "user_file",
  "method",
  "route",
  "authority",
  "client",
  "request_id",
  "trace_id",
  "span_id",
  "node_id",
  "cluster",
  "stands_out",
  "unknown_reason",
  "pod",
  "peer",
]);
/** Words of the agent under such keys. */
const CLOSED = /^(significant|not_significant|too_few|unknown)$/;
const LISTS = new Set(["alpn_offered", "headers", "arguments", "notes", "stack", "limits"]);

/** The same answer with hostile text in it; `next` numbers the texts so that all come up. */
export function poisoned(value, next = { at: 0 }) {
  const text = (plain) => {
    next.at += 1;
    return `${HOSTILE[next.at % HOSTILE.length]} ${plain}`;
  };
  const walk = (node, key) => {
    if (Array.isArray(node))
      return node.map((each) => (typeof each === "string" && LISTS.has(key) ? text(each) : walk(each, key)));
    if (node !== null && typeof node === "object")
      return Object.fromEntries(Object.entries(node).map(([name, each]) => [name, walk(each, name)]));
    if (
      typeof node === "string" &&
      !CLOSED.test(node) &&
      (OUTSIDE.has(key) || (key === "name" && !/^(on_cpu|off_cpu|wall)$/.test(node)))
    )
      return text(node);
    return node;
  };
  return walk(value, "");
}
