import { randomFillSync } from "node:crypto";
import { fieldValues, removeField, type RawFields } from "@headworks/http1";

/** Where a request is in a trace that somebody else began (W3C Trace Context, level 1). */
export interface TraceParent {
  /** 32 and 16 hexadecimal digits in lower case. */
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
  /** What others note in it, as it came; handed on and never read. */
  readonly state: string;
}

const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const SAMPLED = 0x01;
/** What the standard asks everybody to hand on. */
const MAX_STATE_CHARS = 512;

/** The parent that a request names; undefined for none, for several, and for one that is not written as it must be. */
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

/** Names another parent in fields on their way out, in place; the state is that of the trace it belongs to. */
export function setTraceParent(fields: RawFields, traceId: string, spanId: string, keepsState: boolean): void {
  removeField(fields, "traceparent");
  if (!keepsState) removeField(fields, "tracestate");
  fields.push("traceparent", `00-${traceId}-${spanId}-01`);
}

const POOL_BYTES = 4096;
const pool = Buffer.alloc(POOL_BYTES);
let used = POOL_BYTES;

/** A random id of so many bytes, in hexadecimal digits, never all zero. */
export function randomId(sizeBytes: 8 | 16): string {
  if (used + sizeBytes > POOL_BYTES) {
    randomFillSync(pool);
    used = 0;
  }
  const id = pool.toString("hex", used, used + sizeBytes);
  used += sizeBytes;
  return /^0+$/.test(id) ? randomId(sizeBytes) : id;
}
