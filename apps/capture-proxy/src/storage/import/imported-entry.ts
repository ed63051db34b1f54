import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import type { Failure, TlsInfo } from "@headworks/capture-contract";
import type { LargeText } from "@headworks/har";
import { parseHostPort } from "@headworks/host-patterns";
import {
  type ContentCoding,
  createContentDecoder,
  decodeContentSync,
  decodingPlan,
  encodeInPieces,
  parseContentEncoding,
} from "@headworks/http-fields/content-coding";
import { fieldValue } from "@headworks/http1";
import { INLINE_BODY_BYTES } from "#exchange/body.ts";
import { BODY_STATES, entryText, FLAG_PASSTHROUGH, NO_BODY, NOT_STORED, tlsText } from "../write/entry-record.ts";
import type { BodyRecord, EffectRecord, EntryRecord, EntryStateCode } from "../write/entry-record.ts";
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
interface StoredFile {
  readonly file: number;
  readonly sizeBytes: number;
}

/** Stores a large body; returns its file number. */
type StoreBody = (bytes: Uint8Array) => number;

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

/** The client of an entry or stream, in files of earlier versions too. */
export function clientOf(
  clientAddress: string | null,
  connection: number | null,
): Pick<ImportedEntry, "clientAddress" | "connection"> {
  const isOwn = (connection ?? 0) < 0 || /^replay:\d+$/u.test(clientAddress ?? "");
  return isOwn ? { clientAddress: null, connection: null } : { clientAddress, connection };
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { http: 80, ws: 80, https: 443, wss: 443, tcp: 0 };

/** Splits an absolute URL, keeping the target except for illegal characters. Throws a message. */
export function targetOfUrl(url: string): ImportedTarget {
  const match = /^([a-z]{2,5}):\/\/(?:[^/?#]*@)?([^/?#]*)([^#]*)/iu.exec(url);
  const scheme = match?.[1]?.toLowerCase() ?? "";
  const standard = DEFAULT_PORTS[scheme];
  const hostPort = parseHostPort(match?.[2] ?? "");
  if (standard === undefined || !Object.hasOwn(DEFAULT_PORTS, scheme) || "issue" in hostPort) {
    throw new Error("its URL cannot be captured");
  }
  const rest = match?.[3] ?? "";
  const path = rest.startsWith("/") ? rest : `/${rest}`;
  return { scheme, host: hostPort.host, port: hostPort.port ?? standard, path: visibleAscii(path) };
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

/** Fast settings: the result stays in the process. */
const ENCODERS: Readonly<Record<ContentCoding, (bytes: Uint8Array) => Uint8Array>> = {
  gzip: (bytes) => gzipSync(bytes, { level: 1 }),
  deflate: (bytes) => deflateSync(bytes, { level: 1 }),
  br: (bytes) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
  zstd: (bytes) => zstdCompressSync(bytes),
};

/** The text of a large HAR body, in a file. */
export interface LargeContent {
  readonly text: LargeText;
  readonly isBase64: boolean;
}

/** A HAR body in the form in which entries hold bodies. */
export interface ImportedContent {
  readonly body: ImportedMessage["body"];
  /** Total size; `body` is shorter if truncated. */
  readonly totalBytes: number;
  /** The fields name an unknown coding that the body does not have. */
  readonly isPlain: boolean;
}

/** Receives bodies that are not in memory. */
export interface FileTarget {
  /** Stored prefix of a body; the rest is only counted. */
  readonly maxBodyBytes: number;
  nextFile(): number;
  /** Copies the piece. */
  piece(file: number, bytes: Uint8Array, isLast: boolean): void;
  /** Resolves when few enough pieces are in flight. */
  hasRoom(): Promise<void>;
}

/** Restores the content codings of imported content. `contentEncoding`: undefined if still coded. */
export function contentInMemory(
  bytes: Uint8Array,
  contentEncoding: readonly string[] | undefined,
  maxBodyBytes: number,
): ImportedContent {
  const coded = contentEncoding === undefined ? bytes : codedBody(bytes, contentEncoding);
  const whole = coded ?? bytes;
  return {
    body: whole.length > maxBodyBytes ? whole.subarray(0, maxBodyBytes) : whole,
    totalBytes: whole.length,
    isPlain: coded === undefined,
  };
}

/** Like {@link contentInMemory}, streaming to a body file. */
export async function contentInFile(
  content: LargeContent,
  contentEncoding: readonly string[] | undefined,
  target: FileTarget,
): Promise<ImportedContent> {
  const pieces = (): Iterable<Uint8Array> => content.text.bytePieces(content.isBase64);
  const codings = contentEncoding ?? [];
  const isAsAnnounced = parseContentEncoding(codings).length === 0 || (await isCoded(pieces(), codings));
  const coded = isAsAnnounced ? pieces() : encodeInPieces(pieces(), codings);
  return { ...(await writtenToFile(coded ?? pieces(), target)), isPlain: coded === undefined };
}

/** Message about a truncated body. */
export function cutNote(side: string, found: Omit<ImportedContent, "isPlain"> | undefined): string[] {
  if (found === undefined || !isCut(found)) return [];
  const sizes = `${keptBytes(found.body)} of ${found.totalBytes} bytes are kept`;
  return [`the body of its ${side} is larger than max_body_size: ${sizes}`];
}

export function isCut({ body, totalBytes }: Omit<ImportedContent, "isPlain">): boolean {
  return keptBytes(body) < totalBytes;
}

/** Writes bytes up to the target's limit to a body file. */
export async function writtenToFile(
  pieces: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  target: FileTarget,
): Promise<Omit<ImportedContent, "isPlain">> {
  const writer = new FileWriter(target);
  for await (const piece of pieces) await writer.write(piece);
  return await writer.end();
}

/** If a prefix of this size decodes, the content is coded; the rest is not checked. */
const TRIED_BYTES = 1_048_576;

/** Whether decoding succeeds with a non-empty result, like `codedBody` in memory. */
async function isCoded(pieces: Iterable<Uint8Array>, contentEncoding: readonly string[]): Promise<boolean> {
  let [triedBytes, decodedBytes] = [0, 0];
  const count = (bytes: Uint8Array): void => void (decodedBytes += bytes.length);
  const decoder = createContentDecoder(contentEncoding, count, { maxBytes: TRIED_BYTES });
  for (const piece of pieces) {
    await decoder.write(piece);
    triedBytes += piece.length;
    if (decodedBytes >= TRIED_BYTES || (decodedBytes === 0 && triedBytes >= TRIED_BYTES)) break;
  }
  const { stop, remaining } = await decoder.end();
  return remaining.length === 0 && (decodedBytes >= TRIED_BYTES || (stop === undefined && decodedBytes > 0));
}

const CHUNK_BYTES = 1_048_576;

/** Writes a prefix of a body to its file and counts all of it. */
class FileWriter {
  readonly #target: FileTarget;
  /** Coalesces pieces to reduce the number of messages. */
  readonly #chunk = new Uint8Array(CHUNK_BYTES);
  #file: number | undefined;
  #used = 0;
  #storedBytes = 0;
  #totalBytes = 0;

  constructor(target: FileTarget) {
    this.#target = target;
  }

  async write(bytes: Uint8Array): Promise<void> {
    this.#totalBytes += bytes.length;
    let rest = bytes.subarray(0, this.#target.maxBodyBytes - this.#storedBytes);
    this.#storedBytes += rest.length;
    while (rest.length > 0) {
      const part = rest.subarray(0, CHUNK_BYTES - this.#used);
      this.#chunk.set(part, this.#used);
      this.#used += part.length;
      rest = rest.subarray(part.length);
      if (this.#used === CHUNK_BYTES) await this.#send(false);
    }
  }

  async end(): Promise<Omit<ImportedContent, "isPlain">> {
    if (this.#storedBytes > 0) await this.#send(true);
    const file = this.#file;
    const body: StoredFile | undefined = file === undefined ? undefined : { file, sizeBytes: this.#storedBytes };
    return { body, totalBytes: this.#totalBytes };
  }

  async #send(isLast: boolean): Promise<void> {
    this.#file ??= this.#target.nextFile();
    this.#target.piece(this.#file, this.#chunk.subarray(0, this.#used), isLast);
    this.#used = 0;
    await this.#target.hasRoom();
  }
}

/**
 * Restores the content codings of an imported body, since entries hold bodies as announced by Content-Encoding. Most
 * programs write decoded bodies: those are encoded again, so fields and content stay consistent although the bytes are
 * not the received ones. Bodies that still have their codings stay as they are. Undefined for unknown or too many
 * codings.
 */
function codedBody(bytes: Uint8Array, contentEncoding: readonly string[]): Uint8Array | undefined {
  const { steps, remaining } = decodingPlan(contentEncoding);
  if (bytes.length === 0 || steps.length + remaining.length === 0 || isCodedBytes(bytes, contentEncoding)) return bytes;
  if (remaining.length > 0) return undefined;
  return steps.toReversed().reduce((coded, coding) => ENCODERS[coding](coded), bytes);
}

/** Whether decoding succeeds with a non-empty result; uncoded data hardly ever does. */
function isCodedBytes(bytes: Uint8Array, contentEncoding: readonly string[]): boolean {
  const { bytes: decoded, stop } = decodeContentSync(bytes, contentEncoding);
  return stop === "limit" || (stop === undefined && decoded.length > 0);
}
