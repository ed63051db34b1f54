import type { Framing, RawFields } from "./message.ts";

/** Case-insensitive comparison. */
function isName(name: string, lowerName: string): boolean {
  return name.length === lowerName.length && (name === lowerName || name.toLowerCase() === lowerName);
}

/** Value of the first field named `lowerName`, or undefined. */
export function fieldValue(fields: Readonly<RawFields>, lowerName: string): string | undefined {
  for (let at = 0; at < fields.length; at += 2) {
    if (isName(fields[at] ?? "", lowerName)) return fields[at + 1];
  }
  return undefined;
}

/** Values of all fields named `lowerName`, in order; not split at commas. */
export function fieldValues(fields: Readonly<RawFields>, lowerName: string): string[] {
  const values: string[] = [];
  for (let at = 0; at < fields.length; at += 2) {
    if (isName(fields[at] ?? "", lowerName)) values.push(fields[at + 1] ?? "");
  }
  return values;
}

/** Whether a field named `lowerName` exists. */
export function hasField(fields: Readonly<RawFields>, lowerName: string): boolean {
  return fieldValue(fields, lowerName) !== undefined;
}

/** Whether both have the same names (case-sensitive) and values in the same order. */
export function areSameFields(fields: Readonly<RawFields>, others: Readonly<RawFields>): boolean {
  if (fields.length !== others.length) return false;
  for (let at = 0; at < fields.length; at++) if (fields[at] !== others[at]) return false;
  return true;
}

/**
 * Sets `name` to exactly one value, in place: at the position of the first occurrence (taking over the spelling
 * `name`), otherwise at the end. Repeats are removed.
 */
export function setField(fields: RawFields, name: string, value: string): void {
  const lowerName = name.toLowerCase();
  let kept = 0;
  let isSet = false;
  for (let at = 0; at < fields.length; at += 2) {
    const present = fields[at] ?? "";
    const isSame = isName(present, lowerName);
    if (isSame && isSet) continue;
    fields[kept] = isSame ? name : present;
    fields[kept + 1] = isSame ? value : (fields[at + 1] ?? "");
    isSet ||= isSame;
    kept += 2;
  }
  fields.length = kept;
  if (!isSet) fields.push(name, value);
}

/** Removes all fields named `lowerName`, in place; returns whether there were any. */
export function removeField(fields: RawFields, lowerName: string): boolean {
  let kept = 0;
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    if (isName(name, lowerName)) continue;
    fields[kept] = name;
    fields[kept + 1] = fields[at + 1] ?? "";
    kept += 2;
  }
  const found = kept < fields.length;
  fields.length = kept;
  return found;
}

/** The lower-cased options of all Connection fields (RFC 9110 section 7.6.1), without empty members. */
export function connectionOptions(fields: Readonly<RawFields>): string[] {
  const options: string[] = [];
  for (let at = 0; at < fields.length; at += 2) {
    if (!isName(fields[at] ?? "", "connection")) continue;
    for (const part of (fields[at + 1] ?? "").toLowerCase().split(",")) {
      const option = part.trim();
      if (option !== "") options.push(option);
    }
  }
  return options;
}

const HOP_BY_HOP: readonly string[] = ["connection", "keep-alive", "te", "trailer", "upgrade"];
const NEVER_BY_CONNECTION = new Set([
  "authorization",
  "content-length",
  "cookie",
  "forwarded",
  "host",
  "set-cookie",
  "transfer-encoding",
]);

export interface HopByHopOptions {
  /** Hop-by-hop fields to keep, in lower case, for example `te` or `trailer` if trailers are forwarded. */
  readonly keep?: ReadonlySet<string>;
}

/**
 * A copy without hop-by-hop fields: Connection and the fields it names, Keep-Alive, Proxy-*, TE, Trailer, Upgrade (RFC
 * 9110 section 7.6.1). Connection can never remove Host, Content-Length, Transfer-Encoding, Authorization, cookies,
 * Forwarded or X-Forwarded-*, since a client could use that to strip fields a proxy relies on. Framing fields stay;
 * see `setFraming`.
 */
export function withoutHopByHop(fields: Readonly<RawFields>, { keep }: HopByHopOptions = {}): RawFields {
  const options = connectionOptions(fields);
  // Both lists can be long.
  const named = options.length === 0 ? undefined : new Set(options);
  const kept: RawFields = [];
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    const isFixed = isHopByHop(name);
    if (isFixed && keep?.has(name.toLowerCase()) !== true) continue;
    if (!isFixed && named !== undefined && isNamed(named, name.toLowerCase())) continue;
    kept.push(name, fields[at + 1] ?? "");
  }
  return kept;
}

const LOWER_P = 0x70;

/** Compares before it creates a string: most names do not match. */
function isHopByHop(name: string): boolean {
  for (const lowerName of HOP_BY_HOP) if (isName(name, lowerName)) return true;
  return (name.charCodeAt(0) | 0x20) === LOWER_P && name.toLowerCase().startsWith("proxy-");
}

function isNamed(connectionOptionNames: ReadonlySet<string>, lowerName: string): boolean {
  return connectionOptionNames.has(lowerName) && !isProtected(lowerName);
}

function isProtected(lowerName: string): boolean {
  return NEVER_BY_CONNECTION.has(lowerName) || lowerName.startsWith("x-forwarded-");
}

/**
 * Replaces the framing fields according to `framing`, in place: forwarded messages are framed as they were parsed.
 * `none` keeps one Content-Length, which describes the omitted body in a response to HEAD and in a 304; the caller
 * removes it from 204 and from 2xx to CONNECT.
 */
export function setFraming(fields: RawFields, framing: Framing): void {
  switch (framing.kind) {
    case "length":
      removeField(fields, "transfer-encoding");
      if (!hasJust(fields, "content-length", String(framing.lengthBytes))) {
        setField(fields, "Content-Length", String(framing.lengthBytes));
      }
      break;
    case "chunked":
      removeField(fields, "content-length");
      if (!hasJust(fields, "transfer-encoding", "chunked")) setField(fields, "Transfer-Encoding", "chunked");
      break;
    case "until-close":
      removeField(fields, "transfer-encoding");
      removeField(fields, "content-length");
      break;
    case "none": {
      removeField(fields, "transfer-encoding");
      const [first, ...others] = fieldValues(fields, "content-length");
      if (first !== undefined && (others.length > 0 || first.includes(","))) {
        setField(fields, "Content-Length", (first.split(",")[0] ?? "").trim());
      }
    }
  }
}

function hasJust(fields: RawFields, lowerName: string, value: string): boolean {
  let found = 0;
  for (let at = 0; at < fields.length; at += 2) {
    if (!isName(fields[at] ?? "", lowerName)) continue;
    if (fields[at + 1] !== value) return false;
    found++;
  }
  return found === 1;
}
