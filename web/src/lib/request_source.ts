// Where the requests of a task come from: Envoys' access logs, sockets, or TLS libraries.

import type { RequestSource, Task, TaskSpec } from "../api/types";

interface SourceText {
  /** Of one request. */
  readonly title: string;
  /** Of what a task asks for. */
  readonly all: string;
  readonly help: string;
}

const SOURCES: Readonly<Record<RequestSource, SourceText>> = {
  access_log: {
    title: "access log",
    all: "access logs",
    help: "An Envoy reported it in its access log",
  },
  sockets: { title: "sockets", all: "sockets", help: "Decoded from what was moved over sockets" },
  tls: {
    title: "TLS library",
    all: "TLS libraries",
    help: "Decoded from plaintext that was read at a TLS library",
  },
};

export function sourceTitle(source: RequestSource): string {
  return SOURCES[source]?.title ?? source;
}

export function sourceHelp(source: RequestSource): string {
  return SOURCES[source]?.help ?? "";
}

/** "access logs, sockets" */
export function sourcesText(sources: readonly RequestSource[]): string {
  return sources.map((source) => SOURCES[source]?.all ?? source).join(", ");
}

/** The sources that a task was started with. */
export function sourcesOf({ requests }: Pick<Task, "requests">): readonly RequestSource[] {
  return requests?.source ?? ["sockets"];
}

/** The sources that a new task asks for. */
export function sourcesAsked({ source, tls }: Pick<TaskSpec, "source" | "tls">): readonly RequestSource[] {
  return source ?? (tls ? ["sockets", "tls"] : ["sockets"]);
}

/** Whether the source of each row is worth a column: TLS libraries are marked beside the protocol anyway. */
export function namesSource(rows: readonly { readonly source: RequestSource }[]): boolean {
  return rows.some(({ source }) => source === "access_log");
}
