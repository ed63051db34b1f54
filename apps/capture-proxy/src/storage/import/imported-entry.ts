import { parseHostPort } from "@headworks/host-patterns";
import type { Failure, TlsInfo } from "@headworks/capture-contract";
import { fieldValue } from "@headworks/http1";
import { INLINE_BODY_BYTES } from "#exchange/body.ts";
import {
  BODY_STATES,
  type BodyRecord,
  type EffectRecord,
  type EntryRecord,
  type EntryStateCode,
  entryText,
  FLAG_PASSTHROUGH,
  NO_BODY,
  NOT_STORED,
  tlsText,
} from "../write/entry-record.ts";
import { type FieldFacts, readFields, resourceTypeOf, withoutParameters } from "../write/exchange-record.ts";

/** A validated entry from any format. */
export interface ImportedEntry {
  /** Kept unless taken. */
  readonly id: string;
  readonly state: number;
  readonly startedMs: number;
  readonly method: string;
  readonly target: ImportedTarget;
  readonly status: number | null;
  readonly statusMessage: string | null;
  readonly durationUs: number | null;
  readonly ttfbUs: number | null;
  readonly requestVersion: string | null;
  readonly responseVersion: string | null;
  readonly flags: number;
  readonly source: string;
  readonly clientAddress: string | null;
  readonly serverAddress: string | null;
  readonly connection: number | null;
  readonly timings: readonly (number | null)[];
  readonly failure: Failure | null;
  readonly tls: TlsInfo | null;
  readonly note: string | null;
  readonly effect: ImportedEffect | undefined;
  readonly request: ImportedMessage;
  readonly response: ImportedMessage | undefined;
}

/** Rule effects with the replaced bodies. */
export interface ImportedEffect {
  readonly record: EffectRecord;
  readonly bodies: readonly Uint8Array[];
}

export interface ImportedTarget {
  readonly scheme: string;
  readonly host: string;
  readonly port: number;
  readonly path: string;
}

export interface ImportedMessage {
  /** Name, value, name, value. */
  readonly fields: readonly string[];
  readonly trailers: readonly string[] | null;
  /** Type given by the file, used without a Content-Type field. */
  readonly contentType: string | null;
  /** Bytes, or the file that holds them. */
  readonly body: Uint8Array | StoredFile | undefined;
  /** As transferred. */
  readonly bodySize: number;
  readonly bodyState: number;
}

/** A body stored before its entry. */
export interface StoredFile {
  readonly file: number;
  readonly sizeBytes: number;
}

/** Stores a large body; returns its file number. */
export type StoreBody = (bytes: Uint8Array) => number;

/** The parts of {@link EntryRecord} and the inline bodies. */
export function encodeImported(
  entry: ImportedEntry,
  sessionNumber: number,
  storeBody: StoreBody,
): { readonly text: string; readonly bodies: readonly Uint8Array[] } {
  const { target, request, response } = entry;
  const requestFacts = readFields(request.fields);
  const responseFacts = response === undefined ? undefined : readFields(response.fields);
  const requestType = mediaTypeOf(request, requestFacts);
  const responseType = response && responseFacts ? mediaTypeOf(response, responseFacts) : null;
  const passthrough = (entry.flags & FLAG_PASSTHROUGH) !== 0;
  const { scheme, path } = target;
  const hints = { scheme, method: entry.method, path, status: entry.status, requestType, responseType, passthrough };
  const requestBody = bodyRecord(request, storeBody);
  const responseBody = response === undefined ? NO_BODY : bodyRecord(response, storeBody);
  const record: EntryRecord = [
    0,
    0,
    entry.id,
    sessionNumber,
    entry.state as EntryStateCode,
    entry.startedMs,
    entry.method,
    scheme,
    target.host,
    target.port,
    path,
    entry.status,
    entry.statusMessage,
    requestType,
    responseType,
    resourceTypeOf(hints),
    entry.durationUs,
    entry.ttfbUs,
    requestFacts.sizeBytes + requestBody[0],
    responseFacts === undefined ? null : responseFacts.sizeBytes + responseBody[0],
    entry.requestVersion,
    entry.responseVersion,
    entry.flags,
    entry.source,
    entry.clientAddress,
    entry.serverAddress,
    entry.connection,
    JSON.stringify(entry.timings),
    request.trailers === null ? null : [...request.trailers],
    response?.trailers === null || response === undefined ? null : [...response.trailers],
    entry.failure,
    requestBody,
    responseBody,
    entry.note,
    entry.effect?.record ?? null,
  ];
  const inline = (message: ImportedMessage | undefined, body: BodyRecord): Uint8Array[] =>
    body[3] > 0 && message?.body instanceof Uint8Array ? [message.body] : [];
  return {
    text: entryText(record, request, response, entry.tls === null ? "" : tlsText(entry.tls)),
    bodies: [...inline(request, requestBody), ...inline(response, responseBody), ...(entry.effect?.bodies ?? [])],
  };
}

