import { isUtf8 } from "node:buffer";
import type { HarBody, HarExchange, HarExchangeTimings, HarParam, HarText, HarTimings } from "./har.ts";
import { isBase64Text, LARGE_TEXT_BYTES, LargeBody, LargeText, NOT_BASE64 } from "./large-text.ts";

/** Bytes in HAR: text or base64. */
interface BodyText {
  readonly text: string;
  readonly isBase64: boolean;
}

const STRICT = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Text if valid UTF-8 and no other charset is named, so that encoding restores it; else base64. */
export function bodyText(bytes: Uint8Array, contentType: string): BodyText {
  if (mayBeUtf8(contentType)) {
    try {
      return { text: STRICT.decode(bytes), isBase64: false };
    } catch {
      // Not UTF-8: use base64.
    }
  }
  return { text: toBase64(bytes), isBase64: true };
}

/** Like `bodyText`; the text of a large body is produced when written. */
export function bodyHarText(bytes: Uint8Array, contentType: string): { text: HarText; isBase64: boolean } {
  if (bytes.length < LARGE_TEXT_BYTES) return bodyText(bytes, contentType);
  const isBase64 = !mayBeUtf8(contentType) || !isUtf8(bytes);
  return { text: new LargeBody(bytes, isBase64), isBase64 };
}

function mayBeUtf8(contentType: string): boolean {
  const charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(contentType)?.[1]?.toLowerCase();
  return charset === undefined || charset === "utf-8" || charset === "utf8" || charset === "us-ascii";
}

/** Inverse of `bodyText`. Throws a sentence for invalid base64. */
export function bodyBytes(body: BodyText): Uint8Array {
  return body.isBase64 ? fromBase64(body.text) : new TextEncoder().encode(body.text);
}

/** Base64 of the bytes, produced when written if large. */
function base64HarText(bytes: Uint8Array): HarText {
  return bytes.length < LARGE_TEXT_BYTES ? toBase64(bytes) : new LargeBody(bytes, true);
}

/** Standard base64 with padding. */
export function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

/** Copies short results, which would keep Buffer's pool alive. */
function fromBase64(text: string): Uint8Array {
  if (!isBase64Text(text)) throw new Error(NOT_BASE64);
  const bytes = Buffer.from(text, "base64");
  const isAlone = bytes.length === bytes.buffer.byteLength;
  return isAlone ? new Uint8Array(bytes.buffer) : new Uint8Array(bytes);
}

/** Further parts are not listed; the body text is complete. */
const MAX_PARTS = 1000;

/** Bounds the patterns applied to the head of a part. */
const MAX_HEAD_LENGTH = 4096;

/** Longer values are omitted from the list of parts. */
const MAX_VALUE_LENGTH = 65_536;
export const MULTIPART_FORM = /^\s*multipart\/form-data\b/i;

export interface RebuiltForm {
  readonly text: string;
  /** Includes the boundary. */
  readonly contentType: string;
  /** Parts without content: names of the field and of the file, if any. */
  readonly missingParts: readonly string[];
}

/**
 * Builds a multipart/form-data body with browser-style names. Uses the boundary of the media type unless it is missing
 * or occurs in a part. Parts without content, which most programs omit for files, are empty.
 */
export function multipartForm(params: readonly HarParam[], contentType: string): RebuiltForm {
  const named = boundaryOf(contentType);
  const mark = named !== undefined && canDivide(named, params) ? named : ownBoundary(params);
  const parts = params.map(({ name, value = "", fileName, contentType: type }) => {
    const file = fileName === undefined ? "" : `; filename="${quotable(fileName)}"`;
    const typeLine = type === undefined ? "" : `Content-Type: ${oneLine(type)}\r\n`;
    return `--${mark}\r\nContent-Disposition: form-data; name="${quotable(name)}"${file}\r\n${typeLine}\r\n${value}\r\n`;
  });
  const bare = contentType.replaceAll(BOUNDARY_PARAMETER, "").trimEnd();
  return {
    text: `${parts.join("")}--${mark}--\r\n`,
    contentType: mark === named ? contentType : `${bare}; boundary=${mark}`,
    missingParts: params.filter(({ value }) => value === undefined).map(shownPart),
  };
}

function shownPart({ name, fileName }: HarParam): string {
  return fileName === undefined ? JSON.stringify(name) : `${JSON.stringify(name)} (${JSON.stringify(fileName)})`;
}

const BOUNDARY_PARAMETER = /;[ \t]{0,8}boundary=(?:"[^"]*"?|[^;]*)/gi;

function boundaryOf(contentType: string): string | undefined {
  const boundary = /;\s{0,8}boundary=(?:"([^"]{1,200})"|([^\s;]{1,200}))/i.exec(contentType);
  return boundary?.[1] ?? boundary?.[2];
}

function canDivide(mark: string, params: readonly HarParam[]): boolean {
  return /^[\x20-\x7e]+$/.test(mark) && params.every(({ value = "" }) => !`\r\n${value}`.includes(`\r\n--${mark}`));
}

