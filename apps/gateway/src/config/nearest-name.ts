const FARTHEST = 3;

/** The nearest of `names` by case-insensitive edit distance; undefined if none is close. */
export function nearestName(written: string, names: Iterable<string>): string | undefined {
  if (written.length > 64) return undefined;
  const max = Math.min(FARTHEST, Math.max(1, Math.floor(written.length / 3)));
  let nearest: string | undefined;
  let min = max + 1;
  for (const name of names) {
    if (Math.abs(name.length - written.length) >= min) continue;
    const far = distance(written.toLowerCase(), name.toLowerCase());
    if (far < min) [nearest, min] = [name, far];
  }
  return nearest;
}

function distance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      let min = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (same ? 0 : 1),
      );
      const isSwap = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (isSwap) min = Math.min(min, (beforeLast[column - 2] ?? 0) + 1);
      current.push(min);
    }
    [beforeLast, last] = [last, current];
  }
  return last[b.length] ?? 0;
}

/** `. Did you mean "x"?`, or an empty string. */
export function suggestion(written: string, names: Iterable<string>): string {
  const nearest = nearestName(written, names);
  return nearest === undefined ? "" : `. Did you mean "${nearest}"?`;
}
