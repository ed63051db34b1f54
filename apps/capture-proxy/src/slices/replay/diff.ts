import { createHash } from "node:crypto";
import type { DiffOptions, DiffOrder, EntryDiff, ReplayResult, TrafficEntry } from "@headworks/capture-contract";
import { compileIgnoredPaths, type DiffSide, type SideBody, sideBody } from "@headworks/entry-diff";
import { isTextual } from "@headworks/http-fields";
import { ApiError, notFound, validationError } from "#api/api-error.ts";
import type { SliceHost } from "#slice.ts";
import type { CaptureStore } from "#storage/capture-store.ts";
import { compareInWorker } from "./compare-in-worker.ts";
import type { HistoryStore } from "./replay-history.ts";

/** Bodies up to this size are compared by structure, larger ones by their bytes. */
const COMPARED_BYTES = 4_194_304;
const RANGE_BYTES = 16_777_216;
/** Bodies above this size are not hashed. */
const HASHED_BYTES = 268_435_456;

const NO_TIMINGS = { blocked: null, dns: null, connect: null, tls: null, send: null, wait: null, receive: null };

/** Throws 400 with each path that does not parse. */
export function checkDiffOptions({ ignore_paths: paths = [] }: DiffOptions, at: string): void {
  const compiled = compileIgnoredPaths(paths);
  if (compiled.ok) return;
  throw validationError(
    compiled.issues.map(({ index, message }) => ({ path: `${at}/ignore_paths/${index}`, message })),
  );
}

/** Compares two entries, or a replay with its original. Throws 404 for unknown ids, 409 without an original. */
export async function diffOf(
  { store, clock }: Pick<SliceHost, "store" | "clock">,
  history: HistoryStore,
  order: DiffOrder,
): Promise<EntryDiff> {
  checkDiffOptions(order, "body");
  await store.flush();
  const right = await sideOf(store, history, order.right);
  const left = await sideOf(store, history, order.left ?? originalOf(history.get(order.right)));
  return await compareInWorker(clock, { left, right, options: order });
}

/** The entry a replay repeats. Throws 409 when there is none. */
export function originalOf(replay: Pick<ReplayResult, "source_entry_id"> | undefined): string {
  const id = replay?.source_entry_id;
  if (id === undefined || id === null) throw new ApiError("CONFLICT", "There is no original entry to compare with");
  return id;
}

export async function diffWithOriginal(
  { store, clock }: Pick<SliceHost, "store" | "clock">,
  original: DiffSide,
  result: ReplayResult,
  options: DiffOptions,
): Promise<EntryDiff> {
  const entry = result.entry_id === null ? undefined : await store.getEntry(result.entry_id, WITHOUT_BODIES);
  const right = entry === undefined ? sideOfResult(result) : await sideOfEntry(store, entry);
  return await compareInWorker(clock, { left: original, right, options });
}

const WITHOUT_BODIES = { includeBodies: false, decompressed: false };

/** Throws 404 for an unknown id. */
export async function sideOf(store: CaptureStore, history: HistoryStore | undefined, id: string): Promise<DiffSide> {
  const entry = await store.getEntry(id, WITHOUT_BODIES);
  if (entry !== undefined) return await sideOfEntry(store, entry);
  const replay = history?.get(id);
  if (replay === undefined) return notFound("entry", id);
  const captured = replay.entry_id === null ? undefined : await store.getEntry(replay.entry_id, WITHOUT_BODIES);
  return captured === undefined ? sideOfResult(replay) : await sideOfEntry(store, captured);
}

async function sideOfEntry(store: CaptureStore, entry: TrafficEntry): Promise<DiffSide> {
  const { request, response } = entry;
  return {
    id: entry.id,
    request,
    response: entry.failure === null ? response : null,
    requestBody: await bodyOf(store, entry, "request"),
    responseBody: entry.failure === null ? await bodyOf(store, entry, "response") : { kind: "none" },
    failureCode: entry.failure?.code ?? null,
    durationMs: response?.duration_ms ?? null,
    timings: entry.timings,
  };
}

function sideOfResult({
  id,
  request,
  response,
  error_code: failureCode,
  duration_ms: durationMs,
}: ReplayResult): DiffSide {
  const bodyIn = (message: typeof request | NonNullable<typeof response>): SideBody => {
    const isCoded = message.headers_list.some(([name]) => name.toLowerCase() === "content-encoding");
    const isKnown = !isCoded && (message.body !== null || message.body_state === "none");
    if (isKnown) return sideBody(message, null);
    return { kind: "unknown", sizeBytes: message.body_size, reason: "was not captured" };
  };
  return {
    id,
    request,
    response,
    requestBody: bodyIn(request),
    responseBody: response === null ? { kind: "none" } : bodyIn(response),
    failureCode,
    durationMs,
    timings: NO_TIMINGS,
  };
}

async function bodyOf(store: CaptureStore, entry: TrafficEntry, side: "request" | "response"): Promise<SideBody> {
  const message = entry[side];
  if (message === null) return { kind: "none" };
  const facts = { ...message, body: null };
  if (message.body_state !== "complete") return sideBody(facts, null);
  const range = { decoded: true, utf8: false, start: 0, end: COMPARED_BYTES + 1 };
  const part = await store.readBody(entry.id, side, range);
  if (part === undefined) return { kind: "unknown", sizeBytes: message.body_size, reason: "is no longer stored" };
  if (part.partial) return { kind: "unknown", sizeBytes: message.body_size, reason: "cannot be decoded" };
  const sizeBytes = part.totalBytes;
  const sha256 = await hashOf(store, entry.id, side, part.bytes, sizeBytes);
  if (sizeBytes > COMPARED_BYTES) {
    if (sha256 !== null) return { kind: "binary", sizeBytes, sha256 };
    return { kind: "unknown", sizeBytes, reason: "is too large to be compared" };
  }
  const isText = isTextual(message.content_type ?? undefined);
  const text = isText ? await store.readBody(entry.id, side, { ...range, utf8: true }) : undefined;
  const shown = textOf(text?.bytes ?? part.bytes);
  if (shown === undefined) return { kind: "binary", sizeBytes, sha256 };
  return sideBody({ ...message, body: shown, body_size: sizeBytes }, sha256);
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function textOf(bytes: Uint8Array): string | undefined {
  try {
    return UTF8.decode(bytes);
  } catch {
    return undefined;
  }
}

async function hashOf(
  store: CaptureStore,
  id: string,
  side: "request" | "response",
  first: Uint8Array,
  sizeBytes: number,
): Promise<string | null> {
  if (sizeBytes > HASHED_BYTES) return null;
  const hash = createHash("sha256").update(first);
  for (let start = first.length; start < sizeBytes;) {
    const part = await store.readBody(id, side, { decoded: true, utf8: false, start, end: start + RANGE_BYTES });
    if (part === undefined || part.bytes.length === 0) return null;
    hash.update(part.bytes);
    start += part.bytes.length;
  }
  return hash.digest("hex");
}
