import { CONTRACT, FORMATS, GATEWAY_CONTRACT, NETWORK, SYSTEM, type Zone } from "./import-zone.ts";

/** Tests, benchmarks and scripts. */
export const testZones: readonly Zone[] = [
  {
    name: "testkit",
    files: ["packages/testkit/**"],
    node: "all",
    npm: ["ws", "fast-check", "playwright-core"],
    ours: [FORMATS],
    instead: "The testkit replaces peers and must not import the services under test",
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
    ours: ["proxy/*", ...CONTRACT, "contract-kit/*", FORMATS, "sockets", "http2", "testkit"],
    instead: "A test imports its own workspace, packages and the testkit",
  },
  {
    name: "gateway-tests",
    files: ["apps/gateway/**/*.test.ts", "apps/gateway/test/**"],
    node: "all",
    npm: "all",
    ours: ["gateway/*", ...GATEWAY_CONTRACT, "contract-kit/*", FORMATS, "sockets", "http2", "testkit"],
    instead: "A test imports its own workspace, packages and the testkit",
  },
  {
    name: "package-tests",
    files: ["packages/*/**/*.test.ts", "packages/*/test/**"],
    node: "all",
    npm: "all",
    ours: [...CONTRACT, "gateway-contract", "contract-kit/*", FORMATS, "sockets", "http2", "testkit"],
    instead: "A package's test imports packages, never an app",
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
    ours: [...CONTRACT, "gateway-contract", "contract-kit/*", FORMATS, "process-signals", "testkit", "scripts"],
    instead: "End-to-end tests use real processes from outside: start bin/weir.js or bin/sluice.js",
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
      "http2",
      "testkit",
      // Node's options for starting a service.
      "scripts",
      "proxy/storage",
      "proxy/exchange",
      "proxy/api",
      "gateway/storage",
      "gateway/request",
      "gateway/routing",
      "gateway/upstream",
    ],
    instead: "A benchmark uses real processes, or a single package or part of an engine",
  },
  {
    name: "scripts",
    files: ["scripts/**"],
    node: "all",
    npm: "all",
    ours: [...CONTRACT, "gateway-contract", "contract-kit/*", "process-signals"],
    instead: "Scripts import no service; start it as a process",
  },
];

/** A format package: it imports none of our code and lists the built-ins that it needs. */
function format(name: string, node: readonly string[], files = [`packages/${name}/**`]): Zone {
  return {
    name: `format:${name}`,
    files,
    node,
    npm: [],
    ours: [],
    instead: "A format package imports no other package of ours and does no I/O; pass values in and bytes out",
  };
}

export const packageZones: readonly Zone[] = [
  // Content codings are the one part of http-fields that a browser cannot run.
  {
    ...format(
      "http-fields/content-coding",
      ["zlib", "stream", "buffer"],
      ["packages/http-fields/src/{content-coding,decode,encode}*.ts"],
    ),
    ours: ["format:http-fields"],
  },
  { ...format("http-fields", []), ours: ["format:json"] },
  // The connection that reads bytes decides how long they are valid.
  { ...format("http1", ["buffer"]), typesOf: ["sockets"] },
  format("host-patterns", []),
  format("har", ["buffer", "stream", "string_decoder"]),
  // node:net for isIP, node:url for domainToASCII.
  format("tls-authority", ["crypto", "net", "url", "buffer"]),
  format("linear-pattern", []),
  format("json", []),
  {
    ...format("query-language", []),
    ours: ["format:linear-pattern", "format:json", "format:http-fields", "format:host-patterns"],
  },
  {
    ...format("match-condition", []),
    // The contract defines conditions; texts are compared as in queries.
    ours: ["format:query-language", "format:linear-pattern", "format:json", "format:http-fields"],
    typesOf: ["capture-contract"],
  },
  {
    ...format("entry-diff", []),
    // The contract defines entries and their differences.
    ours: ["format:http-fields", "format:json"],
    typesOf: ["capture-contract"],
  },
  format("socks5", ["buffer"]),
  { ...format("websocket", ["buffer", "zlib"]), ours: ["format:http-fields"] },
  { ...format("event-stream", ["buffer", "string_decoder"]), ours: ["format:json"] },
  format("grpc-framing", ["buffer", "zlib"]),
  { ...format("protobuf", ["buffer"]), npm: ["protobufjs"] },
  format("files", ["fs", "path"]),
  { ...format("log-file", ["fs", "path", "stream", "zlib"]), ours: ["format:files"] },
  {
    name: "process-signals",
    files: ["packages/process-signals/**"],
    node: ["os"],
    npm: [],
    ours: [],
    instead: "Signal names and states only; the services act on signals",
  },
  {
    name: "sockets",
    files: ["packages/sockets/**"],
    node: ["net", "tls", "stream", "buffer", "v8", "vm"],
    npm: [],
    ours: [],
    instead: "Sockets only, no protocol and no service",
  },
  {
    name: "http2",
    files: ["packages/http2/**"],
    node: ["stream", "buffer"],
    npm: [],
    ours: ["sockets", "format:http1"],
    instead: "Frames, fields and streams on a given socket; the services interpret requests",
  },
  {
    name: "contract-kit/server",
    files: ["packages/contract-kit/src/server.ts"],
    node: { allBut: [...NETWORK, ...SYSTEM] },
    npm: ["typebox", "ajv", "ajv-formats"],
    ours: ["contract-kit", "format:json"],
    instead: "The kit defines the form of contracts; routing belongs in the app's api/ folder",
  },
  {
    name: "contract-kit/parser-errors",
    files: ["packages/contract-kit/src/parser-errors.ts"],
    node: ["http", "stream"],
    npm: [],
    ours: [],
    instead: "Requests that Node's HTTP parser refuses, for both APIs; the apps define the error bodies",
  },
  {
    name: "contract-kit/client",
    files: ["packages/contract-kit/src/client.ts"],
    node: [],
    npm: ["typebox"],
    ours: ["contract-kit", "format:json"],
    instead: "The client runs in browsers: use web APIs only",
  },
  {
    name: "contract-kit/openapi",
    files: ["packages/contract-kit/src/openapi.ts"],
    node: [],
    npm: ["typebox"],
    ours: ["contract-kit"],
    instead: "The document is generated from the operations table alone",
  },
  {
    name: "contract-kit",
    files: ["packages/contract-kit/**"],
    node: [],
    npm: ["typebox"],
    ours: [],
    instead: "Browsers import the kit's main entry: no Node modules, no validator",
  },
  {
    name: "capture-contract",
    files: ["packages/capture-contract/**"],
    node: [],
    npm: ["typebox"],
    // For value lists of HTTP formats, which exist once.
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
