import { WrittenNumber } from "@headworks/exact-json";

/** Deeper values equal nothing; a condition's own values are refused beyond this when it is read. */
export const MAX_VALUE_DEPTH = 64;

/** Whether a value nests at most `MAX_VALUE_DEPTH` deep. Needs no more stack than that. */
export function isShallowJson(value: unknown, depth = MAX_VALUE_DEPTH): boolean {
  if (typeof value !== "object" || value === null || value instanceof WrittenNumber) return true;
  return depth > 0 && Object.values(value).every((item) => isShallowJson(item, depth - 1));
}
