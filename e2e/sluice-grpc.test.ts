import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { DocumentInput } from "@headworks/gateway-contract";
import { peer, runProcess, spawnProcess } from "@headworks/testkit";
import { certificates, Cleanups, startSluice, type Certificates, type Sluice } from "./sluice-rig.ts";

/** Debian's Python, the one with python3-grpcio; another one may come first in PATH. */
function grpcPeer(): { readonly path: string; readonly skip: string | false } {
  for (const path of ["/usr/bin/python3", peer("python3").path]) {
    if (path !== "" && spawnSync(path, ["-c", "import grpc"]).status === 0) return { path, skip: false };
  }
  const skip = "no python3 has the module grpc (python3-grpcio)";
  if (process.env["CI"] === "true") throw new Error(`${skip}, and with CI=true nothing may be skipped`);
  process.stdout.write(`# skipping: ${skip}\n`);
  return { path: "", skip };
}

const script = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const python = grpcPeer();
const { skip } = python;
const cleanups = new Cleanups();
let files: Certificates;

/** Starts the server and returns its port. */
async function startServer(...args: readonly string[]): Promise<number> {
  const server = cleanups.use(await spawnProcess(python.path, [script("sluice-grpc-server.py"), ...args]));
  return Number((await server.waitForOutput(/port (\d+)/, 20_000))[1]);
}

type RouteInput = NonNullable<DocumentInput["routes"]>[number];

function routed(service: string, prefix: string, more: Partial<RouteInput> = {}): RouteInput {
  const name = prefix.split(".")[0]?.slice(1) ?? "";
  return { name, service, match: { path: { type: "prefix", value: prefix } }, action: { type: "proxy" }, ...more };
}

/** The same TLS files for both sides of the gateway. */
const TRANSPORTS = ["h2c", "TLS"] as const;
type Transport = (typeof TRANSPORTS)[number];
const gateways = new Map<Transport, Sluice>();

before(async () => {
  if (skip !== false) return;
  files = cleanups.use(await certificates());
  const tls = await files.issue("server", ["localhost"]);
  for (const transport of TRANSPORTS) {
    const port = transport === "TLS" ? await startServer(tls.cert_file, tls.key_file) : await startServer();
    const listener = { name: "public", address: "127.0.0.1", port: 0 };
    const endpoints = [{ address: "127.0.0.1", port }];
    const document: DocumentInput = {
      listeners: [transport === "TLS" ? { ...listener, protocol: "https", tls } : listener],
      upstreams: [
        transport === "TLS"
          ? { name: "echo", protocol: "http2", trusted_ca_file: files.caFile, endpoints }
          : { name: "echo", protocol: "h2c", endpoints },
        // The discard port of this machine is closed.
        { name: "down", protocol: "h2c", endpoints: [{ address: "127.0.0.1", port: 9 }] },
      ],
      services: ["echo", "down"].map((name) => ({ name, upstream: name })),
      consumers: [{ name: "someone", credentials: [{ type: "api_key", key: "a-key-that-nobody-sends" }] }],
      routes: [
        routed("echo", "/echo.Echo/"),
        routed("down", "/down.Down/"),
        routed("down", "/closed.Closed/", { auth_required: true }),
        routed("down", "/busy.Busy/", { maintenance: {} }),
      ],
    };
    gateways.set(transport, cleanups.use(await startSluice(document)));
  }
});
after(() => cleanups.run());

async function call(kind: string, transport: Transport): Promise<unknown> {
  const args = [script("sluice-grpc-client.py"), kind, `localhost:${gateways.get(transport)?.port("public")}`];
  const exit = await runProcess(python.path, transport === "TLS" ? [...args, files.caFile] : args, {
    timeoutMs: 60_000,
  });
  assert.equal(exit.code, 0, `${exit.stdout}\n${exit.stderr}`);
  return JSON.parse(exit.stdout);
}

const STATUSES = Array.from({ length: 16 }, (_, at) => ({
  code: at + 1,
  details: `no: ${at + 1}, für 100 % \u20ac`,
  trailing: "asked for",
}));

/** The expected result of each kind of call. */
const CALLS: readonly (readonly [kind: string, what: string, expected: unknown])[] = [
  [
    "unary",
    "a unary call has its metadata both ways, bytes included",
    {
      response: "hello",
      code: 0,
      initial: "one",
      initial_bin: "00ff",
      trailing: "what",
      trailing_bin: "0001feff",
    },
  ],
  ["large", "a message of 3 MB passes both ways", { same: true, size: 3_145_728 }],
  ["packed", "a packed message passes", { same: true }],
  ["server_stream", "a thousand messages of the server arrive in order", { same: true }],
  ["client_stream", "a thousand messages of the client arrive", { response: "1000 1000000" }],
  ["bidi", "both sides talk in turn on one call", { got: ["eno", "owt", "eerht"], rest: 0, code: 0 }],
  ["statuses", "every status passes with its text and its trailers", STATUSES],
  ["deadline", "a deadline passes, and its end ends the call at the server", { code: 4, events: ["late: deadline"] }],
  ["cancel", "a call that its client cancels ends at the server", { first: [0, 1], events: ["endless: gone"] }],
  ["parallel", "500 calls, 32 at a time on one connection, each get their own response", { odd: [] }],
];

for (const transport of TRANSPORTS) {
  for (const [kind, what, expected] of CALLS) {
    test(`gRPC of Debian's Python over ${transport}: ${what}`, { skip }, async () => {
      const found = await call(kind, transport);
      const { events } = expected as { readonly events?: readonly string[] };
      if (events === undefined) return assert.deepEqual(found, expected);
      const { events: noted, ...rest } = found as { readonly events: readonly string[] };
      for (const event of events) assert.ok(noted.includes(event), `${event} is not in ${noted.join(", ")}`);
      assert.ok(
        noted.some((event) => event.endsWith(": gone")),
        noted.join(", "),
      );
      assert.deepEqual({ ...rest, events }, expected);
    });
  }

  test(
    `gRPC of Debian's Python over ${transport}: refusals of the gateway have the gRPC status of their HTTP status`,
    { skip },
    async () => {
      const [UNIMPLEMENTED, UNAVAILABLE, UNAUTHENTICATED] = [12, 14, 16];
      const found = (await call("refusals", transport)) as Record<string, { readonly code: number }>;
      assert.deepEqual(Object.fromEntries(Object.entries(found).map(([what, { code }]) => [what, code])), {
        "no such method": UNIMPLEMENTED,
        "no route": UNIMPLEMENTED,
        "no key": UNAUTHENTICATED,
        "no upstream": UNAVAILABLE,
        maintenance: UNAVAILABLE,
      });
    },
  );
}
