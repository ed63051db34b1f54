import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";
import type { ImportResult, TrafficEntry } from "@headworks/capture-contract";
import { temporaryDirectory } from "@headworks/testkit";
import { beginSession, openTemporaryStore, testsSharing } from "../../../test/shared-rig.ts";
import type { TemporaryStore } from "../../../test/shared-rig.ts";
import { NEVER, openRig } from "../store-rig.ts";
import type { StoreRig } from "../store-rig.ts";

type Json = Readonly<Record<string, unknown>>;

async function* cut(text: string, pieceBytes = 65_536): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
}

async function importHar(rig: StoreRig, text: string): Promise<ImportResult> {
  const options = { sessionName: undefined, switchSession: false, signal: NEVER, onProgress: () => undefined };
  return await rig.store.importHar(cut(text), options);
}

const entry = (response: Json, more: Json = {}): Json => ({
  startedDateTime: "2026-01-02T03:04:05.678Z",
  request: { method: "GET", url: "https://example.com/a", headers: [] },
  response: { status: 200, headers: [], ...response },
  ...more,
});
const har = (...entries: readonly (Json | string)[]): string =>
  `{"log":{"entries":[${entries.map((each) => (typeof each === "string" ? each : JSON.stringify(each))).join()}]}}`;
const coded = (...values: readonly string[]): Json[] => values.map((value) => ({ name: "Content-Encoding", value }));

interface Imported {
  readonly entry: TrafficEntry;
  readonly fields: readonly string[];
  readonly raw: Buffer;
  readonly decoded: Buffer;
}

/** Results for each entry of one document; entries are combined since each import starts a thread. */
async function imported(rig: StoreRig, text: string): Promise<readonly Imported[]> {
  const result = await importHar(rig, text);
  assert.deepEqual([result.skipped_count, result.errors], [0, []]);
  const { rows } = await rig.rows({ session_id: result.session_id }, { order: "asc" });
  const found: Imported[] = [];
  for (const { id } of rows) {
    const stored =
      (await rig.store.getEntry(id, { includeBodies: false, decompressed: false })) ?? assert.fail("no entry");
    const fields = (stored.response?.headers_list ?? []).map(([name, value]) => `${name}: ${value}`);
    const [raw, decoded] = [await bodyOf(rig, id, false), await bodyOf(rig, id, true)];
    found.push({ entry: stored, fields, raw, decoded });
  }
  return found;
}

async function bodyOf(rig: StoreRig, id: string, decoded: boolean): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for (let start = 0; ;) {
    const options = { decoded, utf8: false, start, end: undefined };
    const part = (await rig.store.readBody(id, "response", options)) ?? assert.fail("no body");
    parts.push(part.bytes);
    start += part.bytes.length;
    if (part.bytes.length === 0 || start >= part.totalBytes) return Buffer.concat(parts);
  }
}

function importFiles({ directory }: TemporaryStore): string[] {
  return readdirSync(directory.file("decoded")).filter((name) => name.startsWith("import-"));
}

const inSession = testsSharing("a large body of a HAR", openTemporaryStore, beginSession);

const LARGE = 5_000_000;
const TEXT = 'é😀 \\ " line\n'.repeat(LARGE / 16);
const BYTES = Buffer.alloc(LARGE, "\u0000\u00ff\u0081abcde", "latin1");

inSession("a large body in base64 or as text comes into the store as it is, and leaves no file behind", async (rig) => {
  const binary = { mimeType: "x/y", text: BYTES.toString("base64"), encoding: "base64" };
  const escaped = "\\u00e9\\ud83d\\ude00\\u000a".repeat(250_000);
  const beginning = JSON.stringify(entry({ content: {} })).slice(0, -3);
  const document = har(
    entry({ content: binary }),
    entry({ content: { mimeType: "text/plain", text: TEXT } }),
    `${beginning}"text":"${escaped}"}}}`,
  );
  const [first, second, third, ...more] = await imported(rig, document);
  assert.ok(first !== undefined);
  assert.ok(first.raw.equals(BYTES));
  assert.deepEqual([first.entry.response?.body_state, first.entry.response?.body_size], ["complete", BYTES.length]);
  assert.ok(second?.raw.equals(Buffer.from(TEXT)));
  assert.ok(third?.raw.equals(Buffer.from("é😀\n".repeat(250_000))));
  assert.equal(more.length, 0);
  assert.deepEqual(importFiles(rig), []);
});

inSession("a large body that was decoded is encoded again as its fields say, piece by piece", async (rig) => {
  const cases = [["gzip"], ["gzip", "br"], ["zstd, deflate"]];
  const content = { mimeType: "text/plain", text: TEXT };
  const found = await imported(rig, har(...cases.map((codings) => entry({ headers: coded(...codings), content }))));
  for (const [index, codings] of cases.entries()) {
    const { raw, decoded, fields, entry: stored } = found[index] ?? assert.fail("no entry");
    assert.deepEqual(
      fields,
      codings.map((value) => `Content-Encoding: ${value}`),
    );
    assert.ok(decoded.equals(Buffer.from(TEXT)), codings.join());
    assert.ok(raw.length < decoded.length / 2);
    assert.deepEqual([stored.response?.body_state, stored.response?.body_size], ["complete", raw.length]);
  }
});

