import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { TrafficEntry } from "@headworks/capture-contract";
import { temporaryDirectory } from "@headworks/testkit";
import { openTemporaryStore, testsSharing } from "../../../test/shared-rig.ts";
import type { ImportOptions } from "../capture-store.ts";
import { NEVER, openRig } from "../store-rig.ts";
import type { StoreRig } from "../store-rig.ts";

type Json = Record<string, unknown>;

function importing(options: Partial<ImportOptions> = {}): ImportOptions {
  return { sessionName: undefined, switchSession: false, signal: NEVER, onProgress: () => undefined, ...options };
}

async function* cut(bytes: Uint8Array, pieceBytes = 65_536): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
}

async function exported(rig: StoreRig, id: string): Promise<Buffer> {
  const document = await rig.store.exportSession(id, NEVER);
  assert.ok(document !== undefined);
  return Buffer.concat(await Array.fromAsync(document.chunks));
}

/** An export without session name and times. */
function comparable(bytes: Buffer, ids: "kept" | "new"): unknown {
  const { entries, bodies } = JSON.parse(bytes.toString()) as { entries: Json[]; bodies?: Json[] };
  return {
    entries: entries.map(({ seq: _seq, session_id: _session, id, ...rest }) =>
      ids === "kept" ? { id, ...rest } : rest,
    ),
    bodies: bodies?.map(({ entry, ...rest }) => (ids === "kept" ? { entry, ...rest } : rest)),
  };
}

const LARGE = Buffer.alloc(
  9_000_001,
  Uint8Array.from({ length: 251 }, (_, index) => index),
);

/** One entry of every kind, including large bodies and unusual targets. */
async function fill(rig: StoreRig): Promise<void> {
  const noted = rig.add({ requestBody: ["text"], responseBody: [new Uint8Array([0, 255])] });
  rig.add({ responseBody: [LARGE], requestBody: [LARGE.subarray(0, 4_194_305)] });
  rig.add({ responseBody: [LARGE.subarray(0, 300_000)] });
  rig.add({ method: "OPTIONS", path: "*" });
  // Like replays.
  rig.add({ client: { address: undefined, connection: undefined } });
  rig.add({ method: "CONNECT", scheme: "tcp", host: "tunnel.example", port: 5222, path: "/" });
  rig.add({ host: "::1", port: 8443, path: "//a?b=%zz" });
  rig.add({ responseBody: ["base64:"], limitBytes: 4 });
  rig.add({ responseBody: ["gone"], spool: undefined });
  rig.add({
    durationMs: 31.4,
    state: {
      step: "failed",
      failure: { stage: "connect", side: "upstream", code: "UPSTREAM_REFUSED", message: "refused" },
    },
  });
  await rig.store.flush();
  await rig.store.setNote(noted.id, "a note");
}

test("a session moves to another store and back unchanged, with its ids", async (t) => {
  await using directory = await temporaryDirectory();
  await using first = await openRig(directory.file("first"));
  await using second = await openRig(directory.file("second"));
  await fill(first);
  const before = await exported(first, first.store.activeSessionId);
  for (const pieceBytes of [1_000_000, 4093]) {
    const result = await second.store.importSession(cut(before, pieceBytes), importing({ sessionName: "Again" }));
    assert.deepEqual([result.imported_count, result.skipped_count, result.errors], [10, 0, []]);
    // The second import finds the ids taken.
    const ids = pieceBytes === 4093 ? "new" : "kept";
    assert.deepEqual(comparable(await exported(second, result.session_id), ids), comparable(before, ids));
  }
  assert.equal(second.store.status().entriesLost, 0);
  await t.test("large bodies are exported in parts, restored to files and readable in any range", async () => {
    const longest = before
      .toString()
      .split("\n")
      .reduce((max, { length }) => Math.max(max, length), 0);
    assert.ok(longest < 1_100_000, `a line has ${longest} characters`);
    const files = readdirSync(directory.file("first/bodies")).length;
    const { session_id: id } = await first.store.importSession(cut(before), importing());
    assert.equal(readdirSync(directory.file("first/bodies")).length, 2 * files);
    const { rows } = await first.rows({ session_id: id, min_size: LARGE.length });
    const part = await first.store.readBody(rows[0]?.id ?? "", "response", {
      decoded: false,
      utf8: false,
      start: 8_000_000,
      end: undefined,
    });
    assert.ok(Buffer.from(part?.bytes ?? []).equals(LARGE.subarray(8_000_000)));
  });
});

const ENTRY = {
  timestamp: "2026-01-02T03:04:05.678Z",
  request: { method: "GET", url: "https://example.com/a" },
  response: { status_code: 200 },
};

function document(members: Json): Buffer {
  return Buffer.from(JSON.stringify({ version: "1.0", session: {}, ...members }));
}

