import { defineConfig } from "vite";

export default defineConfig({
  build: {
    target: "es2022",
    // light-dark() and nesting stay as written: every browser of the last two years has them.
    cssTarget: ["chrome123", "firefox128", "safari17.5"],
    // The page is one script: no preload helper, nothing inlined as a data URL.
    modulePreload: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
});
