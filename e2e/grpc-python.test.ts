import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import type { GrpcFrame, GrpcStats, GrpcStream } from "@headworks/capture-contract";
import { peer, runProcess, spawnProcess, waitUntil } from "@headworks/testkit";
import { writeFile } from "node:fs/promises";
import { Cleanups, LOCAL_NAMES, originAuthority, startWeir, workDirectory, type Weir } from "./rig.ts";

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
const TRANSPORTS = ["h2c", "TLS"] as const;
type Transport = (typeof TRANSPORTS)[number];
const cleanups = new Cleanups();
const ports = new Map<Transport, number>();
let weir: Weir;

before(async () => {
  if (skip !== false) return;
  weir = cleanups.use(await startWeir());
  const folder = await workDirectory(cleanups);
  const leaf = originAuthority.issueLeaf(LOCAL_NAMES);
  await writeFile(folder.file("server.pem"), leaf.certificatePem);
  await writeFile(folder.file("server.key"), leaf.keyPem);
  ports.set("h2c", await startServer());
  ports.set("TLS", await startServer(folder.file("server.pem"), folder.file("server.key")));
});
after(() => cleanups.run());

async function startServer(...args: readonly string[]): Promise<number> {
  const server = cleanups.use(await spawnProcess(python.path, [script("sluice-grpc-server.py"), ...args]));
  return Number((await server.waitForOutput(/port (\d+)/u, 20_000))[1]);
}

async function call(kind: string, transport: Transport): Promise<unknown> {
  const args = [script("sluice-grpc-client.py"), kind, `localhost:${ports.get(transport) ?? 0}`];
  const exit = await runProcess(python.path, transport === "TLS" ? [...args, weir.caFile] : args, {
    env: { grpc_proxy: weir.proxyUrl, no_proxy: "", no_grpc_proxy: "" },
    timeoutMs: 60_000,
  });
  assert.equal(exit.code, 0, `${exit.stdout}\n${exit.stderr}`);
  return JSON.parse(exit.stdout);
}

interface Expected {
  readonly got: unknown;
  /** The first call. */
  readonly shown: Partial<GrpcStream>;
}

const CALLS: readonly (readonly [kind: string, what: string, expected: Expected])[] = [
  [
    "unary",
    "a unary call has its metadata both ways, bytes included",
    {
      got: {
        response: "hello",
        code: 0,
        initial: "one",
        initial_bin: "00ff",
        trailing: "what",
        trailing_bin: "0001feff",
      },
      shown: {
        service: "echo.Echo",
        method: "Unary",
        message_type: "unary",
        status_code: 0,
        bytes_sent: 5,
        bytes_received: 5,
      },
    },
  ],
  [
    "large",
    "a message of 3 MB passes both ways",
    {
      got: { same: true, size: 3_145_728 },
      shown: { bytes_sent: 3_145_728, bytes_received: 3_145_728, status_code: 0 },
    },
  ],
  [
    "packed",
    "a packed message is counted unpacked",
    { got: { same: true }, shown: { compression: "gzip", bytes_sent: 100_000, issues: [] } },
  ],
  [
    "server_stream",
    "a thousand messages of the server are counted",
    { got: { same: true }, shown: { message_type: "serverstream", frames_received: 1000, status_code: 0 } },
  ],
  [
    "client_stream",
    "a thousand messages of the client are counted",
    {
      got: { response: "1000 1000000" },
      shown: { message_type: "clientstream", frames_sent: 1000, bytes_sent: 1_000_000 },
    },
  ],
  [
    "bidi",
    "both sides talk in turn on one call",
    {
      got: { got: ["eno", "owt", "eerht"], rest: 0, code: 0 },
      shown: { message_type: "bidistream", frames_sent: 3, frames_received: 3, status_code: 0 },
    },
  ],
];

for (const transport of TRANSPORTS) {
  for (const [kind, what, { got, shown }] of CALLS) {
    test(`grpcio over ${transport}: ${what}`, { skip }, async () => {
      await fetch(`${weir.apiUrl}/api/traffic/clear`, { method: "POST" });
      assert.deepEqual(await call(kind, transport), got);
      const first = await waitUntil(async () => {
        const calls = await weir.get<GrpcStream[]>("/grpc/streams");
        const oldest = calls.at(-1);
        return oldest?.state === "closed" ? oldest : undefined;
      });
      assert.deepEqual(
        Object.fromEntries(Object.keys(shown).map((key) => [key, first[key as keyof GrpcStream]])),
        shown,
      );
    });
  }

  test(`grpcio over ${transport}: every status is counted with its message`, { skip }, async () => {
    await fetch(`${weir.apiUrl}/api/traffic/clear`, { method: "POST" });
    const got = (await call("statuses", transport)) as readonly { readonly code: number; readonly details: string }[];
    assert.equal(got.length, 16);
    const stats = await waitUntil(async () => {
      const found = await weir.get<GrpcStats>("/grpc/stats");
      return found.total_streams === 16 && found.active_streams === 0 ? found : undefined;
    });
    assert.deepEqual(stats.by_status, Object.fromEntries(Array.from({ length: 16 }, (_, at) => [at + 1, 1])));
    const calls = await weir.get<GrpcStream[]>("/grpc/streams");
    assert.deepEqual(
      calls.toReversed().map(({ status_message: message }) => message),
      got.map(({ details }) => details),
    );
  });

  test(`grpcio over ${transport}: deadlines and cancelled calls are reported as such`, { skip }, async () => {
    await fetch(`${weir.apiUrl}/api/traffic/clear`, { method: "POST" });
    assert.equal(((await call("deadline", transport)) as { readonly code: number }).code, 4);
    await call("cancel", transport);
    for (const [method, received] of [
      ["Late", 0],
      ["Endless", 2],
    ] as const) {
      const [ended] = await waitUntil(async () => {
        const found = await weir.get<GrpcStream[]>(`/grpc/streams?method=${method}`);
        return found[0]?.state === "closed" ? found : undefined;
      });
      // If the server notices the deadline first, it sends the status.
      assert.ok(ended?.status_code === 4 || (ended?.status_code === null && ended.failure !== null), method);
      assert.ok((ended?.frames_received ?? 0) >= received, method);
    }
  });

  test(`grpcio over ${transport}: 500 calls, 32 at a time, lose no message`, { skip }, async () => {
    await fetch(`${weir.apiUrl}/api/traffic/clear`, { method: "POST" });
    assert.deepEqual(await call("parallel", transport), { odd: [] });
    const stats = await waitUntil(async () => {
      const found = await weir.get<GrpcStats>("/grpc/stats");
      return found.total_streams === 500 && found.active_streams === 0 ? found : undefined;
    });
    assert.deepEqual([stats.by_status, stats.frames_not_stored], [{ 0: 500 }, 0]);
    const requests = await weir.get<GrpcFrame[]>("/grpc/frames?direction=request&limit=1000");
    const sent = requests.map(({ data }) => Number(Buffer.from(data, "base64").toString().slice("call ".length)));
    assert.deepEqual(
      sent.toSorted((a, b) => a - b),
      Array.from({ length: 500 }, (_, at) => at),
    );
  });
}