const inStore = testsSharing("a native document", openTemporaryStore);

inStore("a document with only the required members is imported", async (rig) => {
  const entry = {
    ...ENTRY,
    id: "old-1",
    request: {
      ...ENTRY.request,
      headers: { Accept: "*/*" },
      body: "base64:AAH/",
      content_type: "image/png",
      http_version: null,
    },
    response: {
      ...ENTRY.response,
      headers: { "Set-Cookie": "a=1\nb=2" },
      body: "text",
      content_type: "text/CSS; charset=utf-8",
      duration_ms: 12,
    },
  };
  const { session_id: id } = await rig.store.importSession(cut(document({ entries: [entry] })), importing());
  const found = await rig.entry("old-1");
  assert.equal(found?.session_id, id);
  assert.deepEqual(found.request.headers_list, [["Accept", "*/*"]]);
  assert.deepEqual(
    [found.request.body, found.request.body_state, found.request.body_size],
    ["base64:AAH/", "complete", 3],
  );
  assert.deepEqual(found.response?.headers_list, [
    ["Set-Cookie", "a=1"],
    ["Set-Cookie", "b=2"],
  ]);
  assert.deepEqual([found.response?.body, found.response?.duration_ms, found.source], ["text", 12, "import"]);
  assert.deepEqual([found.request.content_type, found.response?.content_type], ["image/png", "text/css"]);
  assert.equal(found.resource_type, "stylesheet");
});

inStore("the session's facts are normalized to what the API accepts", async (rig) => {
  const long = `${"x".repeat(254)}\u{1f600}`;
  const cases: readonly (readonly [said: Json, name: string | null, notes: string | null, tags: readonly string[]])[] =
    [
      [{ name: " \u{1f600} ", notes: "\u{1f600}\0", tags: ["\u{1f600}"] }, " \u{1f600} ", "\u{1f600}\0", ["\u{1f600}"]],
      [
        { name: "a\ud83d", notes: "\ude00b", tags: ["a", "\ud83d", "b\ude00"] },
        "a\ufffd",
        "\ufffdb",
        ["a", "\ufffd", "b\ufffd"],
      ],
      [{ name: "\0a\0", tags: ["a\0b", "\0", " \0 "] }, "a", null, ["ab"]],
      [
        { name: long, notes: "y".repeat(65_535) + long.slice(254), tags: [long, "a"] },
        "x".repeat(254),
        "y".repeat(65_535),
        ["a"],
      ],
      [{ name: ` \0${" ".repeat(255)}a` }, "Imported session", null, []],
    ];
  for (const [said, name, notes, tags] of cases) {
    const { session_id: id } = await rig.store.importSession(
      cut(document({ session: said, entries: [] })),
      importing(),
    );
    const session = (await rig.store.listSessions()).find((each) => each.id === id);
    assert.deepEqual([session?.name, session?.notes, session?.tags], [name, notes, tags]);
  }
});

inStore("a media type without a field survives both formats, with and without a body", async (rig) => {
  const typed = (body: string | null, type: string | null): Json => ({
    ...ENTRY,
    request: { ...ENTRY.request, body, content_type: type },
    response: { ...ENTRY.response, body, content_type: type },
  });
  const entries = [typed("text", "text/css"), typed(null, "image/png"), typed(null, null), typed("text", "x-unknown")];
  const shown = async (id: string): Promise<unknown[]> => {
    const found = JSON.parse((await exported(rig, id)).toString()) as { entries: TrafficEntry[] };
    return found.entries.map(({ request, response, resource_type: kind }) => [
      request.content_type,
      response?.content_type,
      kind,
    ]);
  };
  const first = await rig.store.importSession(cut(document({ entries })), importing());
  assert.deepEqual(await shown(first.session_id), [
    ["text/css", "text/css", "stylesheet"],
    ["image/png", "image/png", "image"],
    [null, null, "other"],
    [null, null, "other"],
  ]);
  const session = await exported(rig, first.session_id);
  const har = await rig.store.exportHar({ session_id: first.session_id }, undefined, NEVER);
  const second = await rig.store.importSession(cut(session), importing());
  const third = await rig.store.importHar(cut(Buffer.concat(await Array.fromAsync(har.chunks))), importing());
  for (const { session_id: id } of [second, third]) {
    assert.deepEqual(await shown(id), await shown(first.session_id));
  }
});

