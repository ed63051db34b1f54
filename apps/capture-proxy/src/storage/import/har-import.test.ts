import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import type { HarEntry } from "@headworks/har";
import type { ImportResult, TrafficEntry } from "@headworks/capture-contract";
import { temporaryDirectory } from "@headworks/testkit";
import { openTemporaryStore, testsSharing } from "../../../test/shared-rig.ts";
import type { ImportOptions } from "../capture-store.ts";
import { NEVER, openRig } from "../store-rig.ts";
import type { StoreRig } from "../store-rig.ts";

type Json = Record<string, unknown>;

async function* cut(text: string | Buffer, pieceBytes = 1000): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
}

async function importHar(rig: StoreRig, text: string, options: Partial<ImportOptions> = {}): Promise<ImportResult> {
  const all = { sessionName: undefined, switchSession: false, signal: NEVER, onProgress: () => undefined, ...options };
  return await rig.store.importHar(cut(text), all);
}

/** An entry as browsers write it. */
function entryOf(request: Json = {}, response: Json = {}): Json {
  return {
    startedDateTime: "2026-01-02T03:04:05.678Z",
    time: 60,
    request: { method: "GET", url: "https://example.com/a", httpVersion: "http/2.0", headers: [], ...request },
    response: {
      status: 200,
      statusText: "",
      httpVersion: "h2",
      headers: [],
      content: { size: 0, mimeType: "text/plain" },
      ...response,
    },
    timings: { blocked: 1, dns: 2, connect: 30, ssl: 20, send: 1, wait: 20, receive: 6 },
  };
}

const har = (...entries: readonly unknown[]): string => JSON.stringify({ log: { version: "1.2", entries } });

/** Imports the entries in one document, since each import starts a thread, and returns the stored entries. */
async function imported(rig: StoreRig, entries: readonly Json[]): Promise<readonly TrafficEntry[]> {
  const result = await importHar(rig, har(...entries));
  assert.deepEqual([result.imported_count, result.skipped_count, result.errors], [entries.length, 0, []]);
  const { rows } = await rig.rows({ session_id: result.session_id }, { order: "asc" });
  return await Promise.all(rows.map(async ({ id }) => (await rig.entry(id)) ?? assert.fail("no entry")));
}

async function importedOne(rig: StoreRig, entry: Json): Promise<TrafficEntry> {
  return (await imported(rig, [entry]))[0] ?? assert.fail("no entry");
}

const inStore = testsSharing("a HAR of another program", openTemporaryStore);

inStore("an entry written by a browser is imported with time, stages, version and source", async (rig) => {
  const entry = await importedOne(rig, entryOf({ headers: [{ name: ":authority", value: "example.com" }] }));
  assert.equal(entry.timestamp, "2026-01-02T03:04:05.678Z");
  assert.deepEqual([entry.request.http_version, entry.source, entry.state], ["HTTP/2", "import", "complete"]);
  assert.deepEqual(entry.timings, { blocked: 1, dns: 2, connect: 10, tls: 20, send: 1, wait: 20, receive: 6 });
  assert.equal(entry.response?.duration_ms, 60);
  assert.deepEqual(entry.request.headers_list, []);
});

const codedEntry = (codings: readonly string[], content: Json): Json => {
  const headers = codings.map((value) => ({ name: "Content-Encoding", value }));
  return entryOf({}, { headers, content, bodySize: 23 });
};

async function bodyOf(rig: StoreRig, { id }: TrafficEntry, decoded: boolean): Promise<Buffer> {
  const options = { decoded, utf8: false, start: 0, end: undefined };
  return Buffer.from((await rig.store.readBody(id, "response", options))?.bytes ?? assert.fail("no body"));
}

/** The stored response of each entry. */
async function storedResponses(rig: StoreRig, entries: readonly Json[]) {
  const found = await imported(rig, entries);
  return await Promise.all(
    found.map(async (entry) => ({
      response: entry.response,
      shown: entry.response?.headers_list.map(([name, value]) => `${name}: ${value}`),
      raw: await bodyOf(rig, entry, false),
      decoded: await bodyOf(rig, entry, true),
    })),
  );
}

