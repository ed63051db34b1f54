import { isNumeric, type Numeric } from "./written-number.ts";

/**
 * Whether two JSON values mean the same: members in any order, numbers by their exact value (`1.0` and `1` are the same,
 * integers beyond 2^53 are told apart). Values that nest deeper than `depth` equal nothing but themselves.
 */
export function isSameJson(left: unknown, right: unknown, depth = Number.POSITIVE_INFINITY): boolean {
  if (left === right) return true;
  if (isNumeric(left)) return isNumeric(right) && isSameNumber(left, right);
  if (typeof left !== "object" || typeof right !== "object" || left === null || right === null) return false;
  if (depth === 0 || isNumeric(right)) return false;
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

function isSameNumber(left: Numeric, right: Numeric): boolean {
  if (typeof left === "number" && typeof right === "number") return left === right;
  return numberKey(left) === numberKey(right);
}

/** Digits without zeros at their ends, and the power of ten of the last one. */
interface Parts {
  readonly isNegative: boolean;
  /** Empty for zero. */
  readonly digits: string;
  readonly scale: bigint;
}

/** Exponents with more digits than these are taken for that many nines: no number of traffic means one. */
const MAX_EXPONENT_DIGITS = 18;
const MAX_EXPONENT = "9".repeat(MAX_EXPONENT_DIGITS);

function partsOf(value: Numeric): Parts {
  const [, sign = "", whole = "", fraction = "", exponentSign = "", exponent = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([-+]?)0*(\d+))?$/u.exec(String(value)) ?? [];
  const digits = (whole + fraction).replace(/^0+/u, "");
  let end = digits.length;
  while (digits.charCodeAt(end - 1) === 0x30) end -= 1;
  const bounded = exponent.length > MAX_EXPONENT_DIGITS ? MAX_EXPONENT : exponent;
  const power = BigInt(exponentSign === "-" ? `-${bounded}` : bounded);
  const scale = power - BigInt(fraction.length) + BigInt(digits.length - end);
  return { isNegative: sign === "-" && end > 0, digits: digits.slice(0, end), scale };
}

/** A text that is the same for all ways to write a number, and different for numbers of different value. */
export function numberKey(value: Numeric): string {
  const { isNegative, digits, scale } = partsOf(value);
  return digits === "" ? "0" : `${isNegative ? "-" : ""}${digits}e${scale}`;
}

/** Below 0 when the left number is the smaller one, 0 when both have the same value, above 0 otherwise; exact. */
export function compareNumbers(left: Numeric, right: Numeric): number {
  if (typeof left === "number" && typeof right === "number") return left - right;
  const [a, b] = [partsOf(left), partsOf(right)];
  const [signA, signB] = [signOf(a), signOf(b)];
  if (signA !== signB || signA === 0) return signA - signB;
  const orders = BigInt(a.digits.length) + a.scale - BigInt(b.digits.length) - b.scale;
  if (orders !== 0n) return orders > 0n ? signA : -signA;
  return a.digits === b.digits ? 0 : a.digits > b.digits ? signA : -signA;
}

function signOf({ isNegative, digits }: Parts): number {
  return digits === "" ? 0 : isNegative ? -1 : 1;
}
