/** One line of a comparison; `left` and `right` are line numbers from 1. */
export interface DiffLine {
  readonly kind: "same" | "removed" | "added";
  readonly text: string;
  readonly left: number | null;
  readonly right: number | null;
}

/** Maximum edit distance searched; beyond it the rest counts as replaced. */
const MAX_EDITS = 1500;

/** Shortest line diff (Myers), approximate for very different lists. */
export function diffLines(left: readonly string[], right: readonly string[]): readonly DiffLine[] {
  let start = 0;
  while (start < left.length && start < right.length && left[start] === right[start]) start += 1;
  let end = 0;
  while (
    end < left.length - start &&
    end < right.length - start &&
    left[left.length - 1 - end] === right[right.length - 1 - end]
  ) {
    end += 1;
  }
  const middleLeft = left.slice(start, left.length - end);
  const middleRight = right.slice(start, right.length - end);
  const moves = shortestEdit(middleLeft, middleRight) ?? [
    ...middleLeft.map(() => "removed" as const),
    ...middleRight.map(() => "added" as const),
  ];
  const lines: DiffLine[] = [];
  let atLeft = 0;
  let atRight = 0;
  const push = (kind: DiffLine["kind"]): void => {
    const text = (kind === "added" ? right[atRight] : left[atLeft]) ?? "";
    if (kind !== "added") atLeft += 1;
    if (kind !== "removed") atRight += 1;
    lines.push({
      kind,
      text,
      left: kind === "added" ? null : atLeft,
      right: kind === "removed" ? null : atRight,
    });
  };
  for (let count = 0; count < start; count++) push("same");
  for (const move of moves) push(move);
  for (let count = 0; count < end; count++) push("same");
  return lines;
}

/** The edit path from `left` to `right`, or null beyond {@link MAX_EDITS}. */
function shortestEdit(left: readonly string[], right: readonly string[]): readonly DiffLine["kind"][] | null {
  const max = Math.min(left.length + right.length, MAX_EDITS);
  let reach = new Map<number, number>([[1, 0]]);
  const history: Map<number, number>[] = [];
  for (let edits = 0; edits <= max; edits++) {
    history.push(new Map(reach));
    const next = new Map(reach);
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const down = goesDown(reach, diagonal, edits);
      let x = down ? (reach.get(diagonal + 1) ?? 0) : (reach.get(diagonal - 1) ?? 0) + 1;
      while (x < left.length && x - diagonal < right.length && left[x] === right[x - diagonal]) x += 1;
      next.set(diagonal, x);
      if (x >= left.length && x - diagonal >= right.length) return movesBack(history, left.length, right.length);
    }
    reach = next;
  }
  return null;
}

function goesDown(reach: ReadonlyMap<number, number>, diagonal: number, edits: number): boolean {
  return (
    diagonal === -edits || (diagonal !== edits && (reach.get(diagonal - 1) ?? -1) < (reach.get(diagonal + 1) ?? -1))
  );
}

function movesBack(history: readonly ReadonlyMap<number, number>[], fromX: number, fromY: number): DiffLine["kind"][] {
  const moves: DiffLine["kind"][] = [];
  let x = fromX;
  let y = fromY;
  for (let edits = history.length - 1; edits >= 0; edits--) {
    const reach = history[edits] ?? new Map<number, number>();
    const diagonal = x - y;
    const down = goesDown(reach, diagonal, edits);
    const before = down ? diagonal + 1 : diagonal - 1;
    const beforeX = edits === 0 ? 0 : (reach.get(before) ?? 0);
    const beforeY = edits === 0 ? 0 : beforeX - before;
    while (x > beforeX && y > beforeY) {
      moves.push("same");
      x -= 1;
      y -= 1;
    }
    if (edits === 0) break;
    moves.push(down ? "added" : "removed");
    x = beforeX;
    y = beforeY;
  }
  return moves.toReversed();
}

/** Collapses unchanged lines away from changes into counts of skipped lines. */
export function nearChanges(
  lines: readonly DiffLine[],
  around: number,
): readonly ({ readonly skipped: number } | DiffLine)[] {
  const isNear = new Uint8Array(lines.length);
  lines.forEach((line, index) => {
    if (line.kind === "same") return;
    isNear.fill(1, Math.max(0, index - around), Math.min(lines.length, index + around + 1));
  });
  const shown: ({ readonly skipped: number } | DiffLine)[] = [];
  let skipped = 0;
  lines.forEach((line, index) => {
    if (isNear[index] === 1) {
      if (skipped > 0) shown.push({ skipped });
      skipped = 0;
      shown.push(line);
    } else {
      skipped += 1;
    }
  });
  if (skipped > 0) shown.push({ skipped });
  return shown;
}
