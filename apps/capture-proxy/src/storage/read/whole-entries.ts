import type { RequestData, ResponseData, TrafficEntry } from "@headworks/capture-contract";
import { decodeContent } from "@headworks/http-fields/content-coding";
import { fieldValues } from "@headworks/http1";
import { bodyText } from "#exchange/shown-message.ts";
import type { Database, SqlRow, Statement } from "../database.ts";
import { EFFECT_COLUMNS, entryOfRow, originalBodyBytes, storedFields, withoutReplacedBodies } from "./stored-entry.ts";
import type { EntriesRequest, SessionNames } from "./reader-client.ts";
import type { StoredBodies } from "../stored-bodies.ts";

/** Body budget of a list page, and of one entry; larger bodies are fetched by range. */
const PAGE_BODY_BYTES = 33_554_432;
const ENTRY_BODY_BYTES = 67_108_864;

interface FilledPage {
  readonly entries: TrafficEntry[];
  /** Entries whose bodies were left out. */
  readonly bodiesOmitted: number;
  /** Index of the next page's first entry. */
  readonly nextIndex: number;
}

export interface FoundEntry {
  readonly row: SqlRow;
  readonly sessionId: string;
}

/** Full entries as the API returns them. */
export class WholeEntries {
  readonly #bodies: StoredBodies;
  readonly #bySeq: Statement;
  readonly #byId: Statement;

  constructor(database: Database, bodies: StoredBodies) {
    this.#bodies = bodies;
    const whole = `SELECT e.*, h.*, ${EFFECT_COLUMNS} FROM entry e JOIN head h ON h.seq = e.seq LEFT JOIN effect f ON f.seq = e.seq`;
    this.#bySeq = database.prepare(`${whole} WHERE e.seq = ?`);
    this.#byId = database.prepare(`${whole} WHERE e.id = ?`);
  }

  /** Undefined for cleared or deleted entries. */
  bySeq(seq: number, sessions: SessionNames): FoundEntry | undefined {
    return visible(this.#bySeq.get(seq), sessions);
  }

  /** Undefined for cleared or deleted entries. */
  byId(id: string, sessions: SessionNames): FoundEntry | undefined {
    return visible(this.#byId.get(id), sessions);
  }

  /** Undefined for cleared or deleted entries. */
  async entry(
    id: string,
    sessions: SessionNames,
    includeBodies: boolean,
    decompressed: boolean,
  ): Promise<TrafficEntry | undefined> {
    const found = this.byId(id, sessions);
    if (found === undefined) return undefined;
    const entry = this.#entry(found, includeBodies);
    return includeBodies && decompressed ? await decodedEntry(entry, this.#bodies, ENTRY_BODY_BYTES) : entry;
  }

  /**
   * The first entry always has its bodies. An entry whose bodies exceed the budget starts the next page, or without
   * pages is returned without them.
   */
  page(shown: readonly number[], { scope, includeBodies, cursor }: EntriesRequest): FilledPage {
    const entries: TrafficEntry[] = [];
    let roomBytes = PAGE_BODY_BYTES;
    let bodiesOmitted = 0;
    for (const [index, seq] of shown.entries()) {
      const row = this.#bySeq.get(seq);
      if (row === undefined) continue;
      const bodyBytes = includeBodies ? allGivenBytes(row) : 0;
      const isFitting = bodyBytes <= roomBytes || entries.length === 0;
      if (!isFitting && cursor !== undefined) return { entries, bodiesOmitted, nextIndex: index };
      if (isFitting) roomBytes = Math.max(0, roomBytes - bodyBytes);
      else bodiesOmitted += 1;
      entries.push(this.#entry({ row, sessionId: scope.id }, includeBodies && isFitting));
    }
    return { entries, bodiesOmitted, nextIndex: shown.length };
  }

  #entry({ row, sessionId }: FoundEntry, includeBodies: boolean): TrafficEntry {
    const seq = Number(row["seq"]);
    const read = (side: "request" | "response"): Uint8Array | undefined => {
      const bytes = includeBodies ? givenBytes(row, side) : 0;
      return bytes > 0 ? this.#bodies.read(seq, side, bytes) : undefined;
    };
    return entryOfRow(
      includeBodies ? row : withoutReplacedBodies(row),
      sessionId,
      { bytes: read("request"), fields: storedFields(row["request_fields"]) ?? [] },
      { bytes: read("response"), fields: storedFields(row["response_fields"]) ?? [] },
    );
  }
}

function visible(row: SqlRow | undefined, sessions: SessionNames): FoundEntry | undefined {
  const session = sessions.get(Number(row?.["session"]));
  return row === undefined || session === undefined || Number(row["seq"]) <= session.floorSeq
    ? undefined
    : { row, sessionId: session.id };
}

/** Body bytes included in a returned entry. */
function givenBytes(row: SqlRow, side: "request" | "response"): number {
  const stored = Number(row[`${side}_body_stored`]);
  return stored <= ENTRY_BODY_BYTES ? stored : 0;
}

/** Includes the bodies from before the rules. */
function allGivenBytes(row: SqlRow): number {
  const passedOn = { request: givenBytes(row, "request"), response: givenBytes(row, "response") };
  return passedOn.request + passedOn.response + originalBodyBytes(row, passedOn);
}

/**
 * Removes content codings and the fields that name them. A damaged body, or one not in its coding, is returned as far
 * as decoded, or as is, and keeps the fields. A body larger than `maxBytes` when decoded stays as stored.
 */
async function decodedEntry(entry: TrafficEntry, bodies: StoredBodies, maxBytes: number): Promise<TrafficEntry> {
  const decode = async <T extends RequestData | ResponseData>(
    message: T,
    stored: Uint8Array | undefined,
  ): Promise<T> => {
    const codings = fieldValues(message.headers_list.flat(), "content-encoding");
    if (stored === undefined || codings.length === 0) return message;
    const { bytes, stop } = await decodeContent(stored, codings, { maxBytes });
    const isCut = message.body_state === "truncated" && stop === "truncated";
    if (stop === "limit") return message;
    if (stop !== undefined && !isCut) return { ...message, ...bodyText(bytes) };
    const isOther = (name: string): boolean => name.toLowerCase() !== "content-encoding";
    return {
      ...message,
      ...bodyText(bytes),
      headers: Object.fromEntries(Object.entries(message.headers).filter(([name]) => isOther(name))),
      headers_list: message.headers_list.filter(([name]) => isOther(name)),
    };
  };
  const read = (message: RequestData | ResponseData, side: "request" | "response"): Uint8Array | undefined =>
    message.body === null ? undefined : bodies.read(entry.seq, side, maxBytes);
  const { request, response, original_request: sent, original_response: received } = entry;
  return {
    ...entry,
    request: await decode(request, read(request, "request")),
    response: response && (await decode(response, read(response, "response"))),
    original_request: sent && (await decode(sent, originalBytes(sent))),
    original_response: received && (await decode(received, originalBytes(received))),
  };
}

/** Inverse of `body_encoding`. */
function originalBytes({ body, body_encoding: encoding }: RequestData | ResponseData): Uint8Array | undefined {
  if (body === null) return undefined;
  return encoding === "base64" ? Buffer.from(body.slice("base64:".length), "base64") : Buffer.from(body, "utf8");
}
