import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryDirectory } from "@headworks/testkit";
import { NEVER, openRig } from "./store-rig.ts";

// Alone in its file: what a process once took in memory does not go down again.
test("a body of 300 MB in a native document costs no more memory than a small one", { timeout: 120_000 }, async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path, { maxBodyBytes: 1_000_000_000 });
  const options = { sessionName: undefined, switchSession: false, signal: NEVER, onProgress: () => undefined };
  const chunk = Buffer.alloc(49_152, "0123456789abcdef").toString("base64");
  const source = async function* (chunks: number): AsyncGenerator<Uint8Array> {
    const request = '{"method":"PUT","url":"http://a/"}';
    const head = `"timestamp":"2026-01-01T00:00:00Z","request":${request}`;
    yield Buffer.from(
      `{"version":"1.0","entries":[{${head},"response":{"status_code":200,"body_encoding":"base64","body":"`,
    );
    for (let count = 0; count < chunks; count += 1) yield Buffer.from(chunk);
    yield Buffer.from('"}}]}');
  };
  // What every import takes, once: its thread and its code.
  await rig.store.importSession(source(200), options);
  const before = process.resourceUsage().maxRSS;
  const chunks = 6200;
  const { session_id: session, errors } = await rig.store.importSession(source(chunks), options);
  assert.deepEqual(errors, []);
  // 406 MB of base64 and 304 MB of body have passed through.
  const grownMb = (process.resourceUsage().maxRSS - before) / 1024;
  assert.ok(grownMb < 150, `grew by ${Math.round(grownMb)} MB`);
  const { rows } = await rig.rows({ session_id: session });
  const stored = await rig.store.getEntry(rows[0]?.id ?? "", { includeBodies: false, decompressed: false });
  assert.equal(stored?.response?.body_stored_size, chunks * 49_152);
});
