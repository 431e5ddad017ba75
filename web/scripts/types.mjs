// Writes the types of the HTTP API, src/api/generated/schema.ts, from docs/http-api.json. With --check nothing is
// written: it fails if the file is stale.

import { readFileSync, writeFileSync } from "node:fs";
import openapiTS, { astToString } from "openapi-typescript";

const DOCUMENT = new URL("../../docs/http-api.json", import.meta.url);
const TYPES = new URL("../src/api/generated/schema.ts", import.meta.url);
const HEADER = "// Generated from docs/http-api.json by `npm run types`; do not edit.\n\n";

const { openapi, info, components } = JSON.parse(readFileSync(DOCUMENT, "utf8"));
// Only the schemas: src/api/client.ts has the calls.
const document = { openapi, info, paths: {}, components: { schemas: components.schemas } };
const types = await openapiTS(document, {
  immutable: true,
  // A field with a default value may be left out of a request.
  defaultNonNullable: false,
  rootTypes: true,
  rootTypesNoSchemaPrefix: true,
});
const text = HEADER + astToString(types);

if (!process.argv.includes("--check")) {
  writeFileSync(TYPES, text);
} else if (readFileSync(TYPES, "utf8") !== text) {
  console.error("src/api/generated/schema.ts does not match docs/http-api.json: run `npm run types` in web/");
  process.exitCode = 1;
}
