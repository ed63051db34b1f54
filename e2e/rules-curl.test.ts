import assert from "node:assert/strict";
import type { IncomingMessage, ServerResponse } from "node:http";
import { after, afterEach, before, test } from "node:test";
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from "node:zlib";
import type { Breakpoint, MockRule, PausedItem, RewriteRule, TrafficEntry } from "@headworks/capture-contract";
import { peer, runProcess, startOrigin, waitUntil } from "@headworks/testkit";
import type { Exit, Origin } from "@headworks/testkit";
import { Cleanups, LOCAL_NAMES, originAuthority, startWeir } from "./rig.ts";
import type { Weir } from "./rig.ts";

const curl = peer("curl");
const cleanups = new Cleanups();
let weir: Weir;
let origin: Origin;
/** Bodies that reached the origin, decoded. */
const received: string[] = [];

before(async () => {
  weir = cleanups.use(await startWeir());
  origin = cleanups.use(await startOrigin({ handler: serve, tls: { authority: originAuthority, names: LOCAL_NAMES } }));
});
after(() => cleanups.run());
afterEach(async () => {
  for (const kind of ["mocks", "rewrites", "breakpoints", "blocklist"]) {
    for (const { id } of await weir.get<{ id: string }[]>(`/${kind}`)) await call("DELETE", `/${kind}/${id}`);
  }
  await call("POST", "/throttle/enabled", { enabled: false });
});

const CODINGS: Readonly<Record<string, readonly [(bytes: Buffer) => Buffer, (bytes: Buffer) => Buffer]>> = {
  identity: [(bytes) => bytes, (bytes) => bytes],
  gzip: [(bytes) => gzipSync(bytes), (bytes) => gunzipSync(bytes)],
  br: [(bytes) => brotliCompressSync(bytes), (bytes) => brotliDecompressSync(bytes)],
};

/** Responds to `/coding/framing` with a text, and records the request. */
function serve(request: IncomingMessage, response: ServerResponse): void {
  const pieces: Buffer[] = [];
  request.on("data", (piece: Buffer) => pieces.push(piece));
  request.on("end", () => {
    const [, coding = "identity", framing = "length"] = (request.url ?? "").split("/");
    const [encode] = CODINGS[coding] ?? [];
    const [, decode] = CODINGS[request.headers["content-encoding"] ?? "identity"] ?? [];
    received.push(decode?.(Buffer.concat(pieces)).toString() ?? "");
    const body = encode?.(Buffer.from("price 100, grüße, price 200")) ?? Buffer.alloc(0);
    response.setHeader("content-type", "text/plain; charset=utf-8");
    if (coding !== "identity") response.setHeader("content-encoding", coding);
    if (framing === "length") response.setHeader("content-length", body.length);
    for (let at = 0; at < body.length; at += 7) response.write(body.subarray(at, at + 7));
    response.end();
  });
}

