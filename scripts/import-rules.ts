/**
 * Who may import what. This table is the architecture: changing a line here is changing the architecture, so give the
 * reason in `decisions/`. `check-imports.ts` enforces it.
 */

/** A set of files with the same rights. The first zone whose globs match a file is the file's zone. */
export interface Zone {
  readonly name: string;
  /** Globs from the repository root. */
  readonly files: readonly string[];
  /** Node built-ins, named without `node:` and without subpath. */
  readonly node: "all" | readonly string[] | { readonly allBut: readonly string[] };
  /** Packages of the registry; a name ending in `/*` stands for a whole scope. */
  readonly npm: "all" | readonly string[];
  /** Our zones that may be imported besides the own one; a name ending in `*` stands for all that begin so. */
  readonly ours: readonly string[];
  /** Our zones of which types may be imported (`import type`), nothing that exists at run time. */
  readonly typesOf?: readonly string[];
  /** Files of the zone see each other only inside the same folder below the first `*` of the glob. */
  readonly islands?: boolean;
  /** If set, files outside the zone may import only these of it (globs). */
  readonly doors?: readonly string[];
  /** What to do instead of a forbidden import; printed with every violation. */
  readonly instead: string;
}

/** Node's modules that open connections. */
const NETWORK = ["net", "tls", "http", "https", "http2", "dgram", "dns", "quic"];
/** Node's modules that reach past the process in other ways. */
const SYSTEM = ["child_process", "cluster", "worker_threads", "sqlite", "inspector", "repl"];

/** Standards and formats: no I/O of their own, usable by both services. */
const FORMATS = "format:*";

/** The contract of Weir and the kit that gives contracts their shape, without the server's part. */
const CONTRACT = ["capture-contract", "contract-kit"];

/** The same for Sluice. */
const GATEWAY_CONTRACT = ["gateway-contract", "contract-kit"];

/** For the type of the logger everybody receives; making one is reserved, see `reservedModules`. */
const LOGGER = "pino";

const takeAsParameter = "Receive it as a parameter; the composition root (proxy.ts) sees both sides and connects them";
const findTheNoun =
  "Move the shared noun to the engine folder that owns it, or receive a contribution through the slice host";

const tests: readonly Zone[] = [
  {
    name: "testkit",
    files: ["packages/testkit/**"],
    node: "all",
    npm: ["ws", "fast-check", "playwright-core"],
    ours: [FORMATS],
    instead: "The testkit stands in for peers and must not know the services it tests",
  },
  {
    name: "ui-tests",
    files: ["apps/capture-ui/**/*.test.{ts,tsx}", "apps/capture-ui/test/**"],
    node: "all",
    npm: "all",
    ours: ["ui", ...CONTRACT, "contract-kit/*", FORMATS, "testkit"],
    instead: "A test imports its own workspace, packages and the testkit",
  },
  {
    name: "proxy-tests",
    files: ["apps/capture-proxy/**/*.test.ts", "apps/capture-proxy/test/**"],
    node: "all",
    npm: "all",
    ours: ["proxy/*", ...CONTRACT, "contract-kit/*", FORMATS, "sockets", "testkit"],
    instead: "A test imports its own workspace, packages and the testkit",
  },
  {
    name: "gateway-tests",
    files: ["apps/gateway/**/*.test.ts", "apps/gateway/test/**"],
    node: "all",
    npm: "all",
    ours: ["gateway/*", ...GATEWAY_CONTRACT, "contract-kit/*", FORMATS, "sockets", "testkit"],
    instead: "A test imports its own workspace, packages and the testkit",
  },
  {
    name: "package-tests",
    files: ["packages/*/**/*.test.ts", "packages/*/test/**"],
    node: "all",
    npm: "all",
    ours: [...CONTRACT, "gateway-contract", "contract-kit/*", FORMATS, "sockets", "testkit"],
    instead: "A package's test knows packages, never an app",
  },
  {
    name: "script-tests",
    files: ["scripts/**/*.test.ts"],
    node: "all",
    npm: "all",
    ours: ["scripts", "testkit", ...CONTRACT, "gateway-contract", "contract-kit/*"],
    instead: "Test a script through its functions",
  },
  {
    name: "e2e",
    files: ["e2e/**"],
    node: "all",
    npm: "all",
    ours: [...CONTRACT, "gateway-contract", "contract-kit/*", FORMATS, "testkit", "scripts"],
    instead: "End-to-end tests drive real processes from outside: start main.ts and talk to it",
  },
  {
    name: "bench",
    files: ["bench/**"],
    node: "all",
    npm: "all",
    ours: [
      ...CONTRACT,
      "contract-kit/*",
      FORMATS,
      "sockets",
      "testkit",
      "proxy/storage",
      "proxy/exchange",
      "proxy/api",
      "gateway/storage",
      "gateway/request",
      "gateway/routing",
      "gateway/upstream",
    ],
    instead: "A benchmark drives real processes, or one package or engine part alone",
  },
  {
    name: "scripts",
    files: ["scripts/**"],
    node: "all",
    npm: "all",
    ours: [...CONTRACT, "gateway-contract", "contract-kit/*"],
    instead: "Scripts work on the repository from outside; start a service as a process",
  },
];

