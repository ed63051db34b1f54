import type { NumberRange } from "@headworks/query-language";

/** Parses `404`, `5xx`, `400-499` and comma-separated lists of them; undefined for other texts. */
export function parseStatusRange(range: string | number): readonly NumberRange[] | undefined {
  const ranges: NumberRange[] = [];
  for (const part of String(range).split(",")) {
    const match = /^\s*(?:([1-9])xx|([1-9]\d\d)(?:\s*-\s*([1-9]\d\d))?)\s*$/i.exec(part);
    if (match === null) return undefined;
    const [, hundreds, from, to] = match;
    const min = hundreds === undefined ? Number(from) : Number(hundreds) * 100;
    const max = hundreds === undefined ? Number(to ?? from) : min + 99;
    if (max < min) return undefined;
    ranges.push({ min, max, minExcluded: false, maxExcluded: false });
  }
  return ranges;
}
