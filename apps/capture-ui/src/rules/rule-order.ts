interface Ordered {
  readonly id: string;
  readonly priority: number;
}

/** Gap left between priorities, for rules inserted later. */
const STEP = 10;

/** The fewest priority changes that move `id` before `before` (null: to the end). `rules` are in order. */
export function reordered<R extends Ordered>(
  rules: readonly R[],
  id: string,
  before: string | null,
): readonly { readonly rule: R; readonly priority: number }[] {
  const moved = rules.find((rule) => rule.id === id);
  if (moved === undefined || id === before) return [];
  const rest = rules.filter((rule) => rule !== moved);
  const found = before === null ? rest.length : rest.findIndex((rule) => rule.id === before);
  const at = found === -1 ? rest.length : found;
  const lower = rest[at - 1];
  const upper = rest[at];
  const order = rest.toSpliced(at, 0, moved);
  if (order.every((rule, index) => rule === rules[index])) return [];
  const between = gap(lower?.priority, upper?.priority);
  if (between !== null) return [{ rule: moved, priority: between }];
  return order
    .map((rule, index) => ({ rule, priority: (index + 1) * STEP }))
    .filter(({ rule, priority }) => rule.priority !== priority);
}

function gap(lower: number | undefined, upper: number | undefined): number | null {
  if (lower === undefined && upper === undefined) return null;
  if (lower === undefined) return (upper ?? 0) - STEP;
  if (upper === undefined) return lower + STEP;
  return upper - lower > 1 ? Math.floor((lower + upper) / 2) : null;
}

/** Rules in evaluation order: lowest priority first, then oldest. */
export function inOrder<R extends Ordered & { readonly created_at: string }>(rules: readonly R[]): readonly R[] {
  return rules.toSorted(
    (left, right) => left.priority - right.priority || Date.parse(left.created_at) - Date.parse(right.created_at),
  );
}
