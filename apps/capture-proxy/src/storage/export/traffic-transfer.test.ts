import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import type { TrafficEntry } from "@headworks/capture-contract";
import { temporaryDirectory } from "@headworks/testkit";
import type { ImportOptions } from "../capture-store.ts";
import type { SampleOptions } from "../read/sample-exchange.ts";
import { NEVER, openRig } from "../store-rig.ts";
import type { StoreRig } from "../store-rig.ts";

const MIXED: readonly SampleOptions[] = [
  {
    method: "POST",
    requestFields: ["Host", "a", "X-A", "1", "x-a", "2"],
    requestBody: ["some body"],
    responseBody: ["response"],
  },
  {
    responseFields: ["Content-Type", "application/json", "Content-Encoding", "gzip"],
    responseBody: [gzipSync('{"a":1}')],
    durationMs: 77.25,
  },
  {
    responseFields: ["Content-Type", "application/octet-stream"],
    responseBody: [new Uint8Array([0, 200, 255, 10, 13])],
  },
  { responseBody: ["base64:not really"], path: "/q?a=%20b&c", scheme: "http", port: 8080 },
  { responseBody: ["cut off here"], limitBytes: 3 },
  { responseBody: ["x".repeat(700_000)] },
  {
    state: {
      step: "failed",
      failure: { stage: "connect", side: "upstream", code: "UPSTREAM_REFUSED", message: "refused" },
    },
  },
];

async function document(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(chunks));
}

async function* cut(bytes: Uint8Array, pieceBytes: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
}

function importing(options: Partial<ImportOptions> = {}): ImportOptions {
  return { sessionName: undefined, switchSession: false, signal: NEVER, onProgress: () => undefined, ...options };
}

async function entriesOf(rig: StoreRig, sessionId: string): Promise<TrafficEntry[]> {
  const { json } = await rig.store.listEntries({
    filter: { session_id: sessionId },
    limit: 1000,
    offset: 0,
    cursor: undefined,
    includeBodies: true,
    signal: NEVER,
  });
  return (JSON.parse(new TextDecoder().decode(json)) as TrafficEntry[]).reverse();
}

/** Everything that an import preserves. */
function content(entry: TrafficEntry): unknown {
  const { id: _id, seq: _seq, session_id: _session, ...rest } = entry;
  return rest;
}

test("a session survives export and import except for its ids, in chunks of any size", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const { store } = rig;
  const added = MIXED.map((options) => rig.add(options));
  await store.setNote(added[0]?.id ?? "", "a note");
  const original = store.activeSessionId;
  await store.updateSession(original, { name: "Original", notes: "about", tags: ["x", "y"] });
  const exported = await store.exportSession(original, NEVER);
  assert.equal(exported?.total, MIXED.length);
  const bytes = await document(exported.chunks);
  const parsed = JSON.parse(bytes.toString()) as {
    version: string;
    session: { name: string; request_count: number };
    entries: unknown[];
  };
  assert.deepEqual(
    [parsed.version, parsed.session.name, parsed.session.request_count, parsed.entries.length],
    ["1.0", "Original", 7, 7],
  );
  const before = (await entriesOf(rig, original)).map(content);
  for (const pieceBytes of [65_536, 4093]) {
    const result = await store.importSession(cut(bytes, pieceBytes), importing());
    assert.deepEqual([result.imported_count, result.skipped_count, result.errors], [MIXED.length, 0, []]);
    const session = await store.getSession(result.session_id);
    assert.deepEqual(
      [session?.name, session?.notes, session?.tags, session?.request_count],
      ["Original", "about", ["x", "y"], 7],
    );
    assert.deepEqual((await entriesOf(rig, result.session_id)).map(content), before);
  }
  assert.equal(store.activeSessionId, original);
});

