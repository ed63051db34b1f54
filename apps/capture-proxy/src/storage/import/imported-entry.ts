import { parseHostPort } from "@headworks/host-patterns";
import type { Failure, TlsInfo } from "@headworks/capture-contract";
import { fieldValue } from "@headworks/http1";
import { INLINE_BODY_BYTES } from "#exchange/body.ts";
import { FLAG_PASSTHROUGH, readFields, resourceTypeOf, withoutParameters } from "../read/entry-facts.ts";
import type { EntryStateCode, FieldFacts } from "../read/entry-facts.ts";
import { BODY_STATES, NO_BODY, NOT_STORED, entryText } from "../write/entry-record.ts";
import type { EffectRecord } from "../read/rule-effects.ts";
import type { BodyRecord, EntryRecord } from "../write/entry-record.ts";
import { tlsText } from "../read/stored-tls.ts";

/** An entry of a file, whatever its format, checked and in the store's terms. */
export interface ImportedEntry {
  /** Kept when it is free. */
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

/** What rules did to it, with the bodies they replaced. */
export interface ImportedEffect {
  readonly record: EffectRecord;
  readonly bodies: readonly Uint8Array[];
}

/** Where a request went. */
export interface ImportedTarget {
  readonly scheme: string;
  readonly host: string;
  readonly port: number;
  readonly path: string;
}

/** Fields and body of one side. */
export interface ImportedMessage {
  /** Name, value, name, value. */
  readonly fields: readonly string[];
  readonly trailers: readonly string[] | null;
  /** What the file says that the body is; counts where no field says it. */
  readonly contentType: string | null;
  /** The bytes, or the file they are in already. */
  readonly body: Uint8Array | StoredFile | undefined;
  /** As transferred. */
  readonly bodySize: number;
  readonly bodyState: number;
}

/** A body that went ahead of its entry. */
export interface StoredFile {
  readonly file: number;
  readonly sizeBytes: number;
}

/** Sends a large body ahead; gives the number of its file. */
export type StoreBody = (bytes: Uint8Array) => number;

/** The lines of {@link EntryRecord} and the bodies that travel with them. */
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
/** What programs write in place of a type that they do not know, as far as it looks like one. */
const UNKNOWN_TYPES: ReadonlySet<string> = new Set([
  "application/unknown",
  "application/x-unknown-content-type",
  "unknown/unknown",
]);

/** Lower-case and without parameters. */
function mediaTypeOf({ fields, contentType }: ImportedMessage, { mediaType }: FieldFacts): string | null {
  if (contentType === null || fieldValue(fields, "content-type") !== undefined) return mediaType;
  const found = withoutParameters(contentType);
  return found !== null && MEDIA_TYPE.test(found) && !UNKNOWN_TYPES.has(found) ? found : null;
}

const [NONE, COMPLETE, TRUNCATED] = [0, 1, 2];

/** Whatever the file says, what is there decides: a body with fewer bytes than it had is cut, one without any is missing. */
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

/** Bytes of a body that its entry has. */
export function keptBytes(body: ImportedMessage["body"]): number {
  return body === undefined ? 0 : body instanceof Uint8Array ? body.length : body.sizeBytes;
}

/**
 * The client that a file names for an entry or a stream. In files of earlier versions requests of Weir's own have one, with an address
 * that is none and a connection below zero.
 */
export function clientOf(
  clientAddress: string | null,
  connection: number | null,
): Pick<ImportedEntry, "clientAddress" | "connection"> {
  const isOwn = (connection ?? 0) < 0 || /^replay:\d+$/u.test(clientAddress ?? "");
  return isOwn ? { clientAddress: null, connection: null } : { clientAddress, connection };
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { http: 80, ws: 80, https: 443, wss: 443, tcp: 0 };

/** The parts of an absolute URL, target text left as it is but for what no target can hold. Throws a sentence. */
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

/** Percent-encodes everything that is no visible ASCII, as UTF-8. */
function visibleAscii(path: string): string {
  return path.replaceAll(/[^\x21-\x7e]+/gu, (text) =>
    [...Buffer.from(text, "utf8")].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join(""),
  );
}

/** The code of a body state's name; that of a complete body for names nobody knows. */
export function bodyStateCode(name: unknown): number {
  const code = (BODY_STATES as readonly unknown[]).indexOf(name);
  return code === -1 ? COMPLETE : code;
}
