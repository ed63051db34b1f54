import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import type { ImportResult, TrafficEntry } from "@headworks/capture-contract";
import { temporaryDirectory } from "@headworks/testkit";
import { openTemporaryStore, testsSharing } from "../../../test/shared-rig.ts";
import { NEVER, openRig } from "../store-rig.ts";
import type { StoreRig } from "../store-rig.ts";

type Json = Readonly<Record<string, unknown>>;

async function* cut(text: string, pieceBytes = 65_536): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
}

async function importSession(rig: StoreRig, text: string): Promise<ImportResult> {
  const options = { sessionName: undefined, switchSession: false, signal: NEVER, onProgress: () => undefined };
  return await rig.store.importSession(cut(text), options);
}

const native = (members: Json): string => JSON.stringify({ version: "1.0", session: {}, ...members });
const entry = (response: Json, request: Json = {}): Json => ({
  timestamp: "2026-01-02T03:04:05.678Z",
  request: { method: "PUT", url: "https://example.com/a", ...request },
  response: { status_code: 200, ...response },
});

async function onlyEntry(rig: StoreRig, session: string): Promise<TrafficEntry> {
  const { rows } = await rig.rows({ session_id: session });
  return await entryOf(rig, rows[0]?.id);
}

async function entryOf(rig: StoreRig, id: string = assert.fail("there is no row")): Promise<TrafficEntry> {
  const options = { includeBodies: false, decompressed: false };
  return (await rig.store.getEntry(id, options)) ?? assert.fail("there is no entry");
}

async function bodyOf(rig: StoreRig, id: string, side: "request" | "response"): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for (let start = 0; ;) {
    const options = { decoded: false, utf8: false, start, end: undefined };
    const part = (await rig.store.readBody(id, side, options)) ?? assert.fail("no body");
    parts.push(part.bytes);
    start += part.bytes.length;
    if (part.bytes.length === 0 || start >= part.totalBytes) return Buffer.concat(parts);
  }
}

const SIZE = 5_000_000;
const BYTES = Buffer.alloc(
  SIZE,
  Uint8Array.from({ length: 251 }, (_, index) => index),
);
const TEXT = 'é"\n😀x'.repeat(500_000);
const BASE64 = BYTES.toString("base64");

const inStore = testsSharing("a large body of a native document", openTemporaryStore);

inStore(
  "a large body in one string of a native document is what a small one would be, however it is written",
  async (rig) => {
    const cases: readonly [is: string, members: Json, bytes: Buffer][] = [
      ["text", { body: TEXT }, Buffer.from(TEXT)],
      ["text that says so", { body: TEXT, body_encoding: "utf8" }, Buffer.from(TEXT)],
      ["base64 that says so", { body: BASE64, body_encoding: "base64" }, BYTES],
      ["base64 with the prefix", { body: `base64:${BASE64}` }, BYTES],
      ["base64 with both", { body_encoding: "base64", body: `base64:${BASE64}` }, BYTES],
      [
        "text that only looks like it",
        { body: `base64:${BASE64}`, body_encoding: "utf8" },
        Buffer.from(`base64:${BASE64}`),
      ],
    ];
    for (const [place, space] of [1, undefined].entries()) {
      const written = cases.filter((_, index) => index % 2 === place);
      const document = { version: "1.0", entries: written.map(([, members]) => entry(members, members)) };
      const { session_id: session, errors } = await importSession(rig, JSON.stringify(document, null, space));
      assert.deepEqual(errors, []);
      const { rows } = await rig.rows({ session_id: session }, { order: "asc" });
      assert.equal(rows.length, written.length);
      for (const [index, [is, , bytes]] of written.entries()) {
        const found = await entryOf(rig, rows[index]?.id);
        for (const side of ["request", "response"] as const) {
          assert.ok((await bodyOf(rig, found.id, side)).equals(bytes), `${is}: ${side}`);
          assert.deepEqual([found[side]?.body_state, found[side]?.body_size], ["complete", bytes.length], is);
        }
      }
    }
  },
);

