// Tested by check-imports.test.ts
import { CONTRACT, findTheNoun, FORMATS, LOGGER, NETWORK, SYSTEM, takeAsParameter, type Zone } from "./import-zone.ts";

/** Weir: the proxy. */
export const proxyZones: readonly Zone[] = [
  {
    name: "proxy/composition",
    files: ["apps/capture-proxy/src/{main,proxy,slices,clock}.ts"],
    node: "all",
    npm: "all",
    ours: ["proxy/*", ...CONTRACT, "contract-kit/*", FORMATS, "sockets"],
    instead: "Weir is made of this app and packages",
  },
  {
    name: "proxy/pipeline-order",
    files: ["apps/capture-proxy/src/pipeline-order.ts"],
    node: [],
    npm: [],
    ours: ["capture-contract"],
    typesOf: ["proxy/exchange", "proxy/slice-shape"],
    instead: "The order is a list of names with reasons, nothing more",
  },
  {
    name: "proxy/slice-shape",
    files: ["apps/capture-proxy/src/slice.ts", "apps/capture-proxy/src/slice-*.ts"],
    node: ["events"],
    npm: ["typebox", LOGGER],
    ours: CONTRACT,
    typesOf: ["proxy/exchange", "proxy/storage", "proxy/settings", "contract-kit/server"],
    instead: "The shape of a slice is types",
  },
  {
    // Thrown wherever an operation is carried out, so it belongs to no folder's inside.
    name: "proxy/api-error",
    files: ["apps/capture-proxy/src/api/api-error.ts"],
    node: [],
    npm: [],
    ours: CONTRACT,
    instead: "An error is a code of the contract and a sentence",
  },
  {
    name: "proxy/exchange",
    files: ["apps/capture-proxy/src/exchange/**"],
    node: { allBut: [...NETWORK, ...SYSTEM, "fs"] },
    npm: [],
    ours: [FORMATS],
    typesOf: CONTRACT,
    instead: `The exchange engine does no I/O. ${takeAsParameter}`,
  },
  {
    name: "proxy/connection",
    files: ["apps/capture-proxy/src/connection/**"],
    node: { allBut: [...SYSTEM, "http", "https", "fs"] },
    npm: ["ws", LOGGER],
    // A client connection owns the connections to origins that serve it, so it makes them.
    ours: ["proxy/exchange", "proxy/upstream", FORMATS, "sockets"],
    typesOf: [...CONTRACT, "proxy/settings"],
    instead: `The data path speaks over raw sockets and our codec, and knows no feature. ${takeAsParameter}`,
  },
  {
    name: "proxy/upstream",
    files: ["apps/capture-proxy/src/upstream/**"],
    node: { allBut: [...SYSTEM, "http", "https", "fs"] },
    npm: [LOGGER],
    ours: ["proxy/exchange", FORMATS, "sockets"],
    typesOf: [...CONTRACT, "proxy/settings"],
    instead: `The data path speaks over raw sockets and our codec, and knows no feature. ${takeAsParameter}`,
  },
  {
    name: "proxy/storage",
    files: ["apps/capture-proxy/src/storage/**"],
    node: { allBut: [...NETWORK, "child_process", "cluster"] },
    npm: [LOGGER],
    // The engine's nouns are what is stored; they are pure.
    ours: ["proxy/exchange", FORMATS],
    typesOf: [...CONTRACT, "proxy/settings"],
    instead: `The store opens, migrates, batches and commits. ${takeAsParameter}`,
  },
  {
    name: "proxy/settings",
    files: ["apps/capture-proxy/src/settings/**"],
    node: { allBut: [...NETWORK, ...SYSTEM] },
    npm: ["typebox", LOGGER],
    ours: ["proxy/api-error", ...CONTRACT, "contract-kit/server", FORMATS],
    instead: "Settings come from defaults, a file, the environment and flags; nothing else is needed",
  },
  {
    name: "proxy/slices",
    files: ["apps/capture-proxy/src/slices/*/**"],
    islands: true,
    doors: ["apps/capture-proxy/src/slices/*/*.slice.ts"],
    node: { allBut: [...NETWORK, "child_process", "cluster", "sqlite", "inspector", "repl"] },
    npm: ["typebox", "@prometheus-io/client", "uqr", LOGGER],
    ours: ["proxy/api-error", "proxy/exchange", ...CONTRACT, FORMATS],
    typesOf: ["proxy/storage", "proxy/settings", "proxy/slice-shape"],
    instead: findTheNoun,
  },
  {
    name: "proxy/api",
    files: ["apps/capture-proxy/src/api/**"],
    node: { allBut: ["net", "tls", "http2", "dgram", ...SYSTEM] },
    npm: ["fastify", "@fastify/*", "ws", "typebox", LOGGER],
    ours: ["proxy/api-error", ...CONTRACT, "contract-kit/server", "contract-kit/openapi", FORMATS],
    typesOf: ["proxy/slices", "proxy/slice-shape", "proxy/settings", "proxy/storage", "proxy/exchange"],
    instead: `The API turns HTTP into operations and back. ${takeAsParameter}`,
  },
  {
    name: "proxy/cli-serve",
    files: ["apps/capture-proxy/src/cli/serve.ts"],
    node: "all",
    npm: ["commander", LOGGER],
    ours: ["proxy/cli", "proxy/composition", "proxy/settings", ...CONTRACT, "contract-kit/*", FORMATS],
    instead: "serve starts the composition root; what it needs from inside comes from there",
  },
  {
    name: "proxy/cli",
    files: ["apps/capture-proxy/src/cli/**"],
    node: "all",
    npm: ["commander", "uqr"],
    ours: ["proxy/cli-serve", "proxy/settings", ...CONTRACT, "contract-kit/*", FORMATS],
    instead: "Commands call the API through the contract's client; only cli/serve.ts may start the service",
  },
];

/** Weir: its web UI. */
export const uiZones: readonly Zone[] = [
  {
    name: "ui-build",
    files: ["apps/capture-ui/*.ts", "apps/capture-ui/build/**"],
    node: "all",
    npm: "all",
    ours: [],
    instead: "The build configuration is no part of the UI",
  },
  {
    name: "ui",
    files: ["apps/capture-ui/src/**"],
    node: [],
    npm: "all",
    ours: ["capture-contract", "contract-kit", "contract-kit/client", "format:query-language", "format:http-fields"],
    instead: "The UI runs in a browser and reaches the service through the contract's client",
  },
];
