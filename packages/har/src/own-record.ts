import { base64HarText } from "./body-text.ts";
import type { HarText } from "./har.ts";
import { LargeBody, LargeText } from "./large-text.ts";
import type { HarBody, HarExchange, HarExchangeTimings } from "./exchange.ts";

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
