import { isBlank } from "./field-lines.ts";
import { RESPONSE_LIMITS, type RawFields, type Version } from "./message.ts";

/** The readable parts of a refused head, for records. They must not be forwarded. */
export interface RefusedHead {
  readonly method: string;
  /** Everything between method and version. */
  readonly target: string;
  readonly version: Version;
  /** The lines that are certainly fields. */
  readonly fields: RawFields;
}

const METHOD = /^[\w!#$%&'*+.^`|~-]+(?= )/u;
const FIELD_LINE = /^([\w!#$%&'*+.^`|~-]+):[ \t]*(.*)$/u;
const VERSIONS: ReadonlyMap<string, Version> = new Map([
  [" HTTP/1.0", "1.0"],
  [" HTTP/1.1", "1.1"],
]);
const VERSION_LENGTH = " HTTP/1.1".length;

/**
 * Parses a head refused by the strict reader as far as possible.
 * @param text  one character per byte, possibly truncated
 */
export function readRefusedHead(text: string): RefusedHead | undefined {
  const [start = "", ...lines] = text.split(/\r\n|[\r\n]/u);
  const method = METHOD.exec(start)?.[0];
  const version = VERSIONS.get(start.slice(-VERSION_LENGTH));
  if (method === undefined || version === undefined) return undefined;
  const target = start.slice(method.length + 1, -VERSION_LENGTH);
  return target === "" ? undefined : { method, target, version, fields: plainFields(lines) };
}

function plainFields(lines: readonly string[]): RawFields {
  const fields: RawFields = [];
  for (const line of lines) {
    const [, name, value] = FIELD_LINE.exec(line) ?? [];
    if (name === undefined || value === undefined) continue;
    let end = value.length;
    while (end > 0 && isBlank(value.charCodeAt(end - 1))) end -= 1;
    fields.push(name, value.slice(0, end));
    if (fields.length === 2 * RESPONSE_LIMITS.fieldCount) break;
  }
  return fields;
}
