import { randomFillSync } from "node:crypto";
import { fieldValues, removeField, type RawFields } from "@headworks/http1";

/** Parent of a request in an existing trace (W3C Trace Context, level 1). */
export interface TraceParent {
  /** 32 and 16 lower-case hexadecimal digits. */
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
  /** Vendor state, forwarded unread. */
  readonly state: string;
}

const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const SAMPLED = 0x01;
/** The length that must at least be propagated by the standard. */
const MAX_STATE_CHARS = 512;

/** The parent of a request; undefined for none, several, or a malformed one. */
export function traceParent(fields: Readonly<RawFields>): TraceParent | undefined {
  const [value, ...others] = fieldValues(fields, "traceparent");
  if (value === undefined || others.length > 0) return undefined;
  const [, version, traceId = "", spanId = "", flags = "", more] = FORM.exec(value.trim()) ?? [];
  if (version === undefined || version === "ff" || (version === "00" && more !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  const state = fieldValues(fields, "tracestate").join(",");
  return {
    traceId,
    spanId,
    isSampled: (Number.parseInt(flags, 16) & SAMPLED) !== 0,
    state: state.length > MAX_STATE_CHARS ? "" : state,
  };
}

/** Replaces the parent in outgoing fields, in place; the trace state is kept. */
export function setTraceParent(fields: RawFields, traceId: string, spanId: string, keepsState: boolean): void {
  removeField(fields, "traceparent");
  if (!keepsState) removeField(fields, "tracestate");
  fields.push("traceparent", `00-${traceId}-${spanId}-01`);
}

const POOL_BYTES = 4096;
const pool = Buffer.alloc(POOL_BYTES);
let used = POOL_BYTES;

/** A random hexadecimal id of this size, never all zero. */
export function randomId(sizeBytes: 8 | 16): string {
  if (used + sizeBytes > POOL_BYTES) {
    randomFillSync(pool);
    used = 0;
  }
  const id = pool.toString("hex", used, used + sizeBytes);
  used += sizeBytes;
  return /^0+$/.test(id) ? randomId(sizeBytes) : id;
}
