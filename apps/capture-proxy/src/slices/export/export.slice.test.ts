import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { createServer as createHttp2Server, type Http2Server, type Http2ServerRequest } from "node:http2";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { peer, runProcess, temporaryDirectory } from "@headworks/testkit";
import type { StoreLimits } from "#storage/capture-store.ts";
import { NEVER, openRig, type StoreRig } from "#storage/store-rig.ts";
import { type ApiRig, startApi } from "../../../test/api-rig.ts";
import { ENVIRONMENT, runShell } from "../../../test/snippet-rig.ts";
import { createExportSlice, MAX_BODY_BYTES } from "./export.slice.ts";

interface ExportRig {
  readonly api: ApiRig;
  readonly rig: StoreRig;
  [Symbol.asyncDispose](): Promise<void>;
}

async function start(limits: Partial<StoreLimits> = {}): Promise<ExportRig> {
  const directory = await temporaryDirectory();
  const rig = await openRig(directory.file("data"), limits);
  const api = await startApi({
    slices: (host) => [createExportSlice({ ...host, store: rig.store })],
  });
  return {
    api,
    rig,
    [Symbol.asyncDispose]: async () => {
      await api[Symbol.asyncDispose]();
      await rig[Symbol.asyncDispose]();
      await directory.remove();
    },
  };
}

interface Har {
  readonly log: {
    readonly version: string;
    readonly entries: readonly {
      readonly request: { readonly url: string };
      readonly _weir: { readonly id: string };
    }[];
  };
}

