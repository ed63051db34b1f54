import assert from "node:assert/strict";
import { test } from "node:test";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { temporaryDirectory } from "@headworks/testkit";
import { NEVER, openRig } from "../store-rig.ts";
import type { StoreRig } from "../store-rig.ts";

const ENCODERS: Readonly<Record<string, (bytes: Uint8Array) => Uint8Array>> = {
  gzip: gzipSync,
  deflate: deflateSync,
  br: brotliCompressSync,
  zstd: zstdCompressSync,
};

const PLAIN = '{"order":"needle-4711"}';

/** Content-Encoding field values and the codings applied, in order. */
const LINES: readonly (readonly [values: readonly string[], applied: readonly string[]])[] = [
  [["gzip"], ["gzip"]],
  [
    ["gzip", "br"],
    ["gzip", "br"],
  ],
  [["br, gzip"], ["br", "gzip"]],
  [
    ["deflate, gzip", "zstd"],
    ["deflate", "gzip", "zstd"],
  ],
  [["identity", "X-GZIP", "identity"], ["gzip"]],
];

async function shown(rig: StoreRig, id: string, side: "request" | "response"): Promise<string> {
  const part = await rig.store.readBody(id, side, { decoded: true, utf8: true, start: 0, end: undefined });
  return Buffer.from(part?.bytes ?? []).toString();
}

for (const [values, applied] of LINES) {
  test(`bodies encoded as ${values.join(", then ")} are shown, found and exported decoded`, async () => {
    await using directory = await temporaryDirectory();
    await using rig = await openRig(directory.path);
    const body = applied.reduce<Uint8Array>((bytes, coding) => ENCODERS[coding]?.(bytes) ?? bytes, Buffer.from(PLAIN));
    const fields = ["Content-Type", "application/json", ...values.flatMap((value) => ["content-encoding", value])];
    const { id } = rig.add({
      requestFields: fields,
      requestBody: [body],
      responseFields: fields,
      responseBody: [body],
    });
    await rig.store.flush();
    assert.deepEqual([await shown(rig, id, "request"), await shown(rig, id, "response")], [PLAIN, PLAIN]);
    for (const q of ['req.body:"needle-4711"', 'resp.body:"needle-4711"', "needle-4711", "resp.body:/needle-\\d+/"]) {
      assert.equal(await rig.store.count({ q }, NEVER), 1, q);
    }
    const entry = await rig.store.getEntry(id, { includeBodies: true, decompressed: true });
    assert.deepEqual([entry?.request.body, entry?.response?.body], [PLAIN, PLAIN]);
    assert.ok(!entry?.response?.headers_list.some(([name]) => name === "content-encoding"));
    const { chunks } = await rig.store.exportHar({}, undefined, NEVER);
    const har = JSON.parse(Buffer.concat(await Array.fromAsync(chunks)).toString()) as {
      log: { entries: [{ request: { postData: { text: string } }; response: { content: { text: string } } }] };
    };
    const [{ request, response }] = har.log.entries;
    assert.deepEqual([request.postData.text, response.content.text], [PLAIN, PLAIN]);
  });
}

test("a body with an unknown coding, or with too many codings, is shown as it is", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  for (const values of [["gzip, foo"], Array<string>(20).fill("gzip"), [Array<string>(20).fill("br").join()]]) {
    const fields = ["Content-Type", "text/plain", ...values.flatMap((value) => ["Content-Encoding", value])];
    const { id } = rig.add({ responseFields: fields, responseBody: ["as it came"] });
    await rig.store.flush();
    const options = { decoded: true, utf8: false, start: 0, end: undefined };
    const part = await rig.store.readBody(id, "response", options);
    assert.deepEqual([Buffer.from(part?.bytes ?? []).toString(), part?.partial], ["as it came", false]);
    const entry = await rig.store.getEntry(id, { includeBodies: true, decompressed: true });
    assert.equal(entry?.response?.body, "as it came");
  }
});

test("bodies that do not have their content coding, or are damaged, are found by their text", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const text = '{"found": "needle"}';
  const checksum = Buffer.from(gzipSync(text));
  checksum.writeUInt32LE(1, checksum.length - 8);
  const bodies: readonly (readonly [coding: string, body: Buffer])[] = [
    ["gzip", Buffer.from(text)],
    ["br", Buffer.from(text)],
    ["deflate", Buffer.from(text)],
    ["zstd", Buffer.from(text)],
    ["gzip", Buffer.concat([gzipSync(text), Buffer.from("\r\n")])],
    ["gzip", Buffer.concat([gzipSync(text), Buffer.from("garbage")])],
    ["gzip", checksum],
    ["UTF-8", Buffer.from(text)],
    ["none", Buffer.from(text)],
  ];
  for (const [coding, body] of bodies) {
    const responseFields = ["Content-Type", "application/json", "Content-Encoding", coding];
    rig.add({ responseFields, responseBody: [body] });
  }
  await rig.store.flush();
  for (const q of ["resp.body:needle", "resp.body:/need+le/", "needle"]) {
    assert.equal(await rig.store.count({ q }, NEVER), bodies.length, q);
  }
  const { id } = rig.add({
    responseFields: ["Content-Type", "application/json", "Content-Encoding", "gzip"],
    responseBody: [text],
  });
  await rig.store.flush();
  const entry = await rig.store.getEntry(id, { includeBodies: true, decompressed: true });
  assert.equal(entry?.response?.body, text);
  assert.ok(
    entry?.response?.headers_list.some(([name]) => name === "Content-Encoding"),
    "the truth about the message",
  );
});
