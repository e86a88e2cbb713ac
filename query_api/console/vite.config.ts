import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// The page is served at `/` and all that it loads under `/console/`, by addresses relative to it, so that it also works
// behind a proxy with a prefix. Nothing is inlined: the Content-Security-Policy allows the service's own files only.
export default defineConfig({
  base: "./",
  plugins: [svelte({ compilerOptions: { runes: true } })],
  build: {
    outDir: "dist",
    assetsDir: "console",
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 800, // kB: three.js, loaded with the graph in 3D alone
    target: "es2022",
    modulePreload: { polyfill: false },
    license: { fileName: "licenses.md" }, // of what is built into the page, and goes with it
  },
  server: {
    // `npm run dev` beside a running service
    proxy: Object.fromEntries(["/v1", "/readyz", "/livez"].map((path) => [path, "http://127.0.0.1:8420"])),
  },
});
