// Modules that are not TypeScript: style sheets for the bundler, and the two Node functions that
// the tests use to read the golden files (no @types/node for that).
declare module "*.css";
declare module "node:fs" {
  export function readdirSync(path: string | URL): string[];
  export function readFileSync(path: string | URL): Uint8Array<ArrayBuffer>;
}
