import assert from "node:assert/strict";
import type { ImportResult } from "@headworks/capture-contract";
import type { CaptureStore, ImportOptions } from "../capture-store.ts";
import { NEVER, openRig } from "../store-rig.ts";

const CHUNK_BYTES = 49_152;

/** A document whose one entry has a base64 body. */
export interface HugeDocument {
  readonly before: string;
  readonly after: string;
  /** 48 KiB pieces of the body. */
  readonly chunks: number;
  readonly import: (
    store: CaptureStore,
    source: AsyncIterable<Uint8Array>,
    options: ImportOptions,
  ) => Promise<ImportResult>;
}

/** Importing a huge body takes no more memory than a small one. Alone in its file: peaks stay. */
export async function importsInLittleMemory(
  directory: string,
  { before, after, chunks, ...document }: HugeDocument,
): Promise<void> {
  await using rig = await openRig(directory, { maxBodyBytes: 1_000_000_000 });
  const options = { sessionName: undefined, switchSession: false, signal: NEVER, onProgress: () => undefined };
  const chunk = Buffer.alloc(CHUNK_BYTES, "0123456789abcdef").toString("base64");
  const source = async function* (count: number): AsyncGenerator<Uint8Array> {
    yield Buffer.from(before);
    for (let at = 0; at < count; at += 1) yield Buffer.from(chunk);
    yield Buffer.from(after);
  };
  // Warm up the thread and its code.
  await document.import(rig.store, source(200), options);
  const beforeKb = process.resourceUsage().maxRSS;
  const { session_id: session, errors } = await document.import(rig.store, source(chunks), options);
  assert.deepEqual(errors, []);
  const grownMb = (process.resourceUsage().maxRSS - beforeKb) / 1024;
  assert.ok(grownMb < 150, `grew by ${Math.round(grownMb)} MB`);
  const { rows } = await rig.rows({ session_id: session });
  const stored = await rig.store.getEntry(rows[0]?.id ?? "", { includeBodies: false, decompressed: false });
  assert.equal(stored?.response?.body_stored_size, chunks * CHUNK_BYTES);
}