inStore(
  "a body that another program decoded is encoded again, so that fields and content stay what they were",
  async (rig) => {
    const png = { size: 3, mimeType: "image/png", text: "AP/+", encoding: "base64" };
    const page = { size: 5, mimeType: "text/html", text: "<p>é" };
    const codings = [["gzip"], ["x-gzip"], ["deflate"], ["br"], ["zstd"], ["br, gzip"], ["GZIP"]];
    const cases = codings.flatMap((coding) => [
      { coding, content: png, bytes: Buffer.from("AP/+", "base64") },
      { coding, content: page, bytes: Buffer.from("<p>é") },
      { coding, content: { ...page, text: ";" }, bytes: Buffer.from(";") },
    ]);
    const responses = await storedResponses(
      rig,
      cases.map(({ coding, content }) => codedEntry(coding, content)),
    );
    for (const [index, { coding, bytes }] of cases.entries()) {
      const stored = responses[index];
      assert.deepEqual(
        stored?.shown,
        coding.map((value) => `Content-Encoding: ${value}`),
      );
      assert.deepEqual(stored.decoded, bytes, coding.join());
      assert.notDeepEqual(stored.raw, bytes, coding.join());
      assert.equal(stored.response?.body_state, "complete");
      assert.equal(stored.response.body_size, stored.raw.length);
    }
  },
);

inStore("a body whose text is missing is not stored but keeps its size", async (rig) => {
  const headers = [{ name: "Content-Encoding", value: "gzip" }];
  const content = { size: 500, mimeType: "text/plain" };
  const { request, response } = await importedOne(rig, {
    ...entryOf({ method: "POST", bodySize: 77 }, { headers, content, bodySize: 300 }),
    time: 350,
    timings: { send: 0, wait: 0, receive: 0 },
  });
  assert.deepEqual([request.body_state, request.body_size, request.body_stored_size], ["not_stored", 77, 0]);
  assert.deepEqual([response?.body_state, response?.body_size, response?.duration_ms], ["not_stored", 300, 350]);
});

inStore("a body that is still encoded stays as it is", async (rig) => {
  const packed = gzipSync("content");
  const content = { size: 7, mimeType: "text/plain", text: packed.toString("base64"), encoding: "base64" };
  const [stored] = await storedResponses(rig, [codedEntry(["gzip"], content)]);
  assert.deepEqual(stored?.shown, ["Content-Encoding: gzip"]);
  assert.deepEqual([stored.raw, stored.decoded.toString()], [packed, "content"]);
});

inStore("a decoded body loses its Content-Encoding only if the coding is unknown", async (rig) => {
  const table: readonly (readonly [coding: string, shown: readonly string[]])[] = [
    ["dcb", []],
    ["gzip, constructor", []],
    ["identity", ["Content-Encoding: identity"]],
  ];
  const content = { size: 4, mimeType: "text/plain", text: "text" };
  const responses = await storedResponses(
    rig,
    table.map(([coding]) => codedEntry([coding], content)),
  );
  for (const [index, [coding, expected]] of table.entries()) {
    assert.deepEqual([responses[index]?.shown, responses[index]?.raw.toString()], [expected, "text"], coding);
  }
  const { response } = await importedOne(
    rig,
    entryOf({}, { headers: [{ name: "content-encoding", value: "dcb" }], content: { size: 0 } }),
  );
  assert.deepEqual(response?.headers_list, [["content-encoding", "dcb"]], "without a body nothing is untrue");
});

