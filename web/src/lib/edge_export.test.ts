import { expect, test } from "vitest";
import type { EdgeTable } from "../api/types";
import { containerNames } from "./containers_testing";
import { edgesCsv } from "./edge_export";
import { edgeEnd, edgeOf, edgeSide, untimed } from "./edges_testing";

test("each edge is a line, the unknown is empty, and text stays text", () => {
  const side = edgeSide({
    connections: { count: 3, open: 1 },
    write: untimed(2, 40),
    read: untimed(1, 9),
    drop: { count: 4, by_reason: {} },
  });
  const client = edgeEnd({ comm: '=cmd|"x",\n', pid: 7, address: "10.0.0.1" });
  const server = edgeEnd({ address: "10.0.0.2", port: 80, container: "c0" });
  const table = {
    edges: [
      edgeOf(
        client,
        server,
        { client: side, server: null },
        { id: "00ff", original_destination: "10.0.0.9:80" },
      ),
    ],
    containers: {
      c0: containerNames("shop", "web-0", "web", {
        image: "web:1",
        workload: { kind: "StatefulSet", name: "web" },
      }),
    },
  } as unknown as EdgeTable;
  const [head, line, ...rest] = edgesCsv(table).split("\r\n");
  expect(head).toMatch(
    /^id,protocol,client,client_pid,.*,errors,client_namespace,client_pod,client_container_name,.*,server_image$/,
  );
  expect(line).toBe(
    `"00ff","tcp","'=cmd|""x"",\n",7,"10.0.0.1",,,,"10.0.0.2",80,"c0","10.0.0.9:80",3,1,40,9,3,,4,,,,,,,,,"shop","web-0","web","StatefulSet","web","web:1"`,
  );
  expect(rest).toEqual([""]);
});
