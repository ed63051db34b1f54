import type { TrafficEntry } from "@headworks/capture-contract";
import type { RawFields } from "@headworks/http1";
import { ApiError } from "#api/api-error.ts";
import type { CaptureStore } from "#storage/capture-store.ts";
import { bodyDigest, matchFacts, type MatchFacts, matchKey, type MatchParts } from "./match-key.ts";

/** A recorded exchange; its response body stays in the store. */
export interface RecordedExchange {
  readonly entryId: string;
  readonly method: string;
  readonly url: string;
  readonly facts: MatchFacts;
  readonly status: number;
  readonly reason: string | null;
  readonly fields: RawFields;
  readonly hasBody: boolean;
}

/** Exchanges with equal requests, oldest first. */
export interface RecordedGroup {
  readonly exchanges: RecordedExchange[];
  /** Index of the next response; past the end when all were used. */
  next: number;
}

export interface SessionRecord {
  readonly groups: ReadonlyMap<string, RecordedGroup>;
  readonly recorded: number;
  readonly skipped: number;
}

const PAGE = 1000;
const MAX_ENTRIES = 200_000;

/** Reads the heads of a session, and digests of request bodies where they count. */
export async function readSession(
  captured: CaptureStore,
  sessionId: string,
  parts: MatchParts,
  signal: AbortSignal,
): Promise<SessionRecord> {
  const exchanges: RecordedExchange[] = [];
  let skipped = 0;
  let cursor: string | null = "";
  while (cursor !== null) {
    const { json, total } = await captured.listEntries({
      filter: { session_id: sessionId },
      limit: PAGE,
      offset: 0,
      cursor,
      includeBodies: false,
      signal,
    });
    if (total > MAX_ENTRIES) {
      throw new ApiError("CONFLICT", `A session of more than ${MAX_ENTRIES} entries cannot be served; it has ${total}`);
    }
    const page = JSON.parse(Buffer.from(json).toString()) as { entries: TrafficEntry[]; next_cursor: string | null };
    for (const entry of page.entries) {
      const exchange = wasServed(entry, sessionId) ? undefined : await recordedExchange(captured, entry, parts);
      if (exchange === undefined) skipped += 1;
      else exchanges.push(exchange);
    }
    cursor = page.next_cursor;
  }
  const groups = new Map<string, RecordedGroup>();
  for (const exchange of exchanges.reverse()) {
    const key = matchKey(parts, exchange.facts);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { exchanges: [exchange], next: 0 });
    else group.exchanges.push(exchange);
  }
  return { groups, recorded: exchanges.length, skipped };
}

/** Responses that the session itself gave while served and recorded do not come from an origin. */
function wasServed(entry: TrafficEntry, sessionId: string): boolean {
  return entry.trace.some((step) => step.rule_id === sessionId);
}

/** Undefined for unfinished exchanges, protocol switches, and responses not stored completely. */
async function recordedExchange(
  captured: CaptureStore,
  { id, state, request, response, is_passthrough: isTunnel }: TrafficEntry,
  parts: MatchParts,
): Promise<RecordedExchange | undefined> {
  if (isTunnel || state !== "complete" || response === null || response.status_code < 200) return undefined;
  if (response.body_state === "truncated" || response.body_state === "not_stored") return undefined;
  const url = URL.parse(request.url);
  if (url === null) return undefined;
  const body = parts.body && request.body_state !== "none" ? bodyDigest(await storedBody(captured, id, "request")) : "";
  return {
    entryId: id,
    method: request.method,
    url: request.url,
    facts: matchFacts(parts, {
      method: request.method,
      scheme: url.protocol.replace(/:$/, ""),
      host: url.hostname.replace(/^\[|\]$/g, ""),
      port: url.port === "" ? undefined : Number(url.port),
      target: request.path,
      body,
    }),
    status: response.status_code,
    reason: response.status_message,
    fields: response.headers_list.flat(),
    hasBody: response.body_state === "complete",
  };
}

/** The encoded bytes of a body, read in parts; undefined when they are gone. */
export async function storedBody(
  captured: CaptureStore,
  id: string,
  side: "request" | "response",
): Promise<Buffer | undefined> {
  const pieces: Uint8Array[] = [];
  let start = 0;
  for (;;) {
    const part = await captured.readBody(id, side, { decoded: false, utf8: false, start, end: undefined });
    if (part === undefined) return undefined;
    pieces.push(part.bytes);
    start += part.bytes.length;
    if (start >= part.totalBytes || part.bytes.length === 0) return Buffer.concat(pieces);
  }
}