inStore("decoded text is stored in the charset of its Content-Type if possible", async (rig) => {
  const cases: readonly (readonly [contentType: string, content: Json, bytes: readonly number[]])[] = [
    ["text/html; charset=iso-8859-1", { text: "caf\u00e9" }, [0x63, 0x61, 0x66, 0xe9]],
    ['text/plain; charset="Shift_JIS"', { text: "\u65e5" }, [0x93, 0xfa]],
    ["text/html; charset=iso-8859-1", { text: "\u65e5" }, [0xe6, 0x97, 0xa5]],
    ["text/html; charset=nobody-knows", { text: "\u00e9" }, [0xc3, 0xa9]],
    ["text/html; charset=utf-8", { text: "\u00e9" }, [0xc3, 0xa9]],
    ["text/html", { text: "\u00e9" }, [0xc3, 0xa9]],
    ["text/html; charset=iso-8859-1", { text: "w6k=", encoding: "base64" }, [0xc3, 0xa9]],
  ];
  const responses = await storedResponses(
    rig,
    cases.map(([value, content]) =>
      entryOf({}, { headers: [{ name: "Content-Type", value }], content: { size: 9, ...content } }),
    ),
  );
  for (const [index, [contentType, content, bytes]] of cases.entries()) {
    assert.deepEqual([...(responses[index]?.raw ?? [])], bytes, `${contentType}, ${JSON.stringify(content)}`);
  }
});

inStore("the document's media type is used if there is no Content-Type field", async (rig) => {
  const cases: readonly (readonly [mimeType: string, headers: Json[], stored: string | null, resourceType: string])[] =
    [
      ["image/png", [], "image/png", "image"],
      ["Application/JSON; charset=utf-8", [], "application/json", "json"],
      ["image/png", [{ name: "Content-Type", value: "text/css" }], "text/css", "stylesheet"],
      ["image/png", [{ name: "content-type", value: "" }], null, "other"],
      ["x-unknown", [], null, "other"],
      ["application/x-unknown-content-type", [], null, "other"],
      ["", [], null, "other"],
    ];
  const png = { text: "iVBORw0KGgo=", encoding: "base64" };
  const entries = await imported(
    rig,
    cases.map(([mimeType, headers], index) => {
      const url = `https://${index}.example/`;
      const sent = { method: "POST", url, headers, postData: { mimeType, ...png } };
      return entryOf(sent, { headers, content: { mimeType, ...png } });
    }),
  );
  const session = { session_id: entries[0]?.session_id ?? assert.fail("no entry") };
  const { chunks } = await rig.store.exportHar(session, undefined, NEVER);
  const { log } = JSON.parse(Buffer.concat(await Array.fromAsync(chunks)).toString()) as {
    log: { entries: HarEntry[] };
  };
  for (const [index, [mimeType, headers, stored, resourceType]] of cases.entries()) {
    const is = `${mimeType}, ${JSON.stringify(headers)}`;
    const entry = entries[index] ?? assert.fail("no entry");
    const { rows } = await rig.rows({ ...session, q: `type:${resourceType} host:${index}.example` });
    assert.equal(rows.length, 1, is);
    assert.deepEqual([rows[0]?.content_type, rows[0]?.response_content_type], [stored, stored], is);
    assert.deepEqual([rows[0]?.resource_type, entry.resource_type], [resourceType, resourceType], is);
    const shown = headers[0]?.["value"] ?? stored;
    assert.deepEqual([entry.request.content_type, entry.response?.content_type], [shown, shown], is);
    const options = { decoded: false, utf8: false, start: 0, end: undefined };
    assert.equal((await rig.store.readBody(entry.id, "response", options))?.contentType, shown, is);
    const exported = log.entries.find(({ request }) => request.url.includes(`/${index}.example/`));
    assert.equal(exported?.response.content.mimeType, shown ?? "", is);
    assert.equal(exported.request.postData?.mimeType, shown ?? "", is);
  }
});