test("a HAR keeps fields, bodies, timings, failures and notes through export and import", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const { store } = rig;
  const added = MIXED.map((options) => rig.add(options));
  await store.setNote(added[1]?.id ?? "", "a note");
  const { chunks, total } = await store.exportHar({}, undefined, NEVER);
  assert.equal(total, MIXED.length);
  const bytes = await document(chunks);
  const har = JSON.parse(bytes.toString()) as { log: { version: string; entries: { request: { url: string } }[] } };
  assert.equal(har.log.version, "1.2");
  assert.equal(har.log.entries[3]?.request.url, "http://example.com:8080/q?a=%20b&c");
  const wrapped = Buffer.concat([
    Buffer.from('{"session_name":"Wrapped","har":'),
    bytes,
    Buffer.from(',"switch_session":true}'),
  ]);
  const before = (await entriesOf(rig, store.activeSessionId)).map(content);
  for (const [source, name] of [
    [cut(bytes, 10_000), "Imported HAR"],
    [cut(wrapped, 777), "Wrapped"],
  ] as const) {
    const progress: number[] = [];
    const result = await store.importHar(source, importing({ onProgress: ({ entries }) => progress.push(entries) }));
    assert.deepEqual([result.imported_count, result.skipped_count, result.errors], [MIXED.length, 0, []]);
    assert.equal((await store.getSession(result.session_id))?.name, name);
    assert.equal(store.activeSessionId === result.session_id, name === "Wrapped");
    assert.equal(progress.at(-1), MIXED.length);
    const after = (await entriesOf(rig, result.session_id)).map(content);
    assert.deepEqual(after.map(comparable), before.map(comparable));
  }
});

/** Ignores the source that imports from HAR set. */
function comparable(value: unknown): unknown {
  return { ...(value as TrafficEntry), source: "import" };
}

test("a HAR has a page with a start time, and URLs that HAR readers know, also for tunnels", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const { store } = rig;
  const tunnels: readonly [SampleOptions, url: string][] = [
    [{ method: "CONNECT", scheme: "tcp", host: "mail.example", port: 993 }, "https://mail.example:993/"],
    [{ method: "CONNECT", scheme: "tcp", host: "::1", port: 22 }, "https://[::1]:22/"],
    [{ method: "CONNECT", scheme: "tcp", host: "no-port.example", port: 0 }, "https://no-port.example/"],
    [{ method: "CONNECT", scheme: "https", host: "web.example", port: 443 }, "https://web.example:443/"],
  ];
  const startedAtMs = Date.UTC(2026, 10, 1, 12);
  for (const [options] of tunnels) rig.add({ ...options, path: "/", startedAtMs });
  rig.add({ startedAtMs: startedAtMs - 1000 });
  await store.flush();
  const before = (await entriesOf(rig, store.activeSessionId)).map((entry) => entry.request.url);

  const bytes = await document((await store.exportHar({}, undefined, NEVER)).chunks);
  const { log } = JSON.parse(bytes.toString()) as {
    log: {
      pages: { id: string; startedDateTime: string; title: string; pageTimings: unknown }[];
      entries: { pageref: string; request: { url: string } }[];
    };
  };
  const pageTimings = { onContentLoad: -1, onLoad: -1 };
  const [page] = log.pages;
  const title = `Capture session ${store.activeSessionId}`;
  assert.deepEqual(log.pages, [{ startedDateTime: "2026-11-01T11:59:59.000Z", id: page?.id, title, pageTimings }]);
  assert.ok(log.entries.every(({ pageref }) => pageref === page?.id));
  const urls = log.entries.map(({ request }) => request.url);
  assert.deepEqual(
    urls.slice(0, tunnels.length),
    tunnels.map(([, url]) => url),
  );
  assert.ok(urls.every((url) => ["http:", "https:"].includes(new URL(url).protocol)));

  const { session_id: imported } = await store.importHar(cut(bytes, 65_536), importing());
  assert.deepEqual(
    (await entriesOf(rig, imported)).map((entry) => entry.request.url),
    before,
  );
});

