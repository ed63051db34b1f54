/** A set of UTF-16 units as sorted, disjoint, inclusive ranges: from, to, from, to. */
export type CharSet = readonly number[];

/** The largest UTF-16 unit. */
export const LAST_UNIT = 0xffff;

/** Creates a set from ranges in any order. */
export function charSet(ranges: readonly (readonly [number, number])[]): CharSet {
  const sorted = ranges.toSorted((left, right) => left[0] - right[0]);
  const set: number[] = [];
  for (const [from, to] of sorted) {
    const end = set.at(-1);
    if (end !== undefined && from <= end + 1) set[set.length - 1] = Math.max(end, to);
    else set.push(from, to);
  }
  return set;
}

/** The ranges of a set as pairs. */
export function rangesOf(set: CharSet): [number, number][] {
  const ranges: [number, number][] = [];
  for (let index = 0; index + 1 < set.length; index += 2) ranges.push([set[index] ?? 0, set[index + 1] ?? 0]);
  return ranges;
}

export function complement(set: CharSet): CharSet {
  const ranges: [number, number][] = [];
  let from = 0;
  for (const [low, high] of rangesOf(set)) {
    if (low > from) ranges.push([from, low - 1]);
    from = high + 1;
  }
  if (from <= LAST_UNIT) ranges.push([from, LAST_UNIT]);
  return charSet(ranges);
}

export function contains(set: CharSet, unit: number): boolean {
  let low = 0;
  let high = set.length / 2 - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (unit < (set[middle * 2] ?? 0)) high = middle - 1;
    else if (unit > (set[middle * 2 + 1] ?? 0)) low = middle + 1;
    else return true;
  }
  return false;
}

/** `\d`. */
export const DIGITS = charSet([[0x30, 0x39]]);
/** `\w`. */
export const WORD = charSet([
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
]);
/** `\s`: white space and line terminators of ECMAScript. */
export const SPACES = charSet([
  [9, 13],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
]);
/** Line terminators of ECMAScript. */
export const LINE_ENDS = charSet([
  [10, 10],
  [13, 13],
  [0x2028, 0x2029],
]);

/** ECMAScript's `Canonicalize` for patterns without the `u` flag (ECMA-262, 22.2.2.7.3). */
function canonical(unit: number): number {
  const upper = String.fromCharCode(unit).toUpperCase();
  if (upper.length !== 1) return unit;
  const folded = upper.charCodeAt(0);
  return unit >= 128 && folded < 128 ? unit : folded;
}

let caseGroups: ReadonlyMap<number, readonly number[]> | undefined;

/** For each unit with case variants: all variants, including itself. */
function groups(): ReadonlyMap<number, readonly number[]> {
  if (caseGroups !== undefined) return caseGroups;
  const byUnit = new Map<number, number[]>();
  for (let unit = 0; unit <= LAST_UNIT; unit += 1) {
    const folded = canonical(unit);
    if (folded === unit) continue;
    const group = byUnit.get(folded) ?? [folded];
    group.push(unit);
    byUnit.set(folded, group).set(unit, group);
  }
  caseGroups = byUnit;
  return caseGroups;
}

/** The set with all case variants of its members. */
export function withoutCase(set: CharSet): CharSet {
  const extra: [number, number][] = [];
  const add = (group: readonly number[]): void => {
    for (const unit of group) extra.push([unit, unit]);
  };
  if (set.length === 2 && set[0] === set[1]) add(groups().get(set[0] ?? 0) ?? []);
  else for (const [unit, group] of groups()) if (contains(set, unit)) add(group);
  return extra.length === 0 ? set : charSet([...rangesOf(set), ...extra]);
}