inStore("an id that is not valid in a URL is replaced", async (rig) => {
  const ids = ["", "a/b", "..\u0000", "x".repeat(65), "a b", "mine.1_a-b"];
  const entries = await imported(
    rig,
    ids.map((id) => ({ ...entryOf(), _weir: { version: 1, id } })),
  );
  for (const [index, { id }] of entries.slice(0, -1).entries()) {
    assert.match(id, /^[\da-f-]{36}$/u, JSON.stringify(ids[index]));
  }
  assert.equal(entries.at(-1)?.id, "mine.1_a-b");
});

inStore("fields are converted to valid ones", async (rig) => {
  const headers = [
    { name: "Set-Cookie", value: "a=1\nb=2" },
    { name: "X-Wide", value: "snow \u2603" },
    { name: "X-Lines", value: "a\r\nInjected: yes" },
    { name: "Link", value: "<a>\n<b>" },
  ];
  const { response } = await importedOne(rig, entryOf({}, { headers }));
  assert.deepEqual(response?.headers_list, [
    ["Set-Cookie", "a=1"],
    ["Set-Cookie", "b=2"],
    ["X-Wide", Buffer.from("snow \u2603").toString("latin1")],
    ["X-Lines", "a Injected: yes"],
    ["Link", "<a>"],
    ["Link", "<b>"],
  ]);
});

inStore("header fields with invalid names are skipped, and the result lists them", async (rig) => {
  const response = [{ name: "\u00fc", value: "x" }, ...["a b", "b", "c:", "(", "", ")"].map((name) => ({ name }))];
  const request = [7, { name: "A", value: "1" }, { value: "nameless" }];
  const document = har(
    entryOf({ headers: request }, { headers: response }),
    entryOf({ headers: { A: "1" } }, { headers: null }),
    entryOf({ headers: [{ name: ":path", value: "/" }] }),
  );
  const { imported_count: count, skipped_count: skipped, errors, session_id: id } = await importHar(rig, document);
  assert.deepEqual([count, skipped], [3, 0]);
  assert.deepEqual(errors, [
    "entry 0: left out for want of a name: `request.headers[0]`, `request.headers[2]`",
    'entry 0: header fields of its response with invalid names were skipped: "\u00fc", "a b", "c:", "(", ")"',
    "entry 1: `request.headers` is left out: it is no list",
  ]);
  const { rows } = await rig.rows({ session_id: id, q: "req.header[a]:1 resp.header[b]:*" });
  assert.equal(rows.length, 1);
});

inStore("request targets are converted to valid ones", async (rig) => {
  const cases = [
    ["https://user:secret@Example.COM/a", "https://example.com/a"],
    ["http://example.com:8080?q#fragment", "http://example.com:8080/?q"],
    ["http://[::1]:81/\u00e9 x", "http://[::1]:81/%C3%A9%20x"],
    ["wss://example.com/live", "wss://example.com/live"],
  ] as const;
  const entries = await imported(
    rig,
    cases.map(([url]) => entryOf({ url })),
  );
  assert.deepEqual(
    entries.map(({ request }) => request.url),
    cases.map(([, shown]) => shown),
  );
});

test("options may come before or after the document", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const document = har(entryOf());
  const orders = [
    `{"har":${document},"session_name":"N","switch_session":true}`,
    `{"switch_session":true,"har":${document},"session_name":"N"}`,
    ` {"session_name":"N" , "switch_session":true,\n"har" : ${document} } `,
  ];
  for (const text of orders) {
    const result = await importHar(rig, text);
    assert.equal(result.imported_count, 1);
    assert.equal((await rig.store.getSession(result.session_id))?.name, "N");
    assert.equal(rig.store.activeSessionId, result.session_id);
  }
  const named = await importHar(rig, orders[0] ?? "", { sessionName: "Given outside" });
  assert.equal((await rig.store.getSession(named.session_id))?.name, "Given outside");
  const bare = await importHar(rig, `{"of_its_own":[{}],${document.slice(1, -1)},"$more":1}`);
  assert.equal((await rig.store.getSession(bare.session_id))?.name, "Imported HAR");
  assert.notEqual(rig.store.activeSessionId, bare.session_id);
});

