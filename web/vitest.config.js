import { defineConfig } from "vitest/config";

export default defineConfig({
  test: { include: ["src/**/*.test.ts"], environment: "node", passWithNoTests: false, testTimeout: 60_000 },
});
