import { Buffer } from "node:buffer";
import type { EnumType, FieldType, MessageType, Scalar, Schema } from "./schema.ts";
import { WELL_KNOWN_FORMS, type WellKnownForm, type Decoding, type JsonValue } from "./well-known-forms.ts";
import { fromZigzag, WIRE, WireCursor } from "./wire-cursor.ts";

export interface DecodeLimits {
  readonly maxDepth: number;
  /** Total number of values, list elements included. */
  readonly maxValues: number;
}

export const DECODE_LIMITS: DecodeLimits = { maxDepth: 100, maxValues: 100_000 };

/** A field unknown to the schema, with the path of its message. */
export interface UnknownField {
  /** `lines[0]`; empty at the top level. */
  readonly path: string;
  readonly number: number;
  readonly wireType: number;
}

export interface DecodedMessage {
  readonly json: JsonValue;
  /** Fields in the bytes but not in `json`, at most 100. */
  readonly unknown: readonly UnknownField[];
  /** Errors found; empty if none. */
  readonly issues: readonly string[];
}

const MAX_REPORTS = 100;

/**
 * Decodes a message to JSON by the proto3 JSON mapping: 64-bit numbers as strings, bytes in base64, enums by name,
 * well-known types in their own forms. Absent fields are omitted. Never fails: malformed input yields everything before
 * the first error.
 */
export function decodeMessage(
  schema: Schema,
  type: MessageType,
  bytes: Buffer,
  limits: DecodeLimits = DECODE_LIMITS,
): DecodedMessage {
  const decoder = new Decoder(schema, limits);
  const json = decoder.message(type, bytes, "", 0);
  return { json, unknown: decoder.unknown, issues: decoder.issues };
}

class Decoder implements Decoding {
  readonly unknown: UnknownField[] = [];
  readonly issues: string[] = [];
  readonly #schema: Schema;
  readonly #maxDepth: number;
  #leftValues: number;

  constructor(schema: Schema, limits: DecodeLimits) {
    this.#schema = schema;
    this.#maxDepth = limits.maxDepth;
    this.#leftValues = limits.maxValues;
  }

  typeNamed(name: string): MessageType | undefined {
    return this.#schema.messages.get(name);
  }

  report(path: string, issue: string): void {
    if (this.issues.length < MAX_REPORTS) this.issues.push(path === "" ? issue : `${path}: ${issue}`);
  }

  message(type: MessageType, bytes: Buffer, path: string, depth: number): JsonValue {
    if (depth > this.#maxDepth) {
      this.report(path, "nested too deep");
      return null;
    }
    const form = WELL_KNOWN_FORMS.get(type.name);
    return form === undefined ? this.#object(type, bytes, path, depth) : this.#formed(form, type, bytes, path, depth);
  }

  #formed(form: WellKnownForm, type: MessageType, bytes: Buffer, path: string, depth: number): JsonValue {
    return form.show(this.#object(type, bytes, path, depth), this, path, depth);
  }

  #object(type: MessageType, bytes: Buffer, path: string, depth: number): Record<string, JsonValue> {
    const object = emptyObject();
    // Repeated occurrences of a message field are merged, which equals concatenating their bytes.
    const parts = new Map<FieldType, Buffer[]>();
    const members = new Map<string, FieldType>();
    const cursor = new WireCursor(bytes);
    while (cursor.next()) {
      const field = type.fields.get(cursor.number);
      if (field === undefined) {
        this.#noteUnknown(path, cursor);
        continue;
      }
      if (!this.#spend(path)) return object;
      if (field.oneof !== undefined) this.#choose(object, field, members, parts);
      this.#add(object, field, cursor, parts, pathOf(path, field), depth);
    }
    if (cursor.isMalformed) this.report(path, `byte ${cursor.at} of ${type.name} begins no field`);
    for (const [field, pieces] of parts) {
      if (field.kind !== "message" && field.kind !== "group") continue;
      const whole = pieces.length === 1 ? (pieces[0] ?? bytes) : Buffer.concat(pieces);
      object[field.jsonName] = this.message(field.type, whole, pathOf(path, field), depth + 1);
    }
    return object;
  }

