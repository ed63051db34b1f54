import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { temporaryDirectory } from "@headworks/testkit";
import { DecodedBodies } from "./decoded-bodies.ts";

const request = (key: string, source: Uint8Array, toUtf8From?: string): Parameters<DecodedBodies["get"]>[0] => ({
  key,
  source,
  contentEncoding: ["gzip"],
  toUtf8From,
});

test("a decoded body can be read again after its bytes were given to another thread", async () => {
  await using directory = await temporaryDirectory();
  const bodies = new DecodedBodies(directory.path);
  const asked = request("1 response true false", gzipSync("hello again"));
  for (let round = 0; round < 3; round += 1) {
    const form = await bodies.get(asked);
    const bytes = form.read(0, form.totalBytes);
    assert.equal(Buffer.from(bytes).toString(), "hello again");
    structuredClone(bytes, { transfer: [bytes.buffer as ArrayBuffer] });
  }
  bodies.close();
});

test("a large body is decoded into a file, read by range, and its file goes with the reader", async () => {
  await using directory = await temporaryDirectory();
  const bodies = new DecodedBodies(directory.path);
  const whole = Buffer.alloc(3_000_000, "0123456789");
  const form = await bodies.get(request("2", gzipSync(whole)));
  assert.equal(form.totalBytes, whole.length);
  assert.equal(Buffer.from(form.read(1_500_000, 1_500_010)).toString(), "0123456789");
  bodies.close();
  assert.deepEqual(readdirSync(directory.path), []);
});

test("text in another charset becomes UTF-8", async () => {
  await using directory = await temporaryDirectory();
  const bodies = new DecodedBodies(directory.path);
  const form = await bodies.get(
    request("3", gzipSync(Buffer.from("gr\u00fc\u00df", "latin1")), "text/plain; charset=iso-8859-1"),
  );
  assert.equal(Buffer.from(form.read(0, form.totalBytes)).toString(), "gr\u00fc\u00df");
  bodies.close();
});