test("an export of given ids or of a filter contains exactly those entries, oldest first", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const added = [200, 404, 200].map((status) => rig.add({ status, path: `/${status}` }));
  await rig.store.flush();
  const urls = async (filter: object, ids?: string[]): Promise<string[]> => {
    const { chunks } = await rig.store.exportHar(filter, ids, NEVER);
    const har = JSON.parse((await document(chunks)).toString()) as { log: { entries: { request: { url: string } }[] } };
    return har.log.entries.map((entry) => new URL(entry.request.url).pathname);
  };
  assert.deepEqual(await urls({ status_code: "404" }), ["/404"]);
  assert.deepEqual(await urls({ search: "/200" }), ["/200", "/200"]);
  assert.deepEqual(await urls({}, [added[2]?.id ?? "", added[1]?.id ?? "", "unknown"]), ["/404", "/200"]);
  assert.equal(await rig.store.exportSession("unknown", NEVER), undefined);
});

test("invalid documents are rejected with a reason and leave no session behind", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const bad: readonly [kind: "har" | "session", text: string, message: RegExp][] = [
    ["har", "", /the file is empty/u],
    ["har", "[]", /must begin with/u],
    ["har", "{}", /log\.entries/u],
    ["har", '{"log":{}}', /log\.entries/u],
    ["har", '{"har":{"log":{"entries":[]}},"switch_session":"yes"}', /switch_session/u],
    ["har", '{"log":{"entries":[{"a":1}', /stops|incomplete/u],
    ["har", '{"log":{"entries":[]}} trailing', /content after/u],
    ["session", "{}", /`version`/u],
    ["session", '{"version":"1.0"}', /`entries`/u],
    ["session", '{"version":"2.0","session":{},"entries":[]}', /version/u],
    ["session", '{"version":"1.0","session":7,"entries":[]}', /session/u],
    ["session", '{"version":"1.0","entries":[{}', /stops before its end/u],
    ["session", `{"version":"1.0","entries":${"[".repeat(500)}`, /nested/u],
  ];
  for (const [kind, text, message] of bad) {
    const source = cut(Buffer.from(text), 5);
    const attempt =
      kind === "har" ? rig.store.importHar(source, importing()) : rig.store.importSession(source, importing());
    await assert.rejects(attempt, { name: "ImportRefusedError", message }, text);
  }
  assert.equal((await rig.store.listSessions()).length, 1);
});

test("an aborted import leaves nothing behind", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  rig.add();
  const exported = await rig.store.exportSession(rig.store.activeSessionId, NEVER);
  const bytes = await document(exported?.chunks ?? cut(Buffer.alloc(0), 1));
  const controller = new AbortController();
  const attempt = rig.store.importSession(
    cut(bytes, 100),
    importing({ signal: controller.signal, onProgress: () => controller.abort() }),
  );
  await assert.rejects(attempt, { name: "AbortError" });
  assert.equal((await rig.store.listSessions()).length, 1);
  assert.deepEqual(readdirSync(directory.file("bodies")), []);
});

test("the size of an imported response includes its body, also if the file does not state the size", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const entry = {
    startedDateTime: "2026-01-02T03:04:05.678Z",
    time: 1,
    request: {
      method: "GET",
      url: "http://a.example/",
      httpVersion: "HTTP/1.1",
      headers: [],
      queryString: [],
      cookies: [],
      headersSize: -1,
      bodySize: 0,
    },
    response: {
      status: 200,
      statusText: "OK",
      httpVersion: "HTTP/1.1",
      cookies: [],
      redirectURL: "",
      headersSize: -1,
      bodySize: -1,
      headers: [{ name: "A", value: "b" }],
      content: { size: 600, mimeType: "text/plain", text: "x".repeat(600) },
    },
    cache: {},
    timings: { send: 0, wait: 1, receive: 0 },
  };
  const bytes = Buffer.from(
    JSON.stringify({ log: { version: "1.2", creator: { name: "x", version: "1" }, entries: [entry] } }),
  );
  const { session_id: session } = await rig.store.importHar(cut(bytes, 100), importing());
  const { rows } = await rig.rows({ session_id: session });
  assert.equal(rows[0]?.response_size, 600 + "A: b\r\n".length);
});
