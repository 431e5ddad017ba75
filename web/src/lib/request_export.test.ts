import { expect, it } from "vitest";
import { operationsCsv } from "./request_export";
import { answer, operation, values } from "./requests_testing";

it("each operation is a line, the unknown is empty, and text stays text", () => {
  const text = operationsCsv(
    answer({
      operations: [
        operation({
          method: '=cmd|"x"',
          latency_ns: values(),
          errors_by_class: { client: 2, server: 0, broken: 0 },
        }),
        operation({ edge: null, route: null, other: true }),
      ],
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
  expect(cell(second!, "client")).toBe("");
  expect(cell(second!, "route")).toBe("");
  expect(cell(second!, "other")).toBe('"true"');
  expect(cell(second!, "latency_p99_at_most_ns")).toBe("1065535");
});