inStore(
  "unusable entries are counted, the first of them named, and the last sentence counts the others",
  async (rig) => {
    const bad = [null, { request: {} }, entryOf({ url: "about:blank" }), entryOf({ url: "http://a b/" })];
    const result = await importHar(rig, har(entryOf(), ...bad, ...Array.from({ length: 200 }, () => 7), entryOf()));
    assert.deepEqual([result.imported_count, result.skipped_count, result.errors.length], [2, 204, 100]);
    assert.deepEqual(
      result.errors.slice(0, 5).map((sentence) => sentence.slice(0, 8)),
      ["entry 1:", "entry 2:", "entry 3:", "entry 4:", "entry 5:"],
    );
    assert.deepEqual(result.errors[99], "105 more messages are not shown");
    const { total } = await rig.rows({ session_id: result.session_id });
    assert.equal(total, 2);
  },
);

inStore("an entry with an invalid base64 body on either side is skipped", async (rig) => {
  const text = "@@not base64@@";
  const own = { version: 1, response: { raw: text, encoded: true } };
  const result = await importHar(
    rig,
    har(
      entryOf({}, { content: { encoding: "base64", text } }),
      entryOf({ method: "POST", postData: { mimeType: "x/y", encoding: "base64", text } }),
      { ...entryOf({}, { content: { text: "decoded" } }), _weir: own },
      entryOf({}, { content: { encoding: "base64", text: "AP8=" } }),
    ),
  );
  const errors = [0, 1, 2].map((index) => `entry ${index}: holds a body that is not base64`);
  assert.deepEqual([result.errors, result.skipped_count, result.imported_count], [errors, 3, 1]);
});

inStore("documents that are not HARs are rejected and leave nothing behind", async (rig) => {
  const document = har();
  const before = await rig.store.listSessions();
  for (const [text, says] of [
    ["", /empty/],
    ["[]", /must begin with/],
    ["{}", /`log\.entries`/],
    ['{"log":{"entries":{}}}', /`log\.entries`/],
    ['{"log":[]}', /`log\.entries`/],
    ['{"har":null}', /begins with/],
    [`{"har":${document},"log":{"entries":[]}}`, /more than one HAR/],
    [`{"har":${document},"session_name":7}`, /session_name/],
    [`{"har":${document},"session_name":"${"x".repeat(256)}"}`, /session_name/],
    [`{"har":${document},"session_name":"a\\ud800"}`, /session_name/],
    [`{"har":${document},"session_name":"a\\u0000"}`, /session_name/],
    [`{"har":${document},"switch_session":"true"}`, /switch_session/],
    [`{"har":${document},"colour":"red"}`, /unknown member "colour" beside `har`/],
    [`{"session_nam":"N","switch_session":true,"har":${document}}`, /unknown member "session_nam"/],
    [document.slice(0, -1), /stops before its end/],
    [`{"log":{"entries":${"[".repeat(200)}`, /nested/],
  ] as const) {
    await assert.rejects(importHar(rig, text), { name: "ImportRefusedError", message: says }, text.slice(0, 60));
  }
  assert.deepEqual(await rig.store.listSessions(), before);
});

inStore("invalid `_weir` members in a foreign file are ignored", async (rig) => {
  const more = {
    state: "exploded",
    flags: -1,
    path: 7,
    durationUs: "long",
    failure: { stage: {}, code: 9 },
    tls: [],
    requestTrailers: [1, "X", "y", "Z"],
    requestBody: { size: -5, state: null },
    __proto__: null,
  };
  const own = { version: 1, id: "x".repeat(500), more };
  const entry = await importedOne(rig, { ...entryOf(), _weir: own });
  assert.deepEqual([entry.state, entry.failure, entry.tls, entry.request.body_size], ["complete", null, null, 0]);
  assert.ok(entry.id.length < 64);
  assert.equal(rig.store.status().entriesLost, 0);
});