inStore("a replay in a document of an earlier version has no client", async (rig) => {
  const entries = [
    { ...ENTRY, id: "replay", client_addr: "replay:3", connection_id: -3 },
    { ...ENTRY, id: "client", client_addr: "127.0.0.1:50000", connection_id: 3 },
    { ...ENTRY, id: "neither" },
    { ...ENTRY, id: "from-har", client_addr: "replay:12" },
  ];
  const streams = [
    { entry: "replay", kind: "websocket", client_addr: "replay:3" },
    { entry: "client", kind: "websocket", client_addr: "127.0.0.1:50000" },
  ];
  await rig.store.importSession(cut(document({ entries, streams })), importing());
  const found = await Promise.all(["replay", "client", "neither", "from-har"].map(async (id) => await rig.entry(id)));
  assert.deepEqual(
    found.map((entry) => [entry?.client_addr, entry?.connection_id]),
    [
      [null, null],
      ["127.0.0.1:50000", 3],
      [null, null],
      [null, null],
    ],
  );
  const clients = await Promise.all(
    ["replay", "client"].map(async (id) => (await rig.store.streams.getStream(id))?.clientAddress),
  );
  assert.deepEqual(clients, [null, "127.0.0.1:50000"]);
});

const withRequest = (members: Json): Json => ({ ...ENTRY, request: { ...ENTRY.request, ...members } });
const deep = `{"a":`.repeat(200);

const BAD: readonly [is: string, document: Buffer | string, says: RegExp][] = [
  ["nothing", "", /the file is empty/],
  ["a list", "[]", /must begin with `\{` \(at byte 0\)/],
  ["no version", '{"entries":[{}]}', /`version` must come before `entries` \(at byte 12\)/],
  ["a newer version", '{"version":"1.1","entries":[]}', /made by a newer program; this one reads 1\.0 \(at byte/],
  ["a version of another kind", '{"version":1,"entries":[]}', /`version` is not "1\.0"/],
  ["no entries", '{"version":"1.0"}', /no `entries` array/],
  ["entries that are no list", '{"version":"1.0","entries":{}}', /no `entries` array/],
  ["a session that is none", document({ session: [] }), /session: is not an object/],
  [
    "an entry that is no object",
    document({ entries: [ENTRY, null] }),
    /^entry 1: it is not an object \(at byte \d+\)$/,
  ],
  ["no request", document({ entries: [{ ...ENTRY, request: null }] }), /entry 0: `request` is missing/],
  ["no time", document({ entries: [{ ...ENTRY, timestamp: "soon" }] }), /`timestamp` is not a time/],
  [
    "a method that is none",
    document({ entries: [withRequest({ method: "G T" })] }),
    /`request.method` is not a method/,
  ],
  [
    "a URL of another kind",
    document({ entries: [withRequest({ url: "javascript:alert(1)" })] }),
    /`request.url` is not/,
  ],
  ["a host that is none", document({ entries: [withRequest({ url: "http://a b/" })] }), /`request.url` is not/],
  ["a target with a line end", document({ entries: [withRequest({ path: "/\r\nX: 1" })] }), /`request.path` is not/],
  [
    "fields that are no pairs",
    document({ entries: [withRequest({ headers_list: [["a"]] })] }),
    /`request.headers_list\[0\]`/,
  ],
  [
    "a field with a line end",
    document({ entries: [withRequest({ headers_list: [["a", "b\r\nc: d"]] })] }),
    /has an invalid value/,
  ],
  ["a body that is a number", document({ entries: [withRequest({ body: 7 })] }), /`request.body` is not text/],
  [
    "base64 with a hole",
    document({ entries: [withRequest({ body: "base64:AA!=", body_encoding: "base64" })] }),
    /not base64/,
  ],
  ["base64 cut off", document({ entries: [withRequest({ body: "AAA", body_encoding: "base64" })] }), /not base64/],
  [
    "a negative size",
    document({ entries: [withRequest({ body_size: -1 })] }),
    /`request.body_size` is not a whole number/,
  ],
  ["a status beyond all", document({ entries: [{ ...ENTRY, response: { status_code: 1000 } }] }), /not a status/],
  ["timings of text", document({ entries: [{ ...ENTRY, timings: { dns: "1" } }] }), /`timings.dns` is not a number/],
  ["notes that are an object", document({ entries: [{ ...ENTRY, notes: {} }] }), /`notes` is not text/],
  [
    "a failure of no stage",
    document({ entries: [{ ...ENTRY, failure: { stage: "x" } }] }),
    /`failure.stage` is not one of/,
  ],
  [
    "a prototype",
    '{"version":"1.0","entries":[{"__proto__":{"request":{"method":"GET","url":"http://a/"}},"timestamp":"2026-01-01T00:00:00Z"}]}',
    /`request` is missing/,
  ],
  ["deep nesting", `{"version":"1.0","entries":[${deep}`, /nested too deeply \(at byte \d+\)/],
  [
    "bytes that are no UTF-8",
    Buffer.from('{"version":"1.0","entries":[{"notes":"\xff"}]}', "latin1"),
    /not valid UTF-8 \(at byte 28\)/,
  ],
  ["an entry that is no JSON", '{"version":"1.0","entries":[{"a":tru}]}', /this is not JSON \(at byte 28\)/],
  ["an end in the middle", '{"version":"1.0","entries":[{"a":1', /stops before its end/],
  ["something behind it", '{"version":"1.0","entries":[]}x', /there is content after/],
  ["bodies behind the entries", document({ entries: [], bodies: [{}] }), /must come before `entries`/],
  ["a part of no side", document({ bodies: [{ entry: "a", side: "x", data: "" }] }), /bodies 0: `side` is not one of/],
  [
    "a part that is no base64",
    document({ bodies: [{ entry: "a", side: "request", data: "*" }] }),
    /`data` is not base64/,
  ],
  [
    "parts that are mixed up",
    document({ bodies: ["a", "b", "a"].map((entry) => ({ entry, side: "request", data: "AAAA" })) }),
    /are not contiguous/,
  ],
];

test("an invalid document is rejected with the position and leaves nothing behind", async (t) => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  for (const [is, text, says] of BAD) {
    await t.test(is, async () => {
      const attempt = rig.store.importSession(cut(Buffer.from(text), 7), importing());
      await assert.rejects(attempt, { name: "ImportRefusedError", message: says });
    });
  }
  await t.test("entries before an invalid one are removed, including bodies in files", async () => {
    const large = { ...withRequest({ method: "PUT", body: "x".repeat(700_000) }), id: "large" };
    const entries = [...Array.from({ length: 600 }, () => ENTRY), large, 7];
    const bodies = [{ entry: "unused", side: "request", data: "AAAA" }];
    await assert.rejects(rig.store.importSession(cut(document({ bodies, entries })), importing()), /^.*entry 601:/);
    assert.equal(await rig.entry("large"), undefined);
  });
  assert.equal((await rig.store.listSessions()).length, 1);
  assert.deepEqual(readdirSync(directory.file("bodies")), []);
  assert.equal(({} as Json)["request"], undefined);
});

