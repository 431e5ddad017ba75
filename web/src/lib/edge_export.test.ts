import { expect, test } from "vitest";
import type { EdgeTable } from "../api/types";
import { containerNames } from "./containers_testing";
import { edgesCsv } from "./edge_export";

const end = (comm: string | null, address: string) => ({
  pid: comm === null ? null : 7,
  start_ticks: comm === null ? null : 1,
  comm,
  container: null,
  name: null,
  address,
  network_namespace: null,
  port: null,
});

test("each edge is a line, the unknown is empty, and text stays text", () => {
  const side = {
    connections: { count: 3, open: 1 },
    write: { count: 2, bytes: 40, time_ns: null, histogram: null },
    read: { count: 1, bytes: 9, time_ns: null, histogram: null },
    retransmit: null,
    drop: { count: 4, by_reason: {} },
    reset: null,
    error: null,
    receive_wait: null,
    write_rtt_us: null,
    min_rtt_us: null,
  };
  const table = {
    edges: [
      {
        id: "00ff",
        client: end('=cmd|"x",\n', "10.0.0.1"),
        server: { ...end(null, "10.0.0.2"), port: 80, container: "c0" },
        original_destination: "10.0.0.9:80",
        protocol: "tcp",
        tls: null,
        metrics: { client: side, server: null },
      },
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
