import { Buffer } from "node:buffer";
import { isObject } from "./decode.ts";
import type { JsonValue } from "./well-known-forms.ts";
import type { FieldType, MessageType, Scalar, Schema } from "./schema.ts";
import { ANY_NAME, WELL_KNOWN_FORMS } from "./well-known-forms.ts";
import { WIRE } from "./wire-cursor.ts";

class WireWriter {
  readonly #pieces: Uint8Array[] = [];

  tag(number: number, wireType: number): void {
    this.varint(BigInt(number) * 8n + BigInt(wireType));
  }

  /** The lowest 64 bits of the value. */
  varint(value: bigint): void {
    let rest = BigInt.asUintN(64, value);
    const octets: number[] = [];
    while (rest > 0x7fn) {
      octets.push(Number(rest & 0x7fn) | 0x80);
      rest >>= 7n;
    }
    octets.push(Number(rest));
    this.#pieces.push(Uint8Array.from(octets));
  }

  raw(bytes: Uint8Array): void {
    this.#pieces.push(bytes);
  }

  /** Length-prefixed. */
  bytes(bytes: Uint8Array): void {
    this.varint(BigInt(bytes.length));
    this.#pieces.push(bytes);
  }

  finish(): Buffer {
    return Buffer.concat(this.#pieces);
  }
}

/** The JSON does not match the type; the message contains the path. */
export class EncodeError extends Error {
  override readonly name = "EncodeError";
}

const DEEPEST = 100;

/** Encodes JSON to a message, by JSON or original names; null omits a field. Throws EncodeError. */
export function encodeMessage(schema: Schema, type: MessageType, json: JsonValue): Buffer {
  return encode(schema, type, json, "", 0);
}

function encode(schema: Schema, type: MessageType, json: JsonValue, path: string, depth: number): Buffer {
  if (depth > DEEPEST) throw new EncodeError(`${path}: nested too deep`);
  if (type.name === ANY_NAME) return encodeAny(schema, json, path, depth);
  const form = WELL_KNOWN_FORMS.get(type.name);
  const object = form === undefined ? json : form.parse(json);
  if (!isObject(object)) throw new EncodeError(`${path || type.name}: is no ${type.name}`);
  const names = fieldsByName(type);
  const writer = new WireWriter();
  for (const [name, value] of Object.entries(object)) {
    const field = names.get(name);
    const at = path === "" ? name : `${path}.${name}`;
    if (field === undefined) throw new EncodeError(`${at}: ${type.name} has no such field`);
    if (value === null && !takesNull(field)) continue;
    writeField(writer, schema, field, value, at, depth);
  }
  return writer.finish();
}

function fieldsByName(type: MessageType): ReadonlyMap<string, FieldType> {
  const names = new Map<string, FieldType>();
  for (const field of type.fields.values()) names.set(field.name, field);
  for (const field of type.fields.values()) names.set(field.jsonName, field);
  return names;
}

function takesNull(field: FieldType): boolean {
  return field.kind === "message" && field.type.name === "google.protobuf.Value";
}

function encodeAny(schema: Schema, json: JsonValue, path: string, depth: number): Buffer {
  const typeUrl = isObject(json) ? json["@type"] : undefined;
  if (!isObject(json) || typeof typeUrl !== "string") throw new EncodeError(`${path}: Any needs "@type"`);
  const type = schema.messages.get(typeUrl.slice(typeUrl.lastIndexOf("/") + 1));
  const { "@type": _, ...rest } = json;
  const writer = new WireWriter();
  writer.tag(1, WIRE.bytes);
  writer.bytes(Buffer.from(typeUrl));
  writer.tag(2, WIRE.bytes);
  if (type === undefined) writer.bytes(scalarBytes("bytes", rest["value"] ?? "", path));
  else {
    const inner = WELL_KNOWN_FORMS.has(type.name) ? (rest["value"] ?? null) : rest;
    writer.bytes(encode(schema, type, inner, path, depth + 1));
  }
  return writer.finish();
}

function writeField(
  writer: WireWriter,
  schema: Schema,
  field: FieldType,
  value: JsonValue,
  path: string,
  depth: number,
): void {
  if (field.kind === "message" && field.type.isMapEntry) {
    if (!isObject(value)) throw new EncodeError(`${path}: is no object`);
    for (const [key, item] of Object.entries(value)) {
      writer.tag(field.number, WIRE.bytes);
      writer.bytes(encode(schema, field.type, { key, value: item }, `${path}.${key}`, depth + 1));
    }
    return;
  }
  if (!field.isRepeated) return writeOne(writer, schema, field, value, path, depth);
  if (!Array.isArray(value)) throw new EncodeError(`${path}: is no array`);
  if (!field.isPacked || field.kind === "message" || field.kind === "group" || wireTypeOf(field) === WIRE.bytes) {
    for (const [at, item] of value.entries()) writeOne(writer, schema, field, item, `${path}[${at}]`, depth);
    return;
  }
  const packed = new WireWriter();
  for (const [at, item] of value.entries()) packed.raw(simpleBytes(field, item, `${path}[${at}]`));
  writer.tag(field.number, WIRE.bytes);
  writer.bytes(packed.finish());
}

function writeOne(
  writer: WireWriter,
  schema: Schema,
  field: FieldType,
  value: JsonValue,
  path: string,
  depth: number,
): void {
  if (field.kind === "group") {
    writer.tag(field.number, WIRE.group);
    writer.raw(encode(schema, field.type, value, path, depth + 1));
    return writer.tag(field.number, WIRE.groupEnd);
  }
  const wireType = wireTypeOf(field);
  writer.tag(field.number, wireType);
  if (field.kind === "message") writer.bytes(encode(schema, field.type, value, path, depth + 1));
  else if (wireType === WIRE.bytes) writer.bytes(simpleBytes(field, value, path));
  else writer.raw(simpleBytes(field, value, path));
}

function wireTypeOf({ kind }: FieldType): number {
  if (kind === "message" || kind === "string" || kind === "bytes") return WIRE.bytes;
  if (kind === "double" || kind === "fixed64" || kind === "sfixed64") return WIRE.fixed64;
  if (kind === "float" || kind === "fixed32" || kind === "sfixed32") return WIRE.fixed32;
  return WIRE.varint;
}

function simpleBytes(field: FieldType, value: JsonValue, path: string): Buffer {
  if (field.kind === "message" || field.kind === "group") throw new EncodeError(`${path}: is no scalar`);
  if (field.kind !== "enum") return scalarBytes(field.kind, value, path);
  const named = typeof value === "string" ? field.type.values.find(([name]) => name === value)?.[1] : undefined;
  if (typeof value === "string" && named === undefined && !/^-?\d+$/u.test(value)) {
    throw new EncodeError(`${path}: ${field.type.name} has no value ${value}`);
  }
  return scalarBytes("int32", named ?? value, path);
}

type Range = readonly [min: bigint, max: bigint];
const INT32: Range = [-(2n ** 31n), 2n ** 31n - 1n];
const UINT32: Range = [0n, 2n ** 32n - 1n];
const INT64: Range = [-(2n ** 63n), 2n ** 63n - 1n];
const UINT64: Range = [0n, 2n ** 64n - 1n];

function scalarBytes(kind: Scalar, value: JsonValue, path: string): Buffer {
  switch (kind) {
    case "string":
      if (typeof value !== "string") throw new EncodeError(`${path}: is no text`);
      return Buffer.from(value);
    case "bytes":
      if (typeof value !== "string" || !/^[A-Za-z0-9+/_-]*={0,2}$/u.test(value)) {
        throw new EncodeError(`${path}: is no base64`);
      }
      return Buffer.from(value, "base64");
    case "bool":
      return varint(truth(value, path) ? 1n : 0n);
    case "double":
    case "float":
      return floating(kind, value, path);
    case "int32":
      return varint(whole(value, INT32, path));
    case "uint32":
      return varint(whole(value, UINT32, path));
    case "int64":
      return varint(whole(value, INT64, path));
    case "uint64":
      return varint(whole(value, UINT64, path));
    case "sint32":
      return varint(BigInt.asUintN(32, toZigzag(whole(value, INT32, path), 31n)));
    case "sint64":
      return varint(toZigzag(whole(value, INT64, path), 63n));
    default:
      return fixed(kind, value, path);
  }
}

function varint(value: bigint): Buffer {
  const writer = new WireWriter();
  writer.varint(value);
  return writer.finish();
}

function toZigzag(value: bigint, signBit: bigint): bigint {
  return (value << 1n) ^ (value >> signBit);
}

function fixed(kind: "fixed32" | "sfixed32" | "fixed64" | "sfixed64", value: JsonValue, path: string): Buffer {
  const bytes = Buffer.alloc(kind.endsWith("32") ? 4 : 8);
  if (kind === "fixed32") bytes.writeUInt32LE(Number(whole(value, UINT32, path)));
  else if (kind === "sfixed32") bytes.writeInt32LE(Number(whole(value, INT32, path)));
  else if (kind === "fixed64") bytes.writeBigUInt64LE(whole(value, UINT64, path));
  else bytes.writeBigInt64LE(whole(value, INT64, path));
  return bytes;
}

function floating(kind: "float" | "double", value: JsonValue, path: string): Buffer {
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  if (typeof number !== "number" || (Number.isNaN(number) && value !== "NaN")) {
    throw new EncodeError(`${path}: is no number`);
  }
  const bytes = Buffer.alloc(kind === "float" ? 4 : 8);
  if (kind === "float") bytes.writeFloatLE(number);
  else bytes.writeDoubleLE(number);
  return bytes;
}

/** Map keys are strings in JSON, booleans included. */
function truth(value: JsonValue, path: string): boolean {
  if (value === true || value === "true") return true;
  if (value === false || value === "false") return false;
  throw new EncodeError(`${path}: is neither true nor false`);
}

function whole(value: JsonValue, [min, max]: Range, path: string): bigint {
  const isWhole =
    typeof value === "number" ? Number.isInteger(value) : typeof value === "string" && /^-?\d{1,20}$/u.test(value);
  if (!isWhole) throw new EncodeError(`${path}: is no whole number`);
  const number = BigInt(value as string | number);
  if (number < min || number > max) throw new EncodeError(`${path}: is out of range`);
  return number;
}