inStore("a string of a gigabyte is rejected long before its end", async (rig) => {
  const before = await rig.store.listSessions();
  let sentBytes = 0;
  async function* endless(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('{"version":"1.0","entries":[{"notes":"');
    const piece = Buffer.alloc(1_048_576, "x");
    for (; sentBytes < 1_073_741_824; sentBytes += piece.length) yield piece;
  }
  await assert.rejects(rig.store.importSession(endless(), importing()), { message: /too large \(at byte \d+\)/ });
  assert.ok(sentBytes < 200_000_000, `${sentBytes} bytes were read`);
  assert.deepEqual(await rig.store.listSessions(), before);
});

test("a session is invisible until it is complete, and a restart during the import removes it", async () => {
  await using directory = await temporaryDirectory();
  const { promise: stalled, resolve: go } = Promise.withResolvers<void>();
  const first = await openRig(directory.path);
  async function* slow(): AsyncGenerator<Uint8Array> {
    const whole = document({ entries: Array.from({ length: 600 }, () => ENTRY) });
    yield whole.subarray(0, whole.length - 10);
    await stalled;
    throw new Error("The connection broke");
  }
  const seen = Promise.withResolvers<void>();
  const attempt = first.store.importSession(slow(), importing({ onProgress: () => seen.resolve() }));
  attempt.catch(() => undefined);
  await seen.promise;
  await nextTurn();
  assert.equal((await first.store.listSessions()).length, 1);
  await first.store.close();
  go();
  await assert.rejects(attempt);
  await using again = await openRig(directory.path);
  assert.equal((await again.store.listSessions()).length, 1);
  assert.equal((await again.rows()).total, 0);
});

test("an export that is not read to its end, or not at all, is closed", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  for (let count = 0; count < 3000; count += 1) rig.add();
  await rig.store.flush();
  const id = rig.store.activeSessionId;
  const unread = await rig.store.exportSession(id, NEVER);
  assert.deepEqual(await unread?.chunks[Symbol.asyncIterator]().return?.(), { done: true, value: undefined });
  assert.deepEqual(await unread?.chunks[Symbol.asyncIterator]().next(), { done: true, value: undefined });
  const controller = new AbortController();
  const aborted = await rig.store.exportSession(id, controller.signal);
  const iterator = aborted?.chunks[Symbol.asyncIterator]();
  assert.equal((await iterator?.next())?.done, false);
  controller.abort();
  await assert.rejects(async () => await iterator?.next(), { name: "AbortError" });
});

inStore("an entry exported while running is imported as failed", async (rig) => {
  const text = document({ entries: [{ ...ENTRY, id: "p", response: null, state: "pending" }] });
  await rig.store.importSession(cut(text), importing());
  const entry = (await rig.entry("p")) as TrafficEntry;
  assert.deepEqual([entry.state, entry.failure?.code], ["failed", "SHUTDOWN"]);
});
