/** Deeper values equal nothing; a condition's own values are refused beyond this when it is read. */
export const DEEPEST_VALUE = 64;

/** Whether two JSON values are the same: members in any order, numbers by value. */
export function isSameJson(left: unknown, right: unknown, depth = DEEPEST_VALUE): boolean {
  if (left === right) return true;
  if (typeof left !== "object" || typeof right !== "object" || left === null || right === null) return false;
  if (depth === 0) return false;
  if (Array.isArray(left) || Array.isArray(right)) {
    if (!Array.isArray(left) || !Array.isArray(right) || left.length !== right.length) return false;
    return left.every((item, index) => isSameJson(item, right[index], depth - 1));
  }
  const names = Object.keys(left);
  if (names.length !== Object.keys(right).length) return false;
  return names.every(
    (name) => Object.hasOwn(right, name) && isSameJson(Reflect.get(left, name), Reflect.get(right, name), depth - 1),
  );
}

/** Whether a value nests at most `DEEPEST_VALUE` deep. Needs no more stack than that. */
export function isShallowJson(value: unknown, depth = DEEPEST_VALUE): boolean {
  if (typeof value !== "object" || value === null) return true;
  return depth > 0 && Object.values(value).every((item) => isShallowJson(item, depth - 1));
}
