import { defineConfig } from "vitest/config";

// One script and one style sheet with fixed names: the Python package puts them into the page.
export default defineConfig({
  build: {
    target: "es2022",
    outDir: "../src/headatlas/page/bundle",
    emptyOutDir: true,
    modulePreload: false,
    cssCodeSplit: false,
    lib: { entry: "src/main.ts", formats: ["iife"], name: "headatlas", fileName: () => "page.js", cssFileName: "page" },
  },
  test: { include: ["test/**/*.test.ts"], environment: "node" },
});
