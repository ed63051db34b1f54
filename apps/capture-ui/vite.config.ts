import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

/** Address of the API while `vite` serves the sources; the built UI is served by the API itself. */
const target = "http://127.0.0.1:3001";

export default defineConfig({
  plugins: [react()],
  build: {
    target: "es2023",
    // The content security policy has no place for data: scripts and fonts, and small files compress well anyway.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
    // The largest chunk is the code editor, which only the Scripts screen loads.
    chunkSizeWarningLimit: 600,
  },
  server: {
    host: "127.0.0.1",
    proxy: { "/api": { target }, "/ws": { target, ws: true } },
  },
});
