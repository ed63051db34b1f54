import type { Direction, QueryRecord, RecordState } from "@headworks/query-language";
import { decodeBeginningSync, decodeText } from "@headworks/http-fields/content-coding";
import { fieldValue, fieldValues } from "@headworks/http1";
import { isTextual } from "@headworks/http-fields";
import type { SqlRow } from "../database.ts";
import { entryState, storedFields, urlOfRow } from "./stored-entry.ts";
import { FLAG_MODIFIED, FLAG_PASSTHROUGH, kindsOfFlags } from "../write/entry-record.ts";
import type { StoredBodies } from "../stored-bodies.ts";
import type { EntryStreams, StreamFacts } from "../streams/entry-streams.ts";

/** Searched prefix of a decoded body. */
export const SEARCHED_BYTES = 8_388_608;

/** Columns of `entry` used by predicates. */
export const RECORD_COLUMNS =
  "e.seq, e.id, e.state, e.started_ms, e.method, e.scheme, e.host, e.port, e.path, e.status, e.request_type, " +
  "e.response_type, e.resource_type, e.duration_us, e.ttfb_us, e.request_size, e.response_size, e.request_version, " +
  "e.response_version, e.flags, e.client_addr, e.note, e.request_body_size, e.response_body_size";

/** Columns of `head` used by predicates. */
export const RECORD_HEAD_COLUMNS = "h.request_fields, h.response_fields";
export type StoredBodyReader = Pick<StoredBodies, "read">;

const NO_FIELDS: readonly string[] = [];

/** A stored entry as query record; everything beyond columns is fetched lazily. */
export class RowRecord implements QueryRecord {
  readonly sessionId: string;
  readonly #row: SqlRow;
  readonly #bodies: StoredBodyReader;
  readonly #streams: EntryStreams | undefined;
  #streamFacts: StreamFacts | undefined;

  /** Without `streams`, stream fields are unknown. */
  constructor(row: SqlRow, sessionId: string, bodies: StoredBodyReader, streams?: EntryStreams) {
    this.#row = row;
    this.sessionId = sessionId;
    this.#bodies = bodies;
    this.#streams = streams;
  }

