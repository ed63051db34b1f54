import type { Buffer } from "node:buffer";
import type { FieldType, MessageType } from "./schema.ts";
import { WIRE, WireCursor } from "./wire-cursor.ts";

/** A value, or a guess at it. Numbers beyond JSON's range are decimal strings. */
export type WireValue =
  | { readonly type: "varint"; readonly value: string }
  | { readonly type: "fixed64"; readonly value: string }
  | { readonly type: "fixed32"; readonly value: string }
  | { readonly type: "string"; readonly value: string }
  /** Base64. */
  | { readonly type: "bytes"; readonly value: string }
  /** Packed numbers: base64, and their values if they are varints. */
  | { readonly type: "lengthdelimited"; readonly value: string; readonly packed: readonly string[] }
  | { readonly type: "nested" | "group"; readonly value: readonly WireField[] };

export interface WireField {
  readonly number: number;
  readonly wire_type: number;
  /** From the schema; null for an unknown number. */
  readonly name: string | null;
  readonly value: WireValue;
}

export interface WalkLimits {
  readonly maxDepth: number;
  /** Total number of fields and packed numbers. */
  readonly maxFields: number;
  /** Total bytes of texts and byte strings; the rest is truncated. */
  readonly maxValueBytes: number;
}

export const WALK_LIMITS: WalkLimits = { maxDepth: 32, maxFields: 10_000, maxValueBytes: 1_048_576 };

export interface Walked {
  readonly fields: readonly WireField[];
  /** `malformed`: the bytes are no message, as detected at `offset`; `limit`: a limit was exceeded. */
  readonly stop: { readonly reason: "malformed" | "limit"; readonly offset: number } | undefined;
}

/**
 * Lists the fields of a message. Names and types come from `type`; for unknown fields, and without `type`,
 * length-delimited values are guessed: text, a message, packed numbers or bytes.
 */
export function walkFields(bytes: Buffer, type?: MessageType, limits: WalkLimits = WALK_LIMITS): Walked {
  const walk: Walk = { leftFields: limits.maxFields, leftBytes: limits.maxValueBytes, isFinished: false };
  const cursor = new WireCursor(bytes);
  const fields = fieldsOf(cursor, type, walk, limits.maxDepth);
  if (cursor.isMalformed) return { fields, stop: { reason: "malformed", offset: cursor.at } };
  return { fields, stop: walk.isFinished ? { reason: "limit", offset: cursor.at } : undefined };
}

interface Walk {
  leftFields: number;
  leftBytes: number;
  isFinished: boolean;
}

function fieldsOf(cursor: WireCursor, type: MessageType | undefined, walk: Walk, depth: number): WireField[] {
  const fields: WireField[] = [];
  while (cursor.next()) {
    if (walk.leftFields === 0) {
      walk.isFinished = true;
      break;
    }
    walk.leftFields -= 1;
    const known = type?.fields.get(cursor.number);
    const { number, wireType } = cursor;
    fields.push({ number, wire_type: wireType, name: known?.name ?? null, value: valueOf(cursor, known, walk, depth) });
  }
  return fields;
}

function valueOf(cursor: WireCursor, known: FieldType | undefined, walk: Walk, depth: number): WireValue {
  const value = cursor.value();
  switch (cursor.wireType) {
    case WIRE.varint:
      return { type: "varint", value: String(cursor.varint) };
    case WIRE.fixed64:
      return { type: "fixed64", value: String(value.readBigUInt64LE(0)) };
    case WIRE.fixed32:
      return { type: "fixed32", value: String(value.readUInt32LE(0)) };
    case WIRE.group:
      if (depth === 0) return asBytes(value, walk);
      return { type: "group", value: fieldsOf(new WireCursor(value), messageOf(known), walk, depth - 1) };
    default:
      return known === undefined ? guess(value, walk, depth) : declared(value, known, walk, depth);
  }
}

function messageOf(field: FieldType | undefined): MessageType | undefined {
  return field?.kind === "message" || field?.kind === "group" ? field.type : undefined;
}

function declared(value: Buffer, field: FieldType, walk: Walk, depth: number): WireValue {
  if (field.kind === "string") return asText(value, walk);
  if (field.kind === "bytes") return asBytes(value, walk);
  if (field.kind === "message" && depth > 0) {
    const cursor = new WireCursor(value);
    const fields = fieldsOf(cursor, field.type, walk, depth - 1);
    return cursor.isMalformed ? asBytes(value, walk) : { type: "nested", value: fields };
  }
  if (field.kind === "message" || field.kind === "group") return asBytes(value, walk);
  return asPacked(value, walk);
}

/** Control characters that do not occur in written text. */
const UNPRINTABLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/u;
const LINE_FEED = 0x0a;
const strictText = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function guess(value: Buffer, walk: Walk, depth: number): WireValue {
  if (value.length === 0) return { type: "string", value: "" };
  const looksNested = depth > 0 && isMessage(value);
  // Short texts often parse as messages. A leading line feed is the usual tag of field 1 and a rare start of text.
  if (!(looksNested && value[0] === LINE_FEED) && isText(value)) return asText(value, walk);
  if (looksNested) return { type: "nested", value: fieldsOf(new WireCursor(value), undefined, walk, depth - 1) };
  return looksPacked(value) ? asPacked(value, walk) : asBytes(value, walk);
}

function isText(value: Buffer): boolean {
  try {
    return !UNPRINTABLE.test(strictText.decode(value));
  } catch {
    return false;
  }
}

/** Field numbers reserved for the implementation, which valid messages do not use. */
const RESERVED_FROM = 19_000;
const RESERVED_TO = 19_999;

function isMessage(value: Buffer): boolean {
  const cursor = new WireCursor(value);
  while (cursor.next()) if (cursor.number >= RESERVED_FROM && cursor.number <= RESERVED_TO) return false;
  return !cursor.isMalformed;
}

/** Larger numbers are rare in packed fields, and allowing them would match half of all byte strings. */
const MAX_LIKELY = 0xff_ffffn;
const MAX_LIKELY_BYTES = 65_536;

function looksPacked(value: Buffer): boolean {
  if (value.length > MAX_LIKELY_BYTES) return false;
  const cursor = new WireCursor(value);
  let count = 0;
  for (let from = 0; cursor.nextVarint(); from = cursor.at) {
    // Encoders never write overlong varints.
    const isLonger = cursor.at - from > 1 && value[cursor.at - 1] === 0;
    if (isLonger || cursor.varint > MAX_LIKELY) return false;
    count += 1;
  }
  return !cursor.isMalformed && count > 1;
}

function asPacked(value: Buffer, walk: Walk): WireValue {
  const packed: string[] = [];
  const cursor = new WireCursor(value);
  while (walk.leftFields > 0 && cursor.nextVarint()) {
    packed.push(String(cursor.varint));
    walk.leftFields -= 1;
  }
  if (cursor.at < cursor.end && !cursor.isMalformed) walk.isFinished = true;
  return { type: "lengthdelimited", value: take(value, walk).toString("base64"), packed };
}

function asText(value: Buffer, walk: Walk): WireValue {
  return { type: "string", value: take(value, walk).toString("utf8") };
}

function asBytes(value: Buffer, walk: Walk): WireValue {
  return { type: "bytes", value: take(value, walk).toString("base64") };
}

function take(value: Buffer, walk: Walk): Buffer {
  const taken = value.subarray(0, walk.leftBytes);
  walk.leftBytes -= taken.length;
  if (taken.length < value.length) walk.isFinished = true;
  return taken;
}
