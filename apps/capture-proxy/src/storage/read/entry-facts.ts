import type { EntryState, ResourceType, RuleKind } from "@headworks/capture-contract";
import { resourceType } from "@headworks/http-fields";
import { type ExchangeView, isClosedByClient, type Moments } from "#exchange/exchange.ts";
import type { SqlRow } from "../database.ts";

/** Order of the bits; append new kinds. */
export const KINDS = [
  "block",
  "rewrite",
  "mock",
  "breakpoint",
  "throttle",
  "script",
  "plugin",
] as const satisfies readonly RuleKind[];

/** Above {@link FLAG_MODIFIED} and its like. One bit for each kind of rule that affected the entry. */
const FIRST_BIT = 8;

/** Codes of `entry.state`, in contract order. */
export const ENTRY_STATES = ["pending", "complete", "failed", "closed"] as const;
export type EntryStateCode = 0 | 1 | 2 | 3;

export const FLAG_MODIFIED = 1;
export const FLAG_PASSTHROUGH = 2;
export const FLAG_SCRIPTED = 4;

export interface FieldFacts {
  /** Sum of `name: value` and CRLF over all fields. */
  readonly sizeBytes: number;
  /** Lower case, without parameters. */
  readonly mediaType: string | null;
}

/** The first Content-Type counts. */
export function readFields(fields: readonly string[]): FieldFacts {
  let sizeBytes = 0;
  let mediaType: string | null = null;
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const name = fields[index] ?? "";
    const value = fields[index + 1] ?? "";
    sizeBytes += name.length + value.length + 4;
    if (name.length === 12 && mediaType === null && name.toLowerCase() === "content-type") {
      mediaType = withoutParameters(value);
    }
  }
  return { sizeBytes, mediaType };
}

/** Media type of a Content-Type value; null if there is none. */
export function withoutParameters(value: string): string | null {
  const end = value.indexOf(";");
  const type = (end === -1 ? value : value.slice(0, end)).trim().toLowerCase();
  return type === "" ? null : type;
}

export function stateCode(exchange: Pick<ExchangeView, "state" | "response">): EntryStateCode {
  const { step } = exchange.state;
  if (step === "completed") return 1;
  return step === "failed" ? (isClosedByClient(exchange) ? 3 : 2) : 0;
}

/** Maps an exported pending entry to failed. */
export function finalState(state: EntryState): EntryState {
  return state === "pending" ? "failed" : state;
}

export function entryState(row: SqlRow): EntryState {
  return ENTRY_STATES[Number(row["state"]) as EntryStateCode];
}

/** In microseconds from the first moment to the end; null while running. */
export function durationUs(moments: Readonly<Moments>): number | null {
  return moments.ended > 0 ? microseconds(moments.ended - moments.started) : null;
}

/** In microseconds to the first response byte; null without one. */
export function ttfbUs(moments: Readonly<Moments>): number | null {
  return moments.firstByte > 0 ? microseconds(moments.firstByte - moments.started) : null;
}

/** Rounded to 10 µs like the phase timings. */
function microseconds(milliseconds: number): number {
  return Math.max(0, Math.round(milliseconds * 100)) * 10;
}

export function flagsOf(exchange: ExchangeView): number {
  const kinds = exchange.trace === undefined ? 0 : flagsOfKinds(exchange.trace);
  return (exchange.modified ? FLAG_MODIFIED : 0) | (exchange.passthrough ? FLAG_PASSTHROUGH : 0) | kinds;
}

export interface ResourceHints {
  readonly scheme: string;
  readonly method: string;
  /** With query. */
  readonly path: string;
  readonly status: number | null;
  readonly requestType: string | null;
  readonly responseType: string | null;
  readonly passthrough: boolean;
}

/** Falls back to the request if the response is inconclusive. */
export function resourceTypeOf(hints: ResourceHints): ResourceType {
  if (hints.passthrough || hints.method === "CONNECT" || hints.scheme === "tcp") return "tunnel";
  if (hints.scheme === "ws" || hints.scheme === "wss" || hints.status === 101) return "websocket";
  const { responseType, requestType } = hints;
  if (requestType?.startsWith("application/grpc") === true) return "grpc";
  const byType = responseType === null ? "other" : typeOfMedia(responseType);
  if (byType !== "other" && byType !== "binary") return byType;
  const byPath = resourceType(responseType ?? undefined, hints.path);
  return byPath === "other" && requestType !== null ? typeOfMedia(requestType) : byPath;
}

const MEDIA_TYPES = new Map<string, ResourceType>();
const MAX_MEDIA_TYPES = 1024;

/**
 * A cheap classification: parsing every media type would dominate, and caching is unbounded since origins may invent
 * types.
 */
function typeOfMedia(mediaType: string): ResourceType {
  const known = MEDIA_TYPES.get(mediaType);
  if (known !== undefined) return known;
  const found = resourceType(mediaType, "/");
  if (MEDIA_TYPES.size < MAX_MEDIA_TYPES) MEDIA_TYPES.set(mediaType, found);
  return found;
}

/** Bits of `entry.flags`. */
export function flagsOfKinds(trace: readonly { readonly kind: RuleKind }[]): number {
  return trace.reduce((flags, { kind }) => flags | (FIRST_BIT << KINDS.indexOf(kind)), 0);
}

/** Inverse of {@link flagsOfKinds}. */
export function kindsOfFlags(flags: number): RuleKind[] {
  return flags < FIRST_BIT ? [] : KINDS.filter((_kind, index) => (flags & (FIRST_BIT << index)) !== 0);
}
