import { expect, it } from "vitest";
import type { RequestSidecar, SidecarTimes } from "../api/types";
import { values } from "./requests_testing";
import { classShares, headerText, isLogged, splitPieces, splitText, trustedPairs } from "./sidecar";

const TIMES: SidecarTimes = {
  inside_ns: values([300, 300, 1]),
  read_wait_ns: values(),
  to_upstream_ns: values([100, 100, 1]),
  upstream_ns: values([700, 700, 1]),
  answer_wait_ns: values([50, 50, 1]),
  to_client_ns: values([200, 200, 1]),
};

it("the bar is of the parts that were measured, without a part that is in another", () => {
  const pieces = splitPieces(TIMES);
  expect(pieces.map(({ part, share }) => [part.key, share])).toEqual([
    ["to_upstream", 0.1],
    ["upstream", 0.7],
    ["to_client", 0.2],
  ]);
  expect(splitText(pieces)).toBe("Request path 100 ns, Upstream 700 ns, Response path 200 ns");
  expect(
    splitPieces({ ...TIMES, to_upstream_ns: values(), upstream_ns: values(), to_client_ns: values() }),
  ).toEqual([]);
});

it("pairs that order decided are told and not trusted", () => {
  const pairs = [
    { class: "request_id", pairs: 60, share: 0.6, times: TIMES },
    { class: "order", pairs: 40, share: 0.4, times: TIMES },
  ] as RequestSidecar["pairs"];
  expect(classShares({ pairs }).map(({ title, text, trusted }) => [title, text, trusted])).toEqual([
    ["request id", "60.0 % (60)", true],
    ["FIFO order only", "40.0 % (40)", false],
  ]);
  expect(trustedPairs({ pairs })).toBe(60);
  expect(trustedPairs({ pairs: [] })).toBe(0);
});

it("pairs that the process reports itself are trusted, and it is said", () => {
  const pairs = [{ class: "access_log", pairs: 9, share: 1, times: TIMES }] as RequestSidecar["pairs"];
  expect(classShares({ pairs })).toMatchObject([{ title: "access log", trusted: true }]);
  expect(trustedPairs({ pairs })).toBe(9);
  expect(isLogged({ pairs })).toBe(true);
  expect(isLogged({ pairs: [] })).toBe(false);
});

it("the header stands beside what was measured", () => {
  const upstream_header = { pairs: 200, header_ms: 2200, measured_ns: 2_320_000_000, agreeing: 150 };
  expect(headerText({ upstream_header })).toBe(
    "the process says 11.0 ms on average in x-envoy-upstream-service-time, 11.6 ms were measured; 75.0 % of 200 pairs agree within 2 ms",
  );
  expect(headerText({ upstream_header: null })).toBeNull();
});
