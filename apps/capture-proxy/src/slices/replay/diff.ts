import { createHash } from "node:crypto";
import {
  type DiffOptions,
  type DiffOrder,
  type EntryDiff,
  type ReplayResult,
  SESSION_DIFF_LIMITS,
  type SessionDiff,
  type SessionDiffOrder,
  type SessionDiffPair,
  type SessionDiffRow,
  type TrafficEntry,
  type TrafficSnapshot,
} from "@headworks/capture-contract";
import {
  compileHeaderNames,
  compileIgnoredPaths,
  type DiffSide,
  isBodySame,
  sideBody,
  type SideBody,
} from "@headworks/entry-diff";
import { isTextual, parseQuery as parseParameters } from "@headworks/http-fields";
import { parseQuery } from "@headworks/query-language";
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

const DEFAULT_COMPARISONS = 1000;
const WINDOW = 1000;

type Host = Pick<SliceHost, "store" | "clock">;

/**
 * Compares the requests and responses of two sessions. Throws 404 for an unknown session, and 400 for one with too many
 * entries. Stops when the caller disconnects.
 */
export async function diffOfSessions(host: Host, order: SessionDiffOrder, signal: AbortSignal): Promise<SessionDiff> {
  checkDiffOptions(order, "body");
  checkQuery(order.q);
  await host.store.flush();
  const left = await rowsOf(host, order, "left", signal);
  const right = await rowsOf(host, order, "right", signal);
  const isIgnored = compileHeaderNames(order.ignore_query ?? []);
  const { pairs, onlyLeft, onlyRight } = pairRequests(left, right, (name) => isIgnored(name.toLowerCase()));
  const compared = pairs.slice(0, order.limit ?? DEFAULT_COMPARISONS);
  const changed: SessionDiffPair[] = [];
  for (const pair of compared) {
    signal.throwIfAborted();
    const differs = await differencesOf(host, pair, order);
    if (differs.length > 0) changed.push({ left: pair.left, right: pair.right, differs });
  }
  const isComplete = compared.length === pairs.length;
  return {
    same: isComplete && changed.length === 0 && onlyLeft.length === 0 && onlyRight.length === 0,
    left_id: order.left,
    right_id: order.right,
    left_count: left.length,
    right_count: right.length,
    pair_count: pairs.length,
    same_count: compared.length - changed.length,
    changed_count: changed.length,
    not_compared_count: pairs.length - compared.length,
    only_left_count: onlyLeft.length,
    only_right_count: onlyRight.length,
    changed: changed.slice(0, SESSION_DIFF_LIMITS.rows),
    only_left: onlyLeft.slice(0, SESSION_DIFF_LIMITS.rows),
    only_right: onlyRight.slice(0, SESSION_DIFF_LIMITS.rows),
  };
}

function checkQuery(q: string | undefined): void {
  const parsed = q === undefined ? undefined : parseQuery(q);
  if (parsed === undefined || parsed.ok) return;
  const { message, start } = parsed.error;
  throw validationError([{ path: "body/q", message: `${message} (at character ${start + 1})` }]);
}

async function rowsOf(
  { store }: Host,
  order: SessionDiffOrder,
  side: "left" | "right",
  signal: AbortSignal,
): Promise<SessionDiffRow[]> {
  const sessionId = order[side];
  if ((await store.getSession(sessionId)) === undefined) return notFound("session", sessionId);
  const filter = { session_id: sessionId, ...(order.q === undefined ? {} : { q: order.q }) };
  const rows: SessionDiffRow[] = [];
  for (let offset = 0; ; offset += WINDOW) {
    const { json } = await store.listRows({ filter, sort: "seq", order: "asc", offset, limit: WINDOW }, signal);
    const page = (JSON.parse(Buffer.from(json).toString("utf8")) as { rows: TrafficSnapshot[] }).rows;
    for (const row of page) if (row.state !== "pending") rows.push(shown(row));
    if (rows.length > SESSION_DIFF_LIMITS.entries) {
      const message = `this session has more than ${SESSION_DIFF_LIMITS.entries} such entries; narrow them by q`;
      throw validationError([{ path: `body/${side}`, message }]);
    }
    if (page.length < WINDOW) return rows;
  }
}

function shown({ id, method, url, status_code, failure_code, duration_ms }: TrafficSnapshot): SessionDiffRow {
  return { id, method, url, status_code, failure_code, duration_ms };
}

async function differencesOf(
  { store, clock }: Host,
  { left, right }: { readonly left: SessionDiffRow; readonly right: SessionDiffRow },
  options: SessionDiffOrder,
): Promise<SessionDiffPair["differs"]> {
  const diff = await compareInWorker(clock, {
    left: await sideOf(store, undefined, left.id),
    right: await sideOf(store, undefined, right.id),
    options,
  });
  return namesOf(diff);
}

function namesOf(diff: EntryDiff): SessionDiffPair["differs"] {
  const names: SessionDiffPair["differs"] = [];
  if (diff.status !== null) names.push("status");
  if (diff.failure !== null) names.push("failure");
  if (diff.response_headers.changed.length > 0) names.push("headers");
  if (!isBodySame(diff.response_body)) names.push("body");
  // URLs are equal: requests are paired by them.
  if (diff.request_headers.changed.length > 0 || !isBodySame(diff.request_body)) names.push("request");
  return names;
}

interface PairedRequest {
  readonly method: string;
  readonly url: string;
}

/** Pairs, and unpaired requests of each side in their order. */
interface Pairing<T> {
  readonly pairs: readonly { readonly left: T; readonly right: T }[];
  readonly onlyLeft: readonly T[];
  readonly onlyRight: readonly T[];
}

/**
 * Pairs the n-th request of a method and URL on the left with the n-th on the right. The order of query parameters does
 * not count; parameters for which `ignoresParameter` holds are left out.
 */
export function pairRequests<T extends PairedRequest>(
  left: readonly T[],
  right: readonly T[],
  ignoresParameter: (name: string) => boolean,
): Pairing<T> {
  const waiting = new Map<string, T[]>();
  for (const one of right) {
    const key = keyOf(one, ignoresParameter);
    const known = waiting.get(key);
    if (known === undefined) waiting.set(key, [one]);
    else known.push(one);
  }
  const next = new Map<string, number>();
  const taken = new Set<T>();
  const pairs: { left: T; right: T }[] = [];
  const onlyLeft: T[] = [];
  for (const one of left) {
    const key = keyOf(one, ignoresParameter);
    const at = next.get(key) ?? 0;
    const partner = waiting.get(key)?.[at];
    if (partner === undefined) {
      onlyLeft.push(one);
      continue;
    }
    next.set(key, at + 1);
    taken.add(partner);
    pairs.push({ left: one, right: partner });
  }
  return { pairs, onlyLeft, onlyRight: right.filter((one) => !taken.has(one)) };
}

function keyOf({ method, url }: PairedRequest, ignoresParameter: (name: string) => boolean): string {
  const mark = url.indexOf("?");
  if (mark === -1) return `${method} ${url}`;
  const parameters = parseParameters(url.slice(mark)).filter(({ name }) => !ignoresParameter(name));
  const texts = parameters.map(({ name, value }) => JSON.stringify([name, value]));
  return `${method} ${url.slice(0, mark)}?${texts.toSorted().join("&")}`;
}