  get id(): string {
    return String(this.#row["id"]);
  }
  get seq(): number {
    return Number(this.#row["seq"]);
  }
  get method(): string {
    return String(this.#row["method"]);
  }
  get scheme(): string {
    return String(this.#row["scheme"]);
  }
  get host(): string {
    return String(this.#row["host"]);
  }
  get port(): number {
    return Number(this.#row["port"]);
  }
  get path(): string {
    const path = String(this.#row["path"]);
    const query = path.indexOf("?");
    return query === -1 ? path : path.slice(0, query);
  }
  get query(): string {
    const path = String(this.#row["path"]);
    const query = path.indexOf("?");
    return query === -1 ? "" : path.slice(query + 1);
  }
  get url(): string {
    return urlOfRow(this.#row);
  }
  get status(): number | undefined {
    return numberOf(this.#row["status"]);
  }
  get httpVersion(): string | undefined {
    return textOf(this.#row["response_version"]) ?? textOf(this.#row["request_version"]);
  }
  get requestType(): string | undefined {
    return textOf(this.#row["request_type"]);
  }
  get responseType(): string | undefined {
    return textOf(this.#row["response_type"]);
  }
  get resourceType(): string | undefined {
    return textOf(this.#row["resource_type"]);
  }
  get requestSizeBytes(): number {
    return Number(this.#row["request_size"]);
  }
  get responseSizeBytes(): number | undefined {
    return numberOf(this.#row["response_size"]);
  }
  get durationMs(): number | undefined {
    const us = numberOf(this.#row["duration_us"]);
    return us === undefined ? undefined : us / 1000;
  }
  get ttfbMs(): number | undefined {
    const us = numberOf(this.#row["ttfb_us"]);
    return us === undefined ? undefined : us / 1000;
  }
  get timestampMs(): number {
    return Number(this.#row["started_ms"]);
  }
  get clientAddress(): string | undefined {
    return textOf(this.#row["client_addr"]);
  }
  get state(): RecordState {
    return entryState(this.#row);
  }
  get isPassthrough(): boolean {
    return (Number(this.#row["flags"]) & FLAG_PASSTHROUGH) !== 0;
  }
  get applied(): readonly string[] {
    return kindsOfFlags(Number(this.#row["flags"]));
  }
  get modified(): boolean {
    return (Number(this.#row["flags"]) & FLAG_MODIFIED) !== 0;
  }
  get note(): string | undefined {
    return textOf(this.#row["note"]);
  }
  get hasRequestBody(): boolean {
    return Number(this.#row["request_body_size"]) > 0;
  }
  get hasResponseBody(): boolean {
    return Number(this.#row["response_body_size"]) > 0;
  }
  get grpcStatus(): number | undefined {
    return this.#stream?.grpcStatus;
  }
  get incoming(): "in" | undefined {
    return this.#stream?.incoming;
  }
  get outgoing(): "out" | undefined {
    return this.#stream?.outgoing;
  }
  get webSocketMessages(): number | undefined {
    return this.#stream?.webSocketMessages;
  }
  webSocketTexts(directions: readonly Direction[]): Iterable<string> {
    return this.#stream?.webSocketTexts(directions) ?? [];
  }
  requestFields(): readonly string[] {
    return storedFields(this.#row["request_fields"]) ?? NO_FIELDS;
  }
  responseFields(): readonly string[] {
    return storedFields(this.#row["response_fields"]) ?? NO_FIELDS;
  }
  requestText(): string | undefined {
    return this.#text("request", this.requestType, this.requestFields());
  }
  responseText(): string | undefined {
    return this.#text("response", this.responseType, this.responseFields());
  }

  get #stream(): StreamFacts | undefined {
    return (this.#streamFacts ??= this.#streams?.of(this.id));
  }

  #text(side: "request" | "response", mediaType: string | undefined, fields: readonly string[]): string | undefined {
    const stored = this.#bodies.read(this.seq, side, SEARCHED_BYTES);
    if (stored === undefined || stored.length === 0) return undefined;
    const codings = fieldValues(fields, "content-encoding");
    const bytes = decodeBeginningSync(stored, codings, SEARCHED_BYTES);
    return textOfBody(bytes, mediaType, fieldValue(fields, "content-type"));
  }
}

/** Decoded body text; undefined for binary data. Without a type, bytes without NUL count as text. */
function textOfBody(
  bytes: Uint8Array,
  mediaType: string | undefined,
  contentType: string | undefined,
): string | undefined {
  if (!mayBeText(mediaType)) return undefined;
  if (mediaType === undefined || mediaType === "application/octet-stream") {
    if (bytes.subarray(0, 1024).includes(0)) return undefined;
  }
  if (contentType === undefined || !/charset/iu.test(contentType)) {
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const text = buffer.toString("utf8");
    if (!text.includes("\u{FFFD}")) return text;
  }
  return decodeText(bytes, contentType).text;
}

/** Whether bodies of this media type are searched. */
export function mayBeText(mediaType: string | undefined): boolean {
  if (mediaType === undefined || mediaType === "application/octet-stream") return true;
  // Form fields are text beside the files.
  return mediaType === "multipart/form-data" || isTextualType(mediaType);
}

const TEXTUAL = new Map<string, boolean>();

function isTextualType(mediaType: string): boolean {
  const known = TEXTUAL.get(mediaType);
  if (known !== undefined) return known;
  const textual = isTextual(mediaType);
  if (TEXTUAL.size < 1024) TEXTUAL.set(mediaType, textual);
  return textual;
}

function numberOf(value: unknown): number | undefined {
  return value === null || value === undefined ? undefined : Number(value);
}

export function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