/** A format package: our code is closed to it, and it names the few built-ins it needs. */
function format(name: string, node: readonly string[], files = [`packages/${name}/**`]): Zone {
  return {
    name: `format:${name}`,
    files,
    node,
    npm: [],
    ours: [],
    instead: "A format package depends on nothing of ours and does no I/O; pass values in and bytes out",
  };
}

const packages: readonly Zone[] = [
  // Content codings are the one part of http-fields that a browser cannot run.
  {
    ...format(
      "http-fields/content-coding",
      ["zlib", "stream", "buffer"],
      ["packages/http-fields/src/{content-coding,decode}*.ts"],
    ),
    ours: ["format:http-fields"],
  },
  format("http-fields", []),
  format("http1", ["buffer"]),
  // node:net for isIP and BlockList, which open nothing.
  format("host-patterns", ["net"]),
  format("har", ["buffer", "stream", "string_decoder"]),
  // node:net for isIP, node:url for domainToASCII.
  format("tls-authority", ["crypto", "net", "url", "buffer"]),
  format("linear-pattern", []),
  { ...format("query-language", []), ours: ["format:linear-pattern"] },
  format("socks5", ["buffer"]),
  format("grpc-framing", ["buffer", "zlib"]),
  format("log-file", ["fs", "path", "stream", "zlib"]),
  {
    name: "sockets",
    files: ["packages/sockets/**"],
    node: ["net", "tls", "buffer"],
    npm: [],
    ours: ["format:http1"],
    instead: "Sockets and the codec, nothing of a service",
  },
  {
    name: "contract-kit/server",
    files: ["packages/contract-kit/src/server.ts"],
    node: { allBut: [...NETWORK, ...SYSTEM] },
    npm: ["typebox", "ajv", "ajv-formats"],
    ours: ["contract-kit"],
    instead: "The kit knows shapes; routing belongs to the app's api/ folder",
  },
  {
    name: "contract-kit/client",
    files: ["packages/contract-kit/src/client.ts"],
    node: [],
    npm: ["typebox"],
    ours: ["contract-kit"],
    instead: "The client runs in browsers: use web APIs only",
  },
  {
    name: "contract-kit/openapi",
    files: ["packages/contract-kit/src/openapi.ts"],
    node: [],
    npm: ["typebox"],
    ours: ["contract-kit"],
    instead: "The document is made from the operations table alone",
  },
  {
    name: "contract-kit",
    files: ["packages/contract-kit/**"],
    node: [],
    npm: ["typebox"],
    ours: [],
    instead: "The kit's main entry is imported by browsers: no Node, no validator",
  },
  {
    name: "capture-contract",
    files: ["packages/capture-contract/**"],
    node: [],
    npm: ["typebox"],
    // For the lists of values that HTTP's formats know, so that none stands twice.
    ours: ["contract-kit", "format:http-fields"],
    instead: "A contract is schemas and operations, safe for browsers",
  },
  {
    name: "gateway-contract",
    files: ["packages/gateway-contract/**"],
    node: [],
    npm: ["typebox"],
    ours: ["contract-kit"],
    instead: "A contract is schemas and operations, safe for browsers",
  },
];

