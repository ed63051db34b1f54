/** The known word that a mistyped one most likely stands for: at most two edits away, or begun like it. */
export function suggestion(word: string, known: readonly string[]): string | undefined {
  const wanted = word.toLowerCase();
  if (wanted.length < 2 || wanted.length > 64) return undefined;
  let best: string | undefined;
  let bestDistance = wanted.length <= 3 ? 2 : 3;
  for (const candidate of known) {
    const distance = candidate.startsWith(wanted) ? 1 : editDistance(wanted, candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Optimal string alignment: insert, delete, replace, or swap two neighbours. */
function editDistance(left: string, right: string): number {
  let before: number[] = [];
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let i = 1; i <= left.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= right.length; j += 1) {
      const same = left[i - 1] === right[j - 1];
      let cost = Math.min((previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (previous[j - 1] ?? 0) + (same ? 0 : 1));
      if (i > 1 && j > 1 && left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1]) {
        cost = Math.min(cost, (before[j - 2] ?? 0) + 1);
      }
      row.push(cost);
    }
    before = previous;
    previous = row;
  }
  return previous[right.length] ?? 0;
}