test("curl's command names the URL with its scheme, the fields and the body", async () => {
  await using started = await start();
  const { id } = started.rig.add({
    method: "POST",
    host: "api.example",
    path: "/v1?x=1",
    requestFields: ["Host", "api.example", "x-KEY", "it's", "Content-Length", "7"],
    requestBody: ['{"a":1}'],
  });
  await started.rig.store.flush();
  const { status, json } = await started.api.call("GET", `/api/export/curl/${id}`);
  assert.equal(status, 200);
  const { curl } = json as { curl: string };
  assert.match(curl, /^curl 'https:\/\/api\.example\/v1\?x=1'/);
  assert.match(curl, /-H 'x-KEY: it'\\''s'/);
  assert.match(curl, /--data-raw '\{"a":1\}'$/);
  assert.doesNotMatch(curl, /host:|content-length:/i);
});

test("every format of the contract is written", async () => {
  await using started = await start();
  const { id } = started.rig.add();
  await started.rig.store.flush();
  const marks = {
    curl: /^curl '/,
    "curl-powershell": /curl\.exe --config -/,
    "curl-cmd": /^curl /,
    fetch: /await fetch\("https:/,
    python: /^import http\.client/,
    httpie: /^http /m,
    wget: /^wget /m,
  } as const;
  for (const [format, mark] of Object.entries(marks)) {
    const { status, json } = await started.api.call("GET", `/api/export/snippet/${id}?format=${format}`);
    assert.equal(status, 200);
    const response = json as { format: string; text: string };
    assert.equal(response.format, format);
    assert.match(response.text, mark);
  }
  const { id: proxied } = started.rig.add({ requestFields: ["Host", "example.com", "Proxy-Connection", "Keep-Alive"] });
  await started.rig.store.flush();
  for (const format of Object.keys(marks)) {
    const { json } = await started.api.call("GET", `/api/export/snippet/${proxied}?format=${format}`);
    assert.doesNotMatch((json as { text: string }).text, /proxy-connection/iu, format);
  }
  const byDefault = await started.api.call("GET", `/api/export/snippet/${id}`);
  assert.equal((byDefault.json as { format: string }).format, "curl");
  assert.equal((await started.api.call("GET", `/api/export/snippet/${id}?format=ruby`)).status, 400);
});

const curl = peer("curl");
const python = peer("python3");

test(
  "an imported request of HTTP/2, without Host and length, is sent by curl over HTTP/2 and by Python over HTTP/1.1",
  { skip: curl.skip || python.skip },
  async () => {
    await using started = await start();
    const seen: { method: string; authority: string; length: string | undefined; body: string }[] = [];
    const read = async (incoming: IncomingMessage | Http2ServerRequest, authority: string): Promise<void> => {
      let body = "";
      for await (const piece of incoming) body += String(piece);
      seen.push({ method: incoming.method ?? "", authority, length: incoming.headers["content-length"], body });
    };
    await using cleanup = new AsyncDisposableStack();
    const listen = async (server: Server | Http2Server): Promise<number> => {
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      cleanup.defer(() => void server.close());
      return (server.address() as AddressInfo).port;
    };
    const http2Port = await listen(
      createHttp2Server((incoming, response) => void read(incoming, incoming.authority).then(() => response.end())),
    );
    const http1Port = await listen(
      createServer((incoming, response) => void read(incoming, incoming.headers.host ?? "").then(() => response.end())),
    );
    const textFor = async (port: number, format: string): Promise<string> => {
      const har = {
        log: {
          version: "1.2",
          creator: { name: "Firefox", version: "140" },
          entries: [
            {
              startedDateTime: "2026-11-01T10:00:00.000Z",
              time: 1,
              request: {
                method: "POST",
                url: `http://127.0.0.1:${port}/v1`,
                httpVersion: "HTTP/2",
                cookies: [],
                headers: [
                  { name: ":authority", value: `127.0.0.1:${port}` },
                  { name: "content-type", value: "application/json" },
                  { name: "connection", value: "keep-alive" },
                ],
                queryString: [],
                postData: { mimeType: "application/json", text: '{"a":1}' },
                headersSize: -1,
                bodySize: 7,
              },
              response: {
                status: 200,
                statusText: "",
                httpVersion: "HTTP/2",
                cookies: [],
                headers: [],
                content: { size: 0, mimeType: "" },
                redirectURL: "",
                headersSize: -1,
                bodySize: 0,
              },
              cache: {},
              timings: { send: 0, wait: 1, receive: 0 },
            },
          ],
        },
      };
      const source = ReadableStream.from([Buffer.from(JSON.stringify(har))]);
      const options = { sessionName: undefined, switchSession: false, signal: NEVER, onProgress: () => undefined };
      const { session_id: session } = await started.rig.store.importHar(source, options);
      const { rows } = await started.rig.rows({ session_id: session });
      const { json } = await started.api.call("GET", `/api/export/snippet/${rows[0]?.id}?format=${format}`);
      return (json as { text: string }).text;
    };
    for (const format of ["curl", "curl-powershell", "curl-cmd"]) {
      assert.doesNotMatch(await textFor(http2Port, format), /host:|content-length|connection/iu, format);
    }
    await runShell(await textFor(http2Port, "curl"));
    const ran = await runProcess(python.path, ["-c", await textFor(http1Port, "python")], { env: ENVIRONMENT });
    assert.equal(ran.code, 0, ran.stderr);
    assert.deepEqual(seen, [
      { method: "POST", authority: `127.0.0.1:${http2Port}`, length: "7", body: '{"a":1}' },
      { method: "POST", authority: `127.0.0.1:${http1Port}`, length: "7", body: '{"a":1}' },
    ]);
  },
);

test("a large body comes whole", async () => {
  await using started = await start();
  const body = Buffer.alloc(1_500_000, "0123456789");
  const { id } = started.rig.add({ method: "PUT", requestBody: [body] });
  await started.rig.store.flush();
  const { json } = await started.api.call("GET", `/api/export/curl/${id}`);
  const base64 = /<<'END-OF-BODY'[^\n]*(?:\\\n[^\n]*)*\n([A-Za-z0-9+/=\n]+)\nEND-OF-BODY\n$/u.exec(
    (json as { curl: string }).curl,
  );
  assert.ok(Buffer.from(base64?.[1] ?? "", "base64").equals(body));
});

test("of a WebSocket the handshake is written, whatever was said on it", async () => {
  await using started = await start();
  const { rig, api } = started;
  const { id } = rig.add({ scheme: "wss", host: "chat.example", path: "/room", requestBody: ["m"], spool: undefined });
  await rig.store.flush();
  const { status, json } = await api.call("GET", `/api/export/curl/${id}`);
  assert.equal(status, 200);
  assert.match((json as { curl: string }).curl, /^curl '?https:\/\/chat\.example/u);
  assert.doesNotMatch((json as { curl: string }).curl, /--data/u);
});

test("unknown ids are 404", async () => {
  await using started = await start();
  for (const path of ["/api/export/curl/none", "/api/export/snippet/none?format=wget"]) {
    const { status, json } = await started.api.call("GET", path);
    assert.equal(status, 404);
    assert.deepEqual({ ...(json as object) }, { error: "Entry not found", code: "NOT_FOUND" });
  }
});

test("what cannot be reproduced is refused with the reason", async (t) => {
  await using started = await start({ maxBodyBytes: 20_971_520 });
  const { rig, api } = started;
  const cases = [
    { is: "a tunnel", entry: rig.add({ method: "CONNECT", scheme: "tcp", path: "/" }), says: /tunnel/ },
    {
      is: "a cut body",
      entry: rig.add({ method: "POST", requestBody: ["0123456789"], limitBytes: 4 }),
      says: /first 4 of 10 bytes/,
    },
    {
      is: "a body that was not stored",
      entry: rig.add({ method: "POST", requestBody: ["x"], spool: undefined }),
      says: /not stored/,
    },
    {
      is: "a body too large for a command",
      entry: rig.add({ method: "POST", requestBody: [Buffer.alloc(MAX_BODY_BYTES + 1)] }),
      says: /too many for a command/,
    },
  ];
  await rig.store.flush();
  for (const { is, entry, says } of cases) {
    await t.test(is, async () => {
      const { status, json } = await api.call("GET", `/api/export/curl/${entry.id}`);
      assert.equal(status, 409);
      assert.equal((json as { code: string }).code, "CONFLICT");
      assert.match((json as { error: string }).error, says);
    });
  }
});

test("HAR comes oldest first, with its count, filtered and by ids", async () => {
  await using started = await start();
  const { rig, api } = started;
  const [first, second, third] = ["/1", "/2", "/3"].map((path) => rig.add({ path }));
  await rig.store.flush();
  const all = await api.call("GET", "/api/export/har");
  assert.equal(all.status, 200);
  assert.equal(all.headers.get("x-total-count"), "3");
  assert.match(all.headers.get("content-type") ?? "", /^application\/json/);
  assert.equal(all.headers.get("content-disposition"), null);
  const idsOf = (response: { json: unknown }): string[] =>
    (response.json as Har).log.entries.map((entry) => entry._weir.id);
  assert.deepEqual(idsOf(all), [first?.id, second?.id, third?.id]);
  assert.equal((all.json as Har).log.version, "1.2");
  const some = await api.call("GET", `/api/export/har?ids=${third?.id},${first?.id},none`);
  assert.equal(some.headers.get("x-total-count"), "2");
  assert.deepEqual(idsOf(some), [first?.id, third?.id]);
  assert.deepEqual(idsOf(await api.call("GET", "/api/export/har?url=/2")), [second?.id]);
  assert.deepEqual(idsOf(await api.call("GET", "/api/export/har?ids=")), []);
  const many = Array.from({ length: 10_000 }, (_, index) => `unknown-${String(index).padStart(28, "0")}`);
  assert.deepEqual(idsOf(await api.call("GET", `/api/export/har?ids=${[second?.id, ...many].join(",")}`)), [
    second?.id,
  ]);
});

test("ids and a filter together are refused, since one of them would be ignored", async () => {
  await using started = await start();
  for (const filter of ["q=status:200", "session_id=x", "method=GET"]) {
    const { status, json } = await started.api.call("GET", `/api/export/har?ids=x&${filter}`);
    assert.equal(status, 400, filter);
    assert.equal((json as { details: { path: string }[] }).details[0]?.path, "query/ids");
  }
});

test("a filter that does not parse is refused before anything is sent", async () => {
  await using started = await start();
  const { status, json } = await started.api.call("GET", `/api/export/har?q=${encodeURIComponent("status:(")}`);
  assert.equal(status, 400);
  assert.equal((json as { code: string }).code, "VALIDATION_ERROR");
});
