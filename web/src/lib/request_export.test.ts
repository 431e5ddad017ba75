import { expect, it } from "vitest";
import { containerNames } from "./containers_testing";
import { operationsCsv } from "./request_export";
import { answer, EDGE, operation, values } from "./requests_testing";

it("each operation is a line, the unknown is empty, and text stays text", () => {
  const text = operationsCsv(
    answer({
      operations: [
        operation({
          edge: { ...EDGE, client: { ...EDGE.client, container: "c0" } },
          method: '=cmd|"x"',
          source: "access_log",
          latency_ns: values(),
          errors_by_class: { client: 2, server: 0, broken: 0 },
        }),
        operation({ edge: null, route: null, other: true }),
      ],
      containers: { c0: containerNames("shop", "web-0", "web") },
    }),
  );
  const [head, first, second, rest] = text.split("\r\n");
  expect(rest).toBe("");
  const names = head!.split(",");
  const cell = (line: string, name: string) => line.split(",")[names.indexOf(name)];
  expect(cell(first!, "method")).toBe(`"'=cmd|""x"""`);
  expect(cell(first!, "latency_p50_at_most_ns")).toBe("");
  expect(cell(first!, "errors_client")).toBe("2");
  expect(cell(first!, "per_second")).toBe("5");
  expect(cell(first!, "server_port")).toBe("15001");
  expect(names.slice(-14, -11)).toEqual(["client_container", "server_container", "client_namespace"]);
  expect(
    ["client_container", "client_pod", "client_container_name"].map((name) => cell(first!, name)),
  ).toEqual(['"c0"', '"web-0"', '"web"']);
  expect(cell(first!, "server_pod")).toBe("");
  expect(cell(second!, "client_pod")).toBe("");
  expect(cell(first!, "source")).toBe('"access_log"');
  expect(cell(second!, "source")).toBe('"sockets"');
  expect(cell(second!, "client")).toBe("");
  expect(cell(second!, "route")).toBe("");
  expect(cell(second!, "other")).toBe('"true"');
  expect(cell(second!, "latency_p99_at_most_ns")).toBe("1065535");
});