  /** The last member of a oneof on the wire wins. */
  #choose(
    object: Record<string, JsonValue>,
    field: FieldType,
    members: Map<string, FieldType>,
    parts: Map<FieldType, Buffer[]>,
  ): void {
    const before = members.get(field.oneof ?? "");
    members.set(field.oneof ?? "", field);
    if (before === undefined || before === field) return;
    delete object[before.jsonName];
    parts.delete(before);
  }

  #add(
    object: Record<string, JsonValue>,
    field: FieldType,
    cursor: WireCursor,
    parts: Map<FieldType, Buffer[]>,
    path: string,
    depth: number,
  ): void {
    if (field.kind === "message" || field.kind === "group") {
      if (cursor.wireType !== (field.kind === "group" ? WIRE.group : WIRE.bytes)) {
        this.report(path, `wire type ${cursor.wireType} is no ${field.kind}`);
      } else if (field.type.isMapEntry) this.#addEntry(object, field, field.type, cursor.value(), path, depth);
      else if (field.isRepeated) {
        const list = listOf(object, field);
        list.push(this.message(field.type, cursor.value(), `${path}[${list.length}]`, depth + 1));
      } else {
        const pieces = parts.get(field);
        if (pieces === undefined) {
          parts.set(field, [cursor.value()]);
          // Reserves the member's position.
          object[field.jsonName] = null;
        } else pieces.push(cursor.value());
      }
      return;
    }
    const kind = field.kind === "enum" ? "int32" : field.kind;
    this.#addSimple(object, field, kind, cursor, path);
  }

  #addSimple(
    object: Record<string, JsonValue>,
    field: FieldType,
    kind: Scalar,
    cursor: WireCursor,
    path: string,
  ): void {
    const show = (value: JsonValue): JsonValue => (field.kind === "enum" ? enumName(field.type, value) : value);
    const single = scalarJson(kind, cursor);
    if (single !== undefined) {
      if (field.isRepeated) listOf(object, field).push(show(single));
      else object[field.jsonName] = show(single);
      return;
    }
    if (cursor.wireType !== WIRE.bytes || kind === "string" || kind === "bytes") {
      this.report(path, `wire type ${cursor.wireType} is no ${field.kind}`);
      return;
    }
    this.#addPacked(object, field, kind, cursor, path, show);
  }

  #addPacked(
    object: Record<string, JsonValue>,
    field: FieldType,
    kind: Scalar,
    cursor: WireCursor,
    path: string,
    show: (value: JsonValue) => JsonValue,
  ): void {
    const packed = new PackedCursor(cursor, kind);
    while (packed.next()) {
      const value = scalarJson(kind, packed.cursor);
      if (value === undefined || !this.#spend(path)) return;
      if (field.isRepeated) listOf(object, field).push(show(value));
      else object[field.jsonName] = show(value);
    }
    if (packed.isMalformed) this.report(path, `the packed ${field.kind}s are cut`);
  }

  #addEntry(
    object: Record<string, JsonValue>,
    field: FieldType,
    type: MessageType,
    bytes: Buffer,
    path: string,
    depth: number,
  ): void {
    const entry = this.#object(type, bytes, path, depth + 1);
    const keyField = type.fields.get(1);
    const valueField = type.fields.get(2);
    const key = entry["key"] ?? (keyField === undefined ? "" : defaultJson(keyField));
    const found = object[field.jsonName];
    const map = isObject(found) ? found : emptyObject();
    map[typeof key === "string" ? key : JSON.stringify(key)] =
      entry["value"] ?? (valueField === undefined ? null : this.#defaultOf(valueField, path, depth));
    object[field.jsonName] = map;
  }

  #defaultOf(field: FieldType, path: string, depth: number): JsonValue {
    if (field.kind !== "message" && field.kind !== "group") return defaultJson(field);
    return this.message(field.type, Buffer.alloc(0), path, depth + 1);
  }

  #spend(path: string): boolean {
    if (this.#leftValues === 0) this.report(path, "more values than are shown");
    this.#leftValues -= 1;
    return this.#leftValues >= 0;
  }

  #noteUnknown(path: string, { number, wireType }: WireCursor): void {
    if (this.unknown.length < MAX_REPORTS) this.unknown.push({ path, number, wireType });
  }
}

/** Iterates over packed numbers as if each were a field. */
class PackedCursor {
  readonly cursor: WireCursor;
  readonly #sizeBytes: number;

  constructor(field: WireCursor, kind: string) {
    this.cursor = new WireCursor(field.bytes, field.valueFrom, field.valueTo);
    this.#sizeBytes =
      kind.endsWith("fixed64") || kind === "double" ? 8 : kind.endsWith("fixed32") || kind === "float" ? 4 : 0;
    this.cursor.wireType = this.#sizeBytes === 8 ? WIRE.fixed64 : this.#sizeBytes === 4 ? WIRE.fixed32 : WIRE.varint;
  }

  get isMalformed(): boolean {
    return this.cursor.isMalformed;
  }