function ownBoundary(params: readonly HarParam[]): string {
  let mark = "----WeirFormBoundary";
  for (let count = 1; !canDivide(mark, params); count += 1) mark = `----WeirFormBoundary${count}`;
  return mark;
}

/** Escaping of quoted names in the HTML standard. */
function quotable(text: string): string {
  return text.replaceAll("\r", "%0D").replaceAll("\n", "%0A").replaceAll('"', "%22");
}

function oneLine(text: string): string {
  return text.replaceAll(/[\r\n]+/g, " ");
}

/** Parses multipart/form-data (RFC 7578) into HAR parameters. `text` has one character per byte. */
export function multipartParams(text: string, contentType: string): readonly HarParam[] {
  const mark = boundaryOf(contentType);
  if (mark === undefined) return [];
  const params: HarParam[] = [];
  let at = text.indexOf(`--${mark}`);
  while (at !== -1 && params.length < MAX_PARTS) {
    const start = at + mark.length + 2;
    if (text.startsWith("--", start)) break;
    const next = text.indexOf(`\r\n--${mark}`, start);
    const param = part(text.slice(start, next === -1 ? text.length : next));
    if (param !== undefined) params.push(param);
    at = next === -1 ? -1 : next + 2;
  }
  return params;
}

function part(text: string): HarParam | undefined {
  const blank = text.indexOf("\r\n\r\n");
  const head = text.slice(0, Math.min(blank === -1 ? text.length : blank, MAX_HEAD_LENGTH));
  const disposition = /^content-disposition:[ \t]*form-data(.*)$/im.exec(head)?.[1];
  const name = parameter(disposition, "name");
  if (name === undefined) return undefined;
  const fileName = parameter(disposition, "filename");
  const contentType = /^content-type:(.*)$/im.exec(head)?.[1]?.trim();
  const value = blank === -1 ? "" : text.slice(blank + 4);
  return {
    name,
    ...(fileName === undefined && value.length <= MAX_VALUE_LENGTH && { value: utf8(value) }),
    ...(fileName !== undefined && { fileName }),
    ...(contentType !== undefined && contentType !== "" && { contentType }),
  };
}