const MEDIA_TYPE = /^[!#$&^_.+\w-]{1,127}\/[!#$&^_.+\w-]{1,127}$/u;
/** Placeholders that programs write for an unknown type. */
const UNKNOWN_TYPES: ReadonlySet<string> = new Set([
  "application/unknown",
  "application/x-unknown-content-type",
  "unknown/unknown",
]);

/** Lower case, without parameters. */
function mediaTypeOf({ fields, contentType }: ImportedMessage, { mediaType }: FieldFacts): string | null {
  if (contentType === null || fieldValue(fields, "content-type") !== undefined) return mediaType;
  const found = withoutParameters(contentType);
  return found !== null && MEDIA_TYPE.test(found) && !UNKNOWN_TYPES.has(found) ? found : null;
}

const [NONE, COMPLETE, TRUNCATED] = [0, 1, 2];

/** Derived from the actual bytes, whatever the file claims: fewer bytes mean truncated, none mean missing. */
function bodyRecord(message: ImportedMessage, storeBody: StoreBody): BodyRecord {
  const { body, bodySize } = message;
  const stored = keptBytes(body);
  const size = Math.max(bodySize, stored);
  if (body === undefined || stored === 0) {
    const isCutToNothing = message.bodyState === TRUNCATED;
    return [size, 0, size === 0 ? NONE : isCutToNothing ? TRUNCATED : NOT_STORED, 0, 0];
  }
  const state = stored < size ? TRUNCATED : COMPLETE;
  if (!(body instanceof Uint8Array)) return [size, stored, state, 0, body.file];
  return stored > INLINE_BODY_BYTES ? [size, stored, state, 0, storeBody(body)] : [size, stored, state, stored, 0];
}

/** Stored size of a body. */
export function keptBytes(body: ImportedMessage["body"]): number {
  return body === undefined ? 0 : body instanceof Uint8Array ? body.length : body.sizeBytes;
}

/**
 * The client of an entry or stream. Files of earlier versions give Weir's own requests a client with an invalid address
 * and a negative connection.
 */
export function clientOf(
  clientAddress: string | null,
  connection: number | null,
): Pick<ImportedEntry, "clientAddress" | "connection"> {
  const isOwn = (connection ?? 0) < 0 || /^replay:\d+$/u.test(clientAddress ?? "");
  return isOwn ? { clientAddress: null, connection: null } : { clientAddress, connection };
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { http: 80, ws: 80, https: 443, wss: 443, tcp: 0 };

/** Splits an absolute URL, keeping the target except for illegal characters. Throws a sentence. */
export function targetOfUrl(url: string): ImportedTarget {
  const match = /^([a-z]{2,5}):\/\/(?:[^/?#]*@)?([^/?#]*)([^#]*)/iu.exec(url);
  const scheme = match?.[1]?.toLowerCase() ?? "";
  const standard = DEFAULT_PORTS[scheme];
  const place = parseHostPort(match?.[2] ?? "");
  if (standard === undefined || !Object.hasOwn(DEFAULT_PORTS, scheme) || "issue" in place) {
    throw new Error("its URL is none that can be captured");
  }
  const rest = match?.[3] ?? "";
  const path = rest.startsWith("/") ? rest : `/${rest}`;
  return { scheme, host: place.host, port: place.port ?? standard, path: visibleAscii(path) };
}

/** Percent-encodes everything but visible ASCII as UTF-8. */
function visibleAscii(path: string): string {
  return path.replaceAll(/[^\x21-\x7e]+/gu, (text) =>
    [...Buffer.from(text, "utf8")].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join(""),
  );
}

/** Unknown names count as complete. */
export function bodyStateCode(name: unknown): number {
  const code = (BODY_STATES as readonly unknown[]).indexOf(name);
  return code === -1 ? COMPLETE : code;
}
