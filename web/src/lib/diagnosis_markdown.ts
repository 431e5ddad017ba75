// A diagnosis as Markdown, for tickets and chats. Names come from programs: they stand in code spans,
// and nothing in them can end one.

import type { Diagnosis, Finding, Workers } from "../api/types";
import {
  CONFIDENCES,
  estimateText,
  interval,
  SEVERITIES,
  SYSTEMS,
  savingText,
  share,
  throttledText,
  waitsWatched,
} from "./diagnosis";
import { count, duration, visible } from "./format";
import { matrixTable } from "./matrix";

const UNKNOWN = "unknown";
const MOST_NAME = 200;

/** Sentences of the agent: what Markdown or HTML would take for markup is escaped. */
export function prose(text: string): string {
  return visible(text).replaceAll(/[\\`*_[\]<>|#~!&]/g, "\\$&");
}

/** A name as a code span that is longer than any row of backticks in it. */
export function code(text: string): string {
  const shown = visible(text).slice(0, MOST_NAME).replaceAll("|", "¦").trim();
  if (shown === "") return "–";
  const longest = Math.max(0, ...[...shown.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  const room = shown.startsWith("`") || shown.endsWith("`") ? " " : "";
  return `${fence}${room}${shown}${room}${fence}`;
}

/** A block that no text in it can close. */
function block(text: string, language: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length));
  const fence = "`".repeat(longest + 1);
  const lines = text.replace(/\n$/, "").split("\n").map(visible);
  return [`${fence}${language}`, ...lines, fence].join("\n");
}

function table(head: readonly string[], rows: readonly (readonly string[])[], numeric = 1): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const rule = head.map((_, i) => (i < numeric ? "---" : "---:"));
  return [line(head), line(rule), ...rows.map(line)].join("\n");
}

function totals({ totals: all, coverage, window, workers }: Diagnosis): string {
  const { cpu_cores, cpu_us_per_request, requests } = all;
  const named =
    coverage.named_frames_percent === null
      ? ""
      : `${share(coverage.named_frames_percent)} of the user frames named, `;
  const lines = [
    `- CPU: ${cpu_cores === null ? UNKNOWN : `${cpu_cores.toFixed(2)} cores`}`,
    `- CPU of one request: ${cpu_us_per_request === null ? UNKNOWN : estimateText(cpu_us_per_request)}`,
    `- Requests: ${requests === null ? UNKNOWN : `${requests.per_second.toFixed(1)} a second (${prose(requests.source)})`}`,
    `- Measured: ${window.duration_s.toFixed(0)} s, ${count(coverage.samples)} samples, ${named}${share(coverage.named_percent)} can be diagnosed, ${share(coverage.attributed_percent)} attributed`,
  ];
  const { throttled } = workers;
  if (throttled !== null) lines.push(`- Throttled: ${throttledText(throttled)}`);
  return lines.join("\n");
}

function finding(each: Finding, at: number): string {
  const { mark, word } = SEVERITIES[each.severity];
  const parts = [
    `### ${at + 1}. ${prose(each.title)}: ${share(each.share_percent)} (${interval(each.low, each.high)})`,
    `${mark} ${word} · saving ${savingText(each) ?? UNKNOWN} · ${CONFIDENCES[each.confidence].word}`,
    prose(each.reason),
    ...(each.configured === null ? [] : [`Configured now: ${code(each.configured)}`]),
  ];
  if (each.evidence.length > 0)
    parts.push(
      table(
        ["Frame", "Share", "Samples"],
        each.evidence.map((item) => [code(item.frame), share(item.share_percent), count(item.samples)]),
      ),
    );
  for (const setting of each.settings)
    parts.push(
      `**${SYSTEMS[setting.system]}**: ${code(setting.key)} (${prose(setting.scope)})`,
      block(setting.yaml, "yaml"),
      `Side effects: ${setting.side_effects === "" ? "none known" : prose(setting.side_effects)}`,
    );
  return parts.join("\n\n");
}

function matrix(diagnosis: Diagnosis): string {
  const { rows, columns, total } = matrixTable(diagnosis.matrix);
  if (rows.length === 0) return "No samples.";
  return table(
    ["Feature", ...columns.map(({ title }) => prose(title)), "Sum"],
    [
      ...rows.map(({ feature, cells, sum }) => [
        prose(feature.title),
        ...cells.map((cell) => (cell === null ? "" : share(cell.share_percent))),
        share(sum.share_percent),
      ]),
      ["Sum", ...columns.map(({ sum }) => share(sum.share_percent)), share(total.share_percent)],
    ],
  );
}

function workers(part: Workers): string {
  const { threads } = part;
  const watched = waitsWatched(part);
  return table(
    ["Thread", "CPU", "Samples", "Run queue", "Waits"],
    threads.map((thread) => [
      `${code(thread.name)} ${thread.tid}`,
      share(thread.cpu_percent),
      share(thread.share_percent),
      thread.run_queue_percent === null ? UNKNOWN : share(thread.run_queue_percent),
      watched
        ? thread.waits.map(({ reason, ns }) => `${prose(reason)} ${duration(ns)}`).join(", ") || "none"
        : UNKNOWN,
    ]),
  );
}

function list(items: readonly string[]): string {
  return items.map((item) => `- ${item}`).join("\n");
}

/** The whole report; `about` is what was measured. */
export function reportMarkdown(diagnosis: Diagnosis, about: string): string {
  const { findings, good, limits, configuration, coverage } = diagnosis;
  const parts = [`# Diagnosis of ${prose(about)}`, `**${prose(diagnosis.verdict)}**`, totals(diagnosis)];
  if (!coverage.sufficient && coverage.supply !== null)
    parts.push(`To know more, supply ${prose(coverage.supply)}.`);
  parts.push("## Findings", findings.length === 0 ? "None." : findings.map(finding).join("\n\n"));
  parts.push("## Who asked for the CPU, and what it did", matrix(diagnosis));
  parts.push("## Threads", workers(diagnosis.workers));
  if (good.length > 0)
    parts.push("## Good", list(good.map(({ title, text }) => `**${prose(title)}** ${prose(text)}`)));
  if (configuration !== null)
    parts.push(
      `## Configuration (${prose(configuration.source)})`,
      list(configuration.items.map(({ key, value }) => `${code(key)}: ${code(value)}`)),
    );
  parts.push(
    "## What this cannot know",
    limits.length === 0 ? "Nothing is missing." : list(limits.map(prose)),
  );
  return `${parts.join("\n\n")}\n`;
}