  next(): boolean {
    const { cursor } = this;
    if (this.#sizeBytes === 0) return cursor.nextVarint();
    if (cursor.at >= cursor.end) return false;
    if (cursor.end - cursor.at < this.#sizeBytes) {
      cursor.isMalformed = true;
      return false;
    }
    cursor.valueFrom = cursor.at;
    cursor.at += this.#sizeBytes;
    cursor.valueTo = cursor.at;
    return true;
  }
}

function pathOf(path: string, field: FieldType): string {
  return path === "" ? field.jsonName : `${path}.${field.jsonName}`;
}

function listOf(object: Record<string, JsonValue>, field: FieldType): JsonValue[] {
  const found = object[field.jsonName];
  if (Array.isArray(found)) return found;
  const list: JsonValue[] = [];
  object[field.jsonName] = list;
  return list;
}

function defaultJson(field: FieldType): JsonValue {
  switch (field.kind) {
    case "enum":
      return field.type.values[0]?.[0] ?? 0;
    case "string":
    case "bytes":
      return "";
    case "bool":
      return false;
    case "int64":
    case "uint64":
    case "sint64":
    case "fixed64":
    case "sfixed64":
      return "0";
    default:
      return 0;
  }
}

/** The first name of a number; the number itself without one. */
function enumName(type: EnumType, value: JsonValue): JsonValue {
  if (type.name === "google.protobuf.NullValue") return null;
  let names = enumNames.get(type);
  if (names === undefined) {
    names = new Map(type.values.toReversed().map(([name, number]) => [number, name]));
    enumNames.set(type, names);
  }
  return (typeof value === "number" ? names.get(value) : undefined) ?? value;
}

/** Built on first use: searching large enums linearly for each value would be slow. */
const enumNames = new WeakMap<EnumType, Map<number, string>>();

/** Without a prototype, since `__proto__` and `constructor` are valid field names. */
function emptyObject(): Record<string, JsonValue> {
  return Object.create(null) as Record<string, JsonValue>;
}

export function isObject(value: unknown): value is Record<string, JsonValue> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The current value as JSON; undefined if its wire type does not match. */
function scalarJson(kind: Scalar, cursor: WireCursor): string | number | boolean | undefined {
  switch (kind) {
    case "int32":
    case "int64":
    case "uint32":
    case "uint64":
    case "sint32":
    case "sint64":
    case "bool":
      return cursor.wireType === WIRE.varint ? varintJson(kind, cursor.varint) : undefined;
    case "string":
      return cursor.wireType === WIRE.bytes ? cursor.value().toString("utf8") : undefined;
    case "bytes":
      return cursor.wireType === WIRE.bytes ? cursor.value().toString("base64") : undefined;
    case "double":
    case "fixed64":
    case "sfixed64":
      return cursor.wireType === WIRE.fixed64 ? fixed64Json(kind, cursor) : undefined;
    case "float":
    case "fixed32":
    case "sfixed32":
      return cursor.wireType === WIRE.fixed32 ? fixed32Json(kind, cursor) : undefined;
  }
}

function varintJson(kind: Scalar, value: bigint): string | number | boolean {
  switch (kind) {
    case "int32":
      return Number(BigInt.asIntN(32, value));
    case "uint32":
      return Number(BigInt.asUintN(32, value));
    case "sint32":
      return Number(fromZigzag(BigInt.asUintN(32, value)));
    case "sint64":
      return String(fromZigzag(value));
    case "int64":
      return String(BigInt.asIntN(64, value));
    case "bool":
      return value !== 0n;
    default:
      return String(value);
  }
}

function fixed64Json(kind: "double" | "fixed64" | "sfixed64", { bytes, valueFrom }: WireCursor): string | number {
  if (kind === "double") return floatJson(bytes.readDoubleLE(valueFrom));
  return String(kind === "fixed64" ? bytes.readBigUInt64LE(valueFrom) : bytes.readBigInt64LE(valueFrom));
}

function fixed32Json(kind: "float" | "fixed32" | "sfixed32", { bytes, valueFrom }: WireCursor): string | number {
  if (kind === "float") return shortFloat(bytes.readFloatLE(valueFrom));
  return kind === "fixed32" ? bytes.readUInt32LE(valueFrom) : bytes.readInt32LE(valueFrom);
}

function floatJson(value: number): string | number {
  return Number.isFinite(value) ? value : Number.isNaN(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

/** The shortest decimal that equals the 32-bit number: 0.1, not 0.10000000149011612. */
function shortFloat(value: number): string | number {
  if (!Number.isFinite(value)) return floatJson(value);
  for (let digits = 6; digits < 9; digits += 1) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return value;
}
