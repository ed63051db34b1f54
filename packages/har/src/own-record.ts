import { base64HarText } from "./body-text.ts";
import type { HarText } from "./har.ts";
import { LargeBody } from "./large-body.ts";
import { LargeText } from "./large-text.ts";
import type { HarBody, HarExchange, HarExchangeTimings } from "./exchange.ts";

/** What `_weir` says about a body beyond HAR's own members. */
export interface OwnBodyRecord {
  readonly encoded?: true;
  readonly truncated?: true;
  /** Bytes transferred, when not the bytes kept; null when not counted. */
  readonly transferred?: number | null;
  /** The bytes as kept, in base64, when HAR's decoded text cannot give them back. */
  readonly raw?: HarText;
}

/** The `_weir` member of an entry: everything that HAR itself has no room for. */
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
  /** What the body of the request would be; with a body HAR has a place for it. */
  readonly requestType?: string;
  readonly timings?: Partial<HarExchangeTimings>;
  /** Control frames of a WebSocket connection, each with the place among its messages that it stands before. */
  readonly controlFrames?: readonly Readonly<Record<string, unknown>>[];
  readonly request?: OwnBodyRecord;
  readonly response?: OwnBodyRecord;
}

/** Notes what HAR's members do not say about a body; undefined when they say it all. */
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

/** The facts of an exchange that stand in `_weir` whatever HAR can say. */
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

/** Reads `_weir` of a file that may come from anywhere: what has the wrong type is left out. Undefined when it is not ours. */
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
