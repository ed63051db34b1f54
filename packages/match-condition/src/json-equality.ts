import { WrittenNumber } from "@headworks/exact-json";

/** Deeper values equal nothing; a condition's own values are refused beyond this when it is read. */
export const DEEPEST_VALUE = 64;

/** Whether a value nests at most `DEEPEST_VALUE` deep. Needs no more stack than that. */
export function isShallowJson(value: unknown, depth = DEEPEST_VALUE): boolean {
  if (typeof value !== "object" || value === null || value instanceof WrittenNumber) return true;
  return depth > 0 && Object.values(value).every((item) => isShallowJson(item, depth - 1));
}
