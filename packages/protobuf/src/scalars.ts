import type { Scalar } from "./schema.ts";
import { fromZigzag, WIRE, type WireCursor } from "./wire-cursor.ts";

/** The value that a cursor stands on as JSON; undefined when its wire type is not that of the kind. */
export function scalarJson(kind: Scalar, cursor: WireCursor): string | number | boolean | undefined {
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

/** The shortest decimal that is the same 32-bit number: 0.1, not 0.10000000149011612. */
function shortFloat(value: number): string | number {
  if (!Number.isFinite(value)) return floatJson(value);
  for (let digits = 6; digits < 9; digits += 1) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return short;
  }
  return value;
}