function parameter(disposition: string | undefined, name: string): string | undefined {
  const found = new RegExp(`;\\s*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s;]+))`, "i").exec(disposition ?? "");
  const value = found?.[1]?.replace(/\\(["\\])/g, "$1") ?? found?.[2];
  return value === undefined ? undefined : utf8(value);
}

function utf8(text: string): string {
  return Buffer.from(text, "latin1").toString("utf8");
}

/** -1 for phases that did not occur, TLS inside `connect`, unknown mandatory phases as 0. */
export function toHarTimings(timings: HarExchangeTimings): HarTimings {
  const { connect, tls } = timings;
  return {
    blocked: timings.blocked ?? -1,
    dns: timings.dns ?? -1,
    connect: connect === undefined && tls === undefined ? -1 : (connect ?? 0) + (tls ?? 0),
    send: timings.send ?? 0,
    wait: timings.wait ?? 0,
    receive: timings.receive ?? 0,
    ssl: tls ?? -1,
  };
}

/** Sum of all applicable phases; TLS counts once. */
export function totalMs(timings: HarTimings): number {
  const phases = [timings.blocked, timings.dns, timings.connect, timings.send, timings.wait, timings.receive];
  return phases.reduce((sum: number, ms) => sum + Math.max(0, ms ?? 0), 0);
}

/** Longer durations (30 years) come from an unknown start or end. */
const MAX_MS = 1e12;

/** Invalid durations count as unknown. */
export function knownMs(ms: unknown): number | undefined {
  return typeof ms === "number" && ms >= 0 && ms <= MAX_MS ? ms : undefined;
}

/** Inverse of `toHarTimings`, as far as possible. */
export function fromHarTimings(timings: HarTimings): HarExchangeTimings {
  const tls = knownMs(timings.ssl);
  const both = knownMs(timings.connect);
  return {
    blocked: knownMs(timings.blocked),
    dns: knownMs(timings.dns),
    connect: both === undefined ? undefined : Math.max(0, both - (tls ?? 0)),
    tls,
    send: knownMs(timings.send),
    wait: knownMs(timings.wait),
    receive: knownMs(timings.receive),
  };
}

const PHASES = ["blocked", "dns", "connect", "tls", "send", "wait", "receive"] as const;

export function sameTimings(left: HarExchangeTimings, right: HarExchangeTimings): boolean {
  return PHASES.every((phase) => Object.is(left[phase], right[phase]));
}

/** Reads timings from untrusted JSON; invalid durations count as unknown. */
export function readTimings(value: unknown): HarExchangeTimings | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const found = new Map(Object.entries<unknown>({ ...value }));
  const ms = (phase: string): number | undefined => knownMs(found.get(phase));
  return {
    blocked: ms("blocked"),
    dns: ms("dns"),
    connect: ms("connect"),
    tls: ms("tls"),
    send: ms("send"),
    wait: ms("wait"),
    receive: ms("receive"),
  };
}

/** Facts about a body that HAR cannot express. */
export interface OwnBodyRecord {
  readonly encoded?: true;
  readonly truncated?: true;
  /** Transferred bytes, if different from the kept ones; null if not counted. */
  readonly transferred?: number | null;
  /** Base64 of the kept bytes, if the decoded text does not determine them. */
  readonly raw?: HarText;
}

/** The `_weir` member of an entry. */
export interface OwnRecord {
  readonly version: 1;
  readonly id?: string;
  readonly session?: string;
  readonly passthrough?: true;
  readonly failure?: string;
  readonly more?: Readonly<Record<string, unknown>>;
  readonly clientAddress?: string;
  readonly serverAddress?: string;
  readonly noResponse?: true;
  /** Media type of a request without a body; otherwise HAR has a member for it. */
  readonly requestType?: string;
  readonly timings?: Partial<HarExchangeTimings>;
  /** WebSocket control frames, each with the index of the message that follows. */
  readonly controlFrames?: readonly Readonly<Record<string, unknown>>[];
  readonly request?: OwnBodyRecord;
  readonly response?: OwnBodyRecord;
}

/** Undefined if HAR's members suffice. */
export function ownBodyRecord(body: HarBody | undefined, isDecoded: boolean): OwnBodyRecord | undefined {
  if (body === undefined) return undefined;
  const record: OwnBodyRecord = {
    ...(body.isEncoded && { encoded: true as const }),
    ...(body.isTruncated && { truncated: true as const }),
    ...(body.transferredBytes !== body.bytes.length && { transferred: body.transferredBytes ?? null }),
    ...(isDecoded && { raw: base64HarText(body.bytes) }),
  };
  return Object.keys(record).length === 0 ? undefined : record;
}

/** Facts of an exchange that are always in `_weir`. */
export function ownFacts(
  exchange: HarExchange,
): Omit<OwnRecord, "timings" | "controlFrames" | "request" | "response" | "serverAddress"> {
  const { request, weir, clientAddress } = exchange;
  return {
    version: 1,
    ...(weir.id !== undefined && { id: weir.id }),
    ...(weir.session !== undefined && { session: weir.session }),
    ...(weir.isPassthrough && { passthrough: true as const }),
    ...(weir.failure !== undefined && { failure: weir.failure }),
    ...(weir.more !== undefined && { more: weir.more }),
    ...(clientAddress !== undefined && { clientAddress }),
    ...(exchange.response === undefined && { noResponse: true as const }),
    ...(request.body === undefined && request.mediaType !== undefined && { requestType: request.mediaType }),
  };
}

/** Reads `_weir` of an untrusted file, dropping members of the wrong type. Undefined if it is not Weir's. */
export function readOwnRecord(value: unknown): OwnRecord | undefined {
  const found = record(value);
  if (found?.["version"] !== 1) return undefined;
  const [id, session, failure, clientAddress, serverAddress, requestType] = [
    "id",
    "session",
    "failure",
    "clientAddress",
    "serverAddress",
    "requestType",
  ].map((name) => text(found[name]));
  const more = record(found["more"]);
  const timings = record(found["timings"]);
  const frames: readonly unknown[] = Array.isArray(found["controlFrames"]) ? found["controlFrames"] : [];
  const controlFrames = frames.map(record).filter((frame) => frame !== undefined);
  const request = readOwnBody(found["request"]);
  const response = readOwnBody(found["response"]);
  return {
    version: 1,
    ...(id !== undefined && { id }),
    ...(session !== undefined && { session }),
    ...(found["passthrough"] === true && { passthrough: true as const }),
    ...(failure !== undefined && { failure }),
    ...(more !== undefined && { more }),
    ...(clientAddress !== undefined && { clientAddress }),
    ...(serverAddress !== undefined && { serverAddress }),
    ...(found["noResponse"] === true && { noResponse: true as const }),
    ...(requestType !== undefined && { requestType }),
    ...(timings !== undefined && { timings }),
    ...(controlFrames.length > 0 && { controlFrames }),
    ...(request !== undefined && { request }),
    ...(response !== undefined && { response }),
  };
}

function readOwnBody(value: unknown): OwnBodyRecord | undefined {
  const found = record(value);
  if (found === undefined) return undefined;
  const { transferred } = found;
  const { raw: written } = found;
  const raw = written instanceof LargeText || written instanceof LargeBody ? written : text(written);
  const isCount = typeof transferred === "number" && Number.isSafeInteger(transferred) && transferred >= 0;
  return {
    ...(found["encoded"] === true && { encoded: true as const }),
    ...(found["truncated"] === true && { truncated: true as const }),
    ...((isCount || transferred === null) && { transferred }),
    ...(raw !== undefined && { raw }),
  };
}

function record(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
