import { Buffer } from "node:buffer";
import type { MessageType } from "./schema.ts";

/** A JSON value. Objects have no prototype, so that any field name is safe. */
export type JsonValue = string | number | boolean | null | JsonValue[] | { [name: string]: JsonValue };

/** The decoder, for nested messages of well-known types. */
export interface Decoding {
  message(type: MessageType, bytes: Buffer, path: string, depth: number): JsonValue;
  typeNamed(name: string): MessageType | undefined;
  report(path: string, issue: string): void;
}

export interface WellKnownForm {
  /** Converts the object of fields; messages without a form of their own are returned unchanged. */
  show(object: Record<string, JsonValue>, decoding: Decoding, path: string, depth: number): JsonValue;
  /** Converts back to the object of fields; undefined if the JSON has another form. */
  parse(json: JsonValue): JsonValue | undefined;
}

/** `google.protobuf.Any` cannot be parsed without a schema. */
export const ANY_NAME = "google.protobuf.Any";
const MIN_S = -62_135_596_800;
const MAX_S = 253_402_300_799;
const MAX_DURATION_S = 315_576_000_000;
const NANOS = 1_000_000_000;

function textOf(json: JsonValue | undefined): string {
  return typeof json === "string" ? json : "";
}

/** A fraction of a second with 0, 3, 6 or 9 digits. */
function fraction(nanos: number): string {
  if (nanos === 0) return "";
  const digits = String(nanos).padStart(9, "0");
  return `.${digits.endsWith("000000") ? digits.slice(0, 3) : digits.endsWith("000") ? digits.slice(0, 6) : digits}`;
}

function secondsAndNanos(object: Record<string, JsonValue>): { readonly seconds: number; readonly nanos: number } {
  return { seconds: Number(object["seconds"] ?? 0), nanos: Number(object["nanos"] ?? 0) };
}

const timestamp: WellKnownForm = {
  show(object, decoding, path) {
    const { seconds, nanos } = secondsAndNanos(object);
    if (seconds < MIN_S || seconds > MAX_S || nanos < 0 || nanos >= NANOS) {
      decoding.report(path, "is no time between the years 1 and 9999");
      return object;
    }
    return `${new Date(seconds * 1000).toISOString().slice(0, 19)}${fraction(nanos)}Z`;
  },
  parse(json) {
    if (typeof json !== "string") return undefined;
    const match = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:\d{2})$/iu.exec(json);
    const atMs = Date.parse(`${match?.[1] ?? ""}${match?.[3] ?? ""}`);
    if (match === null || Number.isNaN(atMs)) return undefined;
    return { seconds: String(atMs / 1000), nanos: Number((match[2] ?? "").padEnd(9, "0")) };
  },
};

const duration: WellKnownForm = {
  show(object, decoding, path) {
    const { seconds, nanos } = secondsAndNanos(object);
    if (Math.abs(seconds) > MAX_DURATION_S || Math.abs(nanos) >= NANOS || seconds * nanos < 0) {
      decoding.report(path, "is no duration of at most 10,000 years");
      return object;
    }
    return `${seconds < 0 || nanos < 0 ? "-" : ""}${Math.abs(seconds)}${fraction(Math.abs(nanos))}s`;
  },
  parse(json) {
    const match = typeof json === "string" ? /^(-?)(\d{1,12})(?:\.(\d{1,9}))?s$/u.exec(json) : null;
    if (match === null) return undefined;
    const nanos = Number((match[3] ?? "").padEnd(9, "0"));
    return match[1] === "-"
      ? { seconds: `-${match[2]}`, nanos: nanos === 0 ? 0 : -nanos }
      : { seconds: match[2] ?? "0", nanos };
  },
};

const fieldMask: WellKnownForm = {
  show(object) {
    const paths = object["paths"];
    return Array.isArray(paths) ? paths.map((path) => camelPath(textOf(path))).join(",") : "";
  },
  parse(json) {
    if (typeof json !== "string") return undefined;
    if (json === "") return { paths: [] };
    return { paths: json.split(",").map((path) => path.replaceAll(/[A-Z]/gu, (letter) => `_${letter.toLowerCase()}`)) };
  },
};

function camelPath(path: string): string {
  return path.replaceAll(/_([a-z])/gu, (_, letter: string) => letter.toUpperCase());
}

/** The only field of a message, unwrapped. */
function single(name: string, missing: JsonValue): WellKnownForm {
  return { show: (object) => object[name] ?? missing, parse: (json) => ({ [name]: json }) };
}

const struct: WellKnownForm = {
  show: (object) => object["fields"] ?? {},
  parse: (json) => (typeof json === "object" && json !== null && !Array.isArray(json) ? { fields: json } : undefined),
};

const list: WellKnownForm = {
  show: (object) => object["values"] ?? [],
  parse: (json) => (Array.isArray(json) ? { values: json } : undefined),
};

const VALUE_NAMES = ["numberValue", "stringValue", "boolValue", "structValue", "listValue"];

const value: WellKnownForm = {
  show(object) {
    for (const name of VALUE_NAMES) if (object[name] !== undefined) return object[name];
    return null;
  },
  parse(json) {
    if (json === null) return { nullValue: 0 };
    switch (typeof json) {
      case "number":
        return { numberValue: json };
      case "string":
        return { stringValue: json };
      case "boolean":
        return { boolValue: json };
      default:
        return Array.isArray(json) ? { listValue: json } : { structValue: json };
    }
  },
};

const any: WellKnownForm = {
  show(object, decoding, path, depth) {
    const typeUrl = textOf(object["typeUrl"]);
    const bytes = textOf(object["value"]);
    const type = decoding.typeNamed(typeUrl.slice(typeUrl.lastIndexOf("/") + 1));
    if (type === undefined) return { "@type": typeUrl, value: bytes };
    const inner = decoding.message(type, Buffer.from(bytes, "base64"), path, depth + 1);
    if (WELL_KNOWN_FORMS.has(type.name) || typeof inner !== "object" || inner === null || Array.isArray(inner)) {
      return { "@type": typeUrl, value: inner };
    }
    return Object.assign(Object.create(null) as Record<string, JsonValue>, { "@type": typeUrl }, inner);
  },
  parse: () => undefined,
};

/** Well-known types by full name. */
export const WELL_KNOWN_FORMS: ReadonlyMap<string, WellKnownForm> = new Map<string, WellKnownForm>([
  [ANY_NAME, any],
  ["google.protobuf.Timestamp", timestamp],
  ["google.protobuf.Duration", duration],
  ["google.protobuf.FieldMask", fieldMask],
  ["google.protobuf.Struct", struct],
  ["google.protobuf.ListValue", list],
  ["google.protobuf.Value", value],
  ["google.protobuf.DoubleValue", single("value", 0)],
  ["google.protobuf.FloatValue", single("value", 0)],
  ["google.protobuf.Int64Value", single("value", "0")],
  ["google.protobuf.UInt64Value", single("value", "0")],
  ["google.protobuf.Int32Value", single("value", 0)],
  ["google.protobuf.UInt32Value", single("value", 0)],
  ["google.protobuf.BoolValue", single("value", false)],
  ["google.protobuf.StringValue", single("value", "")],
  ["google.protobuf.BytesValue", single("value", "")],
]);