async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await fetch(`${weir.apiUrl}/api${path}`, {
    method,
    ...(body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
  });
  const text = await response.text();
  assert.ok(response.ok, `${method} ${path} got ${response.status}: ${text}`);
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

const url = (path: string): string => `https://localhost:${origin.port}${path}`;

async function run(path: string, ...args: string[]): Promise<Exit> {
  return await runProcess(
    curl.path,
    [
      "-sS",
      "-i",
      "--compressed",
      "--suppress-connect-headers",
      "-x",
      weir.proxyUrl,
      "--cacert",
      weir.caFile,
      ...args,
      path,
    ],
    { timeoutMs: 30_000 },
  );
}

async function entryOf(path: string): Promise<TrafficEntry> {
  const [entry] = await weir.waitForEntries(1, path);
  assert.ok(entry);
  return await weir.get<TrafficEntry>(`/traffic/${entry.id}?decompressed=true`);
}

for (const coding of Object.keys(CODINGS)) {
  for (const framing of ["length", "chunked"]) {
    const path = `/${coding}/${framing}`;
    test(`rewrites change a response in ${coding} with ${framing} for curl`, { skip: curl.skip }, async () => {
      await call<RewriteRule>("POST", "/rewrites", {
        name: "cheap",
        direction: "response",
        url_pattern: `*${path}/rewrite`,
        rewrites: [
          { type: "body_rewrite", pattern: "price (\\d)00", replacement: "price $1" },
          { type: "set_header", name: "X-Rule", value: "yes" },
        ],
      });
      const { stdout, stderr } = await run(url(`${path}/rewrite`));
      assert.match(stdout, /^HTTP\/(?:1\.1|2) 200 [^]*x-rule: yes\r\n[^]*\r\nprice 1, grüße, price 2$/i, stderr);
      const entry = await entryOf(`${path}/rewrite`);
      assert.equal(entry.original_response?.body, "price 100, grüße, price 200");
      assert.equal(entry.response?.body, "price 1, grüße, price 2");
      assert.deepEqual(
        entry.trace.map(({ kind, rule_name }) => [kind, rule_name]),
        [["rewrite", "cheap"]],
      );
    });

    test(`a breakpoint lets a response in ${coding} with ${framing} be edited`, { skip: curl.skip }, async () => {
      await call<Breakpoint>("POST", "/breakpoints", {
        name: "look",
        direction: "response",
        url_pattern: `*${path}/pause`,
      });
      const running = run(url(`${path}/pause`));
      let items: PausedItem[] = [];
      await waitUntil(async () => (items = await weir.get<PausedItem[]>("/breakpoints/paused")).length === 1, {
        what: "the paused response",
      });
      const item = await weir.get<PausedItem>(`/breakpoints/paused/${items[0]?.id}`);
      assert.equal(item.response?.body, "price 100, grüße, price 200");
      const decision = { action: "modify", modifications: [{ type: "set_body", content: "edited, grüße" }] };
      await call("POST", `/breakpoints/paused/${item.id}/resume`, decision);
      const { stdout, stderr } = await running;
      assert.match(stdout, /^HTTP\/(?:1\.1|2) 200 [^]*\r\n\r\nedited, grüße$/, stderr);
    });
  }

  test(`rewrites change a request that curl sends in ${coding}`, { skip: curl.skip }, async () => {
    await call("POST", "/rewrites", {
      name: "censor",
      direction: "request",
      path_pattern: "^/identity/length/upload",
      rewrites: [{ type: "body_rewrite", pattern: "secret \\w+", replacement: "secret ***" }],
    });
    const [encode] = CODINGS[coding] ?? [];
    const input = encode?.(Buffer.from("a secret word, grüße")) ?? Buffer.alloc(0);
    received.length = 0;
    for (const chunked of [false, true]) {
      const { stdout, stderr } = await runProcess(
        curl.path,
        [
          "-sS",
          "-x",
          weir.proxyUrl,
          "--cacert",
          weir.caFile,
          ...(coding === "identity" ? [] : ["-H", `Content-Encoding: ${coding}`]),
          ...(chunked ? ["-H", "Transfer-Encoding: chunked"] : []),
          "--data-binary",
          "@-",
          url(`/identity/length/upload-${coding}`),
        ],
        { input },
      );
      assert.match(stdout, /^price 100/, stderr);
    }
    assert.deepEqual(received, ["a secret ***, grüße", "a secret ***, grüße"]);
  });
}

test(
  "a mock responds to curl for an HTTPS host that does not exist, and no connection is opened",
  { skip: curl.skip },
  async () => {
    await call<MockRule>("POST", "/mocks", {
      name: "made up",
      condition: { type: "host", pattern: "nowhere\\.invalid" },
      response: { status_code: 418, headers: { "X-Made": "up" }, body: "{{request.path}}", template_enabled: true },
    });
    const { stdout, stderr } = await run("https://api.nowhere.invalid/a/b?c=1");
    assert.match(stdout, /^HTTP\/(?:1\.1|2) 418 [^]*x-made: up\r\n[^]*\r\n\/a\/b$/i, stderr);
    const entry = await entryOf("nowhere.invalid");
    assert.deepEqual([entry.source, entry.server_addr, entry.trace[0]?.kind], ["slice", null, "mock"]);
  },
);

test("a blocked host gives curl the block page", { skip: curl.skip }, async () => {
  await call("POST", "/blocklist", { pattern: "localhost", status_code: 451 });
  assert.match((await run(url("/identity/length/blocked"))).stdout, /^HTTP\/(?:1\.1|2) 451 [^]*Blocked by Weir$/);
});

test("throttling limits the rate", { skip: curl.skip }, async () => {
  await call("POST", "/throttle", {
    profile: { name: "slow", download_bps: 0, upload_bps: 0, latency_ms: 600 },
    enabled: true,
  });
  const startedMs = performance.now();
  const { stdout, stderr } = await run(url("/identity/length/slow"));
  assert.match(stdout, /^HTTP\/(?:1\.1|2) 200 /, stderr);
  assert.ok(performance.now() - startedMs >= 600);
  assert.equal((await entryOf("/identity/length/slow")).trace[0]?.kind, "throttle");
});