test("bodies of other programs above max_body_size are truncated, and the import reports it", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path, { maxBodyBytes: 1_000_000 });
  const large = { body: BASE64, body_encoding: "base64" };
  const text = native({ entries: [entry({ body: "small" }), entry(large, large)] });
  const { session_id: session, errors } = await importSession(rig, text);
  const sizes = `larger than max_body_size: 1000000 of ${SIZE} bytes are kept`;
  assert.deepEqual(errors, [
    `entry 1: the body of its request is ${sizes}`,
    `entry 1: the body of its response is ${sizes}`,
  ]);
  const found = await onlyEntry(rig, session);
  for (const side of ["request", "response"] as const) {
    const { body_state: state, body_size: size, body_stored_size: stored } = found[side] ?? assert.fail("no message");
    assert.deepEqual([state, size, stored], ["truncated", SIZE, 1_000_000]);
    assert.ok((await bodyOf(rig, found.id, side)).equals(BYTES.subarray(0, 1_000_000)));
  }
});

test("bodies embedded by Weir's export are restored completely, whatever max_body_size is", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path, { maxBodyBytes: 1000 });
  const embedded = BYTES.subarray(0, 4_194_304);
  const text = native({ entries: [entry({ body: embedded.toString("base64"), body_encoding: "base64" })] });
  const { session_id: session, errors } = await importSession(rig, text);
  assert.deepEqual(errors, []);
  const found = await onlyEntry(rig, session);
  assert.ok((await bodyOf(rig, found.id, "response")).equals(embedded));
});

inStore("large bodies that rules replaced, and large parts of `bodies`, are imported", async (rig) => {
  const original = { method: "PUT", url: "https://example.com/b", body: TEXT };
  const bodies = [{ entry: "a", side: "response", data: BASE64 }];
  const text = native({ bodies, entries: [{ ...entry({}), id: "a", original_request: original }] });
  const { errors } = await importSession(rig, text);
  assert.deepEqual(errors, []);
  assert.ok((await bodyOf(rig, "a", "response")).equals(BYTES));
  const found = await rig.entry("a");
  assert.equal(found?.original_request?.body, TEXT);
});

inStore("an invalid large body rejects the document with its position, and leaves nothing behind", async (rig) => {
  const { directory } = rig;
  const before = [await rig.store.listSessions(), readdirSync(directory.file("bodies"))];
  const good = JSON.stringify(entry({ body: TEXT }));
  const bad64 = (text: string): Json => entry({ body: text, body_encoding: "base64" });
  const cases: readonly [document: string, says: RegExp][] = [
    [
      `{"version":"1.0","entries":[${good},${good.replaceAll("\\n", "\\q")}]}`,
      /^entry 1: `response.body` holds a text/,
    ],
    [native({ entries: [bad64(`${BASE64}*`)] }), /^entry 0: `response.body` is not base64 \(at byte \d+\)/],
    [native({ entries: [bad64(BASE64.replace("A", "\n"))] }), /^entry 0: `response.body` is not base64/],
    [native({ entries: [bad64(`AA==${BASE64}`)] }), /^entry 0: `response.body` is not base64/],
    [native({ entries: [{ ...entry({}), notes: { body: TEXT } }] }), /^entry 0: `notes` is not text/],
    [native({ entries: [entry({ body: TEXT }), 7] }), /^entry 1: it is not an object/],
  ];
  for (const [text, says] of cases) {
    await assert.rejects(importSession(rig, text), { name: "ImportRefusedError", message: says });
  }
  await rig.store.flush();
  assert.deepEqual([await rig.store.listSessions(), readdirSync(directory.file("bodies"))], before);
  const folders = readdirSync(directory.file("decoded"));
  assert.deepEqual(
    folders.filter((name) => name.startsWith("import-")),
    [],
  );
});
