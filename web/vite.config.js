import { defineConfig } from "vite";

export default defineConfig({
  build: {
    target: "es2022",
    // light-dark() and nesting stay as written: every browser of the last two years has them.
    cssTarget: ["chrome123", "firefox128", "safari17.5"],
    // Browsers that need the polyfill are older than what the page needs. Nothing is inlined as a data URL.
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
});