const proxy: readonly Zone[] = [
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

const gateway: readonly Zone[] = [
  {
    name: "gateway/composition",
    files: ["apps/gateway/src/{main,gateway,gateway-facts,admin-plane,client-requests,document-checks,route-actions,slices,pipeline-order,clock}.ts"],
    node: "all",
    npm: "all",
    ours: ["gateway/*", ...GATEWAY_CONTRACT, "contract-kit/*", FORMATS, "sockets"],
    instead: "Sluice is made of this app and packages",
  },
  {
    name: "gateway/slice-shape",
    files: ["apps/gateway/src/slice.ts"],
    node: [],
    npm: [LOGGER],
    ours: GATEWAY_CONTRACT,
    typesOf: ["gateway/request", "gateway/storage"],
    instead: "The shape of a slice is types",
  },
  {
    name: "gateway/request",
    files: ["apps/gateway/src/request/**"],
    node: { allBut: ["http", "https", "http2", "dgram", "dns", ...SYSTEM, "fs"] },
    npm: [LOGGER],
    ours: [...GATEWAY_CONTRACT, FORMATS, "sockets", "gateway/upstream"],
    typesOf: ["gateway/slice-shape"],
    instead: "The engine handles one request and knows no feature; receive it as a parameter from gateway.ts",
  },
  {
    name: "gateway/routing",
    files: ["apps/gateway/src/routing/**"],
    node: [],
    npm: [],
    ours: [...GATEWAY_CONTRACT, FORMATS, "gateway/request"],
    typesOf: ["gateway/slice-shape", "gateway/upstream"],
    instead: "Routing is pure: a document in, a table and actions out",
  },
  {
    name: "gateway/listener",
    files: ["apps/gateway/src/listener/**"],
    node: { allBut: [...SYSTEM, "http", "https"] },
    npm: [LOGGER],
    ours: ["gateway/request", ...GATEWAY_CONTRACT, FORMATS, "sockets"],
    typesOf: ["gateway/slice-shape"],
    instead: "Listeners turn bytes of clients into requests; receive anything else as a parameter from gateway.ts",
  },
  {
    name: "gateway/upstream",
    files: ["apps/gateway/src/upstream/**"],
    node: { allBut: [...SYSTEM, "http", "https"] },
    npm: [LOGGER],
    ours: [...GATEWAY_CONTRACT, FORMATS, "sockets"],
    typesOf: ["gateway/slice-shape"],
    instead: "Upstreams are sockets, health and choice; receive anything else as a parameter from gateway.ts",
  },
  {
    name: "gateway/egress",
    files: ["apps/gateway/src/egress/**"],
    node: { allBut: [...SYSTEM] },
    npm: [LOGGER],
    ours: [...GATEWAY_CONTRACT, FORMATS, "sockets"],
    typesOf: ["gateway/slice-shape"],
    instead: "Egress opens checked connections of our own; receive anything else as a parameter",
  },
  {
    name: "gateway/config",
    files: ["apps/gateway/src/config/**"],
    node: { allBut: [...NETWORK, ...SYSTEM] },
    npm: ["yaml", "typebox", LOGGER],
    ours: [...GATEWAY_CONTRACT, "contract-kit/server", FORMATS, "gateway/request", "gateway/routing"],
    typesOf: ["gateway/slice-shape", "gateway/upstream"],
    instead: "Configuration reads, checks and compiles; slices come in as a list from gateway.ts",
  },
  {
    name: "gateway/storage",
    files: ["apps/gateway/src/storage/**"],
    node: { allBut: [...NETWORK, "child_process", "cluster"] },
    npm: [LOGGER],
    ours: [...GATEWAY_CONTRACT, FORMATS],
    typesOf: ["gateway/slice-shape"],
    instead: "The store opens, migrates and commits; receive anything else as a parameter",
  },
  {
    name: "gateway/events",
    files: ["apps/gateway/src/events/**"],
    node: { allBut: [...NETWORK, ...SYSTEM] },
    npm: [LOGGER],
    ours: [...GATEWAY_CONTRACT, FORMATS],
    typesOf: ["gateway/slice-shape", "gateway/storage"],
    instead: "Events are made and handed on here; who sends them is a slice",
  },
  {
    name: "gateway/slices",
    files: ["apps/gateway/src/slices/*/**"],
    islands: true,
    doors: ["apps/gateway/src/slices/*/*.slice.ts"],
    node: {
      allBut: ["net", "tls", "http", "https", "http2", "dgram", "child_process", "cluster", "sqlite", "inspector"],
    },
    npm: ["typebox", "jose", "@prometheus-io/client", LOGGER],
    ours: [...GATEWAY_CONTRACT, FORMATS, "gateway/request", "gateway/egress"],
    typesOf: ["gateway/slice-shape", "gateway/storage", "gateway/upstream", "gateway/events"],
    instead: findTheNoun,
  },
  {
    name: "gateway/admin",
    files: ["apps/gateway/src/admin/**"],
    node: { allBut: ["http2", "dgram", ...SYSTEM] },
    npm: ["fastify", "@fastify/*", "typebox", "yaml", LOGGER],
    ours: [...GATEWAY_CONTRACT, "contract-kit/server", "contract-kit/openapi", FORMATS],
    typesOf: [
      "gateway/slices",
      "gateway/slice-shape",
      "gateway/config",
      "gateway/storage",
      "gateway/events",
      "gateway/request",
      "gateway/upstream",
      "gateway/routing",
    ],
    instead: "The admin API turns HTTP into operations and back; what it works on comes from gateway.ts",
  },
  {
    name: "gateway/cli",
    files: ["apps/gateway/src/cli/**"],
    node: "all",
    npm: ["commander", LOGGER],
    ours: ["gateway/composition", "gateway/config", ...GATEWAY_CONTRACT, "contract-kit/*", FORMATS],
    instead: "Commands work on documents, or call the admin API; serve starts the composition root",
  },
];

const ui: readonly Zone[] = [
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

/** All zones in order of matching. */
export const importZones: readonly Zone[] = [...tests, ...packages, ...proxy, ...gateway, ...ui];

/**
 * Modules reserved for one place, whoever's table would allow more: one importer means one place to look when the module
 * is replaced.
 */
export const reservedModules: Readonly<
  Record<string, { readonly zones: readonly string[]; readonly because: string }>
> = {
  "node:sqlite": { zones: ["proxy/storage", "gateway/storage"], because: "storage/ owns the database; ask the store" },
  fastify: { zones: ["proxy/api", "gateway/admin"], because: "only api/ and admin/ speak HTTP to people and tools" },
  pino: { zones: ["proxy/composition", "gateway/composition"], because: "everybody else receives a Logger" },
};

/** Entries that browsers load: nothing they reach at run time may import a Node built-in. */
export const browserEntries: readonly string[] = [
  "packages/capture-contract/src/index.ts",
  "packages/gateway-contract/src/index.ts",
  "packages/contract-kit/src/index.ts",
  "packages/contract-kit/src/client.ts",
  "packages/query-language/src/index.ts",
  "packages/http-fields/src/index.ts",
];
