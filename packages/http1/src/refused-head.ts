import { isBlank } from "./field-lines.ts";
import { RESPONSE_LIMITS, type RawFields, type Version } from "./message.ts";

/** What a refused head says, for whoever wants to know what a client tried. Nothing of it may be forwarded. */
export interface RefusedHead {
  readonly method: string;
  /** Whatever stands between the method and the version. */
  readonly target: string;
  readonly version: Version;
  /** The lines that are fields beyond doubt. */
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
 * Reads the text of a head that the strict reader refused, as far as it can be told what was meant.
 * @param text  one character per byte, perhaps cut
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
