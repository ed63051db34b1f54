import assert from "node:assert/strict";
import { readdirSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { runProcess, temporaryDirectory } from "@headworks/testkit";
import { DecodedBodies } from "./decoded-bodies.ts";

const request = (key: string, source: Uint8Array, toUtf8From?: string): Parameters<DecodedBodies["get"]>[0] => ({
  key,
  source,
  contentEncoding: ["gzip"],
  toUtf8From,
});

test("a decoded body can be read again after its bytes were transferred to another thread", async () => {
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

test("a large body is decoded into a file, read by range, and removed with the reader", async () => {
  await using directory = await temporaryDirectory();
  const bodies = new DecodedBodies(directory.path);
  const whole = Buffer.alloc(3_000_000, "0123456789");
  const form = await bodies.get(request("2", gzipSync(whole)));
  assert.equal(form.totalBytes, whole.length);
  assert.equal(Buffer.from(form.read(1_500_000, 1_500_010)).toString(), "0123456789");
  bodies.close();
  assert.deepEqual(readdirSync(directory.path), []);
});

test("on a read-only directory small bodies are decoded, and a large one fails with the reason", async () => {
  await using directory = await temporaryDirectory();
  const path = directory.file("read-only");
  writeFileSync(path, "");
  const bodies = new DecodedBodies(path);
  const form = await bodies.get(request("1", gzipSync("small")));
  assert.equal(Buffer.from(form.read(0, form.totalBytes)).toString(), "small");
  await assert.rejects(bodies.get(request("2", gzipSync(Buffer.alloc(3_000_000)))), {
    name: "StorageError",
    message: /^A large body could not be decoded to a file: EEXIST/u,
  });
  bodies.close();
});

test("on a disk that became read-only a reader still ends, and a large body fails with the reason", async (context) => {
  await using directory = await temporaryDirectory();
  const isMounted =
    process.platform === "linux" && (await runProcess("mount", ["-t", "tmpfs", "tmpfs", directory.path])).code === 0;
  if (!isMounted) return context.skip("needs the right to mount a tmpfs");
  try {
    const bodies = new DecodedBodies(directory.path);
    await bodies.get(request("1", gzipSync(Buffer.alloc(3_000_000))));
    await runProcess("mount", ["-o", "remount,ro", directory.path]);
    await assert.rejects(bodies.get(request("2", gzipSync(Buffer.alloc(3_000_000)))), {
      name: "StorageError",
      message: /^A large body could not be decoded to a file: the directory cannot be written \(EROFS/u,
    });
    bodies.close();
  } finally {
    await runProcess("umount", ["-l", directory.path]);
  }
});

test("text in another charset is converted to UTF-8", async () => {
  await using directory = await temporaryDirectory();
  const bodies = new DecodedBodies(directory.path);
  const form = await bodies.get(
    request("3", gzipSync(Buffer.from("gr\u00fc\u00df", "latin1")), "text/plain; charset=iso-8859-1"),
  );
  assert.equal(Buffer.from(form.read(0, form.totalBytes)).toString(), "gr\u00fc\u00df");
  bodies.close();
});