inSession(
  "a large body that was left encoded stays as it is; one of an unknown coding loses the field",
  async (rig) => {
    const packed = gzipSync(BYTES, { level: 0 });
    const left = { mimeType: "x/y", text: packed.toString("base64"), encoding: "base64" };
    const content = { mimeType: "text/plain", text: TEXT };
    const unknown = [["dcb"], Array<string>(20).fill("gzip")];
    const document = har(
      entry({ headers: coded("gzip"), content: left }),
      ...unknown.map((codings) => entry({ headers: coded(...codings), content })),
    );
    const [first, ...others] = await imported(rig, document);
    assert.ok(first?.raw.equals(packed) && gunzipSync(first.raw).equals(BYTES));
    assert.deepEqual(
      others.map(({ fields, raw }) => [fields, raw.equals(Buffer.from(TEXT))]),
      unknown.map(() => [[], true]),
    );
  },
);

inSession("what our own export kept as raw bytes is what comes back, however large", async (rig) => {
  const packed = gzipSync(BYTES, { level: 0 });
  rig.add({ responseFields: ["Content-Encoding", "gzip"], responseBody: [packed] });
  await rig.store.flush();
  const { chunks } = await rig.store.exportHar({}, undefined, NEVER);
  const [found] = await imported(rig, Buffer.concat(await Array.fromAsync(chunks)).toString());
  assert.ok(found !== undefined);
  assert.ok(found.raw.equals(packed));
  assert.ok(found.decoded.equals(BYTES));
});

test("a body above max_body_size is truncated like a captured one, and the import reports it", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path, { maxBodyBytes: 1_000_000 });
  const small = "x".repeat(1_000_001);
  const large = { mimeType: "x/y", text: BYTES.toString("base64"), encoding: "base64" };
  const result = await importHar(
    rig,
    har(
      entry({ content: { text: small.slice(1) } }),
      entry({ content: { text: small } }),
      entry({ content: large }),
      entry({ content: { text: "x" } }, { request: { method: "PUT", url: "http://a/", postData: { text: small } } }),
    ),
  );
  assert.deepEqual([result.imported_count, result.skipped_count], [4, 0]);
  assert.deepEqual(result.errors, [
    "entry 1: the body of its response is larger than max_body_size: 1000000 of 1000001 bytes are kept",
    `entry 2: the body of its response is larger than max_body_size: 1000000 of ${LARGE} bytes are kept`,
    "entry 3: the body of its request is larger than max_body_size: 1000000 of 1000001 bytes are kept",
  ]);
  const { rows } = await rig.rows({ session_id: result.session_id }, { order: "asc" });
  const shown = [];
  for (const { id } of rows) {
    const { request, response } = (await rig.entry(id)) ?? assert.fail("no entry");
    shown.push([request.body_state, response?.body_state, response?.body_size, response?.body_stored_size]);
  }
  assert.deepEqual(shown, [
    ["none", "complete", 1_000_000, 1_000_000],
    ["none", "truncated", 1_000_001, 1_000_000],
    ["none", "truncated", LARGE, 1_000_000],
    ["truncated", "complete", 1, 1],
  ]);
});

inSession(
  "a large text that is none leaves its entry out, with no file of it, and the next entry comes in",
  async (rig) => {
    const good = JSON.stringify(entry({ content: { text: TEXT } }));
    const bad = good.replaceAll("line\\n", "line\\q");
    const last = good.slice(0, good.lastIndexOf("\\n")) + good.slice(good.lastIndexOf("\\n")).replace("\\n", "\\q");
    const before = readdirSync(rig.directory.file("bodies"));
    const result = await importHar(rig, har(bad, last, entry({ content: { text: "fine" } })));
    assert.deepEqual(result.errors, [
      "entry 0: holds a text that is not JSON",
      "entry 1: holds a text that is not JSON",
    ]);
    assert.deepEqual([result.imported_count, result.skipped_count], [1, 2]);
    await rig.store.flush();
    assert.deepEqual(readdirSync(rig.directory.file("bodies")), before);
  },
);

inSession("a large body that is not base64 leaves its entry out, with no file of it", async (rig) => {
  const base64 = BYTES.toString("base64");
  const bad = [`@@${base64}`, `${base64.slice(0, -4)}@@==`, `${base64}=`].map((text) =>
    entry({ headers: coded("gzip"), content: { encoding: "base64", text } }),
  );
  const before = readdirSync(rig.directory.file("bodies"));
  const result = await importHar(rig, har(...bad, entry({ content: { text: "fine" } })));
  assert.deepEqual(
    result.errors,
    [0, 1, 2].map((index) => `entry ${index}: holds a body that is not base64`),
  );
  assert.deepEqual([result.imported_count, result.skipped_count], [1, 3]);
  await rig.store.flush();
  assert.deepEqual(readdirSync(rig.directory.file("bodies")), before);
});

inSession("an import that is called off in the middle of a large text leaves nothing behind", async (rig) => {
  const before = await rig.store.listSessions();
  const controller = new AbortController();
  const beginning = har(entry({ content: { text: TEXT } })).slice(0, -100);
  const source = async function* (): AsyncGenerator<Uint8Array> {
    yield* cut(beginning);
    assert.equal(importFiles(rig).length, 1);
    controller.abort();
    yield Buffer.from(" ");
  };
  const options = {
    sessionName: undefined,
    switchSession: false,
    signal: controller.signal,
    onProgress: () => undefined,
  };
  await assert.rejects(rig.store.importHar(source(), options), { name: "AbortError" });
  assert.deepEqual(importFiles(rig), []);
  assert.deepEqual(await rig.store.listSessions(), before);
});