inStore("a replay in a HAR of an earlier version has no client", async (rig) => {
  const cases = [
    ["replay:3", "-3", null, null],
    ["replay:3", undefined, null, null],
    [undefined, "-3", null, null],
    ["127.0.0.1:50000", "3", "127.0.0.1:50000", 3],
    ["[::1]:50000", undefined, "[::1]:50000", null],
  ] as const;
  const entries = await imported(
    rig,
    cases.map(([clientAddress, connection]) => ({ ...entryOf(), connection, _weir: { version: 1, clientAddress } })),
  );
  assert.deepEqual(
    entries.map((entry) => [entry.client_addr, entry.connection_id]),
    cases.map(([, , address, number]) => [address, number]),
  );
});

test("a HAR written by Weir restores facts that HAR cannot express", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  rig.add({ method: "OPTIONS", path: "*" });
  rig.add({ responseBody: ["not kept"], spool: undefined });
  rig.add({ responseBody: [gzipSync("x".repeat(5000))], limitBytes: 20, responseFields: ["Content-Encoding", "gzip"] });
  rig.add({ client: { address: undefined, connection: undefined } });
  rig.add({ durationMs: 99.99, scheme: "tcp", port: 5222, host: "tunnel.example", method: "CONNECT", path: "/" });
  await rig.store.flush();
  const session = rig.store.activeSessionId;
  const native = async (id: string): Promise<unknown> => {
    const document = await rig.store.exportSession(id, NEVER);
    const text = Buffer.concat(await Array.fromAsync(document?.chunks ?? cut(""))).toString();
    return (JSON.parse(text) as { entries: Json[] }).entries.map(
      ({ id: _id, seq: _seq, session_id: _session, source: _source, ...rest }) => rest,
    );
  };
  const { chunks } = await rig.store.exportHar({}, undefined, NEVER);
  const text = Buffer.concat(await Array.fromAsync(chunks)).toString();
  const { session_id: imported } = await importHar(rig, text);
  assert.deepEqual(await native(imported), await native(session));
});

inStore("a form without the content of its files is imported, and the result lists the missing files", async (rig) => {
  const form = (params: readonly Json[]): Json =>
    entryOf({ method: "POST", postData: { mimeType: "multipart/form-data; boundary=B", params } });
  const file = (name: string): Json => ({ name, fileName: `${name}.bin` });
  const six = ["a", "b", "c", "d", "e", "f"].map(file);
  const result = await importHar(
    rig,
    har(form([{ name: "x", value: "1" }]), form([file("up"), { name: "n" }]), form(six)),
  );
  const sentence = "the form of its request is incomplete: the document lacks the content of";
  assert.deepEqual(result.errors, [
    `entry 1: ${sentence} "up" ("up.bin"), "n"`,
    `entry 2: ${sentence} "a" ("a.bin"), "b" ("b.bin"), "c" ("c.bin"), "d" ("d.bin"), "e" ("e.bin") and 1 more`,
  ]);
  assert.deepEqual([result.imported_count, result.skipped_count], [3, 0]);
});

inStore("the result counts unreadable WebSocket messages", async (rig) => {
  const message = (more: Json): Json => ({ type: "send", time: 1_767_323_045, opcode: 1, data: "a", ...more });
  const broken = [message({ type: "error", opcode: -1 }), message({ opcode: 2, data: "@@" })];
  const withMessages = (...messages: readonly Json[]): Json => ({ ...entryOf(), _webSocketMessages: messages });
  const document = har(
    withMessages(message({})),
    withMessages(message({}), ...broken),
    withMessages(...broken.slice(0, 1)),
  );
  const result = await importHar(rig, document);
  assert.deepEqual(result.errors, [
    "entry 1: 2 unreadable WebSocket messages were skipped",
    "entry 2: 1 unreadable WebSocket message was skipped",
  ]);
  assert.deepEqual([result.imported_count, result.skipped_count], [3, 0]);
});
