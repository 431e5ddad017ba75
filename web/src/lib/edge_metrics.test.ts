import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { EDGE_METRICS } from "./edge_metrics";

const DOCUMENT = new URL("../../../docs/http-api.json", import.meta.url);

test("the table has every metric that the API has as a series", () => {
  const { schemas } = JSON.parse(new TextDecoder().decode(readFileSync(DOCUMENT))).components;
  const { connections, open, connects_failed, ...metrics } = schemas.SideSeries.properties;
  const ids = Object.values(EDGE_METRICS).map(({ id }) => id);
  expect(ids.sort()).toEqual(Object.keys(metrics).sort());
});
