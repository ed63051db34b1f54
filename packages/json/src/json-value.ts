/** A number whose text a double would change, such as `1.10` or `12345678901234567890`. */
export class WrittenNumber {
  /** Matches the grammar of JSON numbers. */
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toString(): string {
    return this.text;
  }

  /** The nearest double. */
  valueOf(): number {
    return Number(this.text);
  }

  /** Lets `JSON.stringify` write the original text, or the nearest double where `JSON.rawJSON` is missing. */
  toJSON(): unknown {
    return RAW_JSON === undefined ? Number(this.text) : RAW_JSON(this.text);
  }
}

/** Not yet in TypeScript's library types. */
const RAW_JSON = (JSON as { readonly rawJSON?: (text: string) => unknown }).rawJSON;

export type Numeric = number | bigint | WrittenNumber;

/** A JSON value; integers from programs may be bigints. */
export type Json = null | boolean | Numeric | string | readonly Json[] | { readonly [name: string]: Json };

export function isNumeric(value: unknown): value is Numeric {
  return typeof value === "number" || typeof value === "bigint" || value instanceof WrittenNumber;
}

/** Converts text that matches the grammar of JSON numbers. */
export function toNumeric(text: string): number | WrittenNumber {
  const value = Number(text);
  return String(value) === text ? value : new WrittenNumber(text);
}

/** Undefined for text that is not a JSON number. */
export function parseNumber(text: string): number | WrittenNumber | undefined {
  return /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$/.test(text) ? toNumeric(text) : undefined;
}

/**
 * Compares members in any order and numbers by exact value: `1.0` equals `1`, and integers beyond 2^53 stay distinct.
 * Values that nest deeper than `maxDepth` are equal only if identical.
 */
export function isSameJson(left: unknown, right: unknown, maxDepth = Number.POSITIVE_INFINITY): boolean {
  if (left === right) return true;
  if (isNumeric(left)) return isNumeric(right) && isSameNumber(left, right);
  if (typeof left !== "object" || typeof right !== "object" || left === null || right === null) return false;
  if (maxDepth === 0 || isNumeric(right)) return false;
  if (Array.isArray(left) || Array.isArray(right)) {
    if (!Array.isArray(left) || !Array.isArray(right) || left.length !== right.length) return false;
    return left.every((item, index) => isSameJson(item, right[index], maxDepth - 1));
  }
  const names = Object.keys(left);
  if (names.length !== Object.keys(right).length) return false;
  return names.every(
    (name) => Object.hasOwn(right, name) && isSameJson(Reflect.get(left, name), Reflect.get(right, name), maxDepth - 1),
  );
}

/** Whether a value nests at most `maxDepth` deep. Uses no more stack than that. */
export function isShallowJson(value: unknown, maxDepth: number): boolean {
  if (typeof value !== "object" || value === null || value instanceof WrittenNumber) return true;
  return maxDepth > 0 && Object.values(value).every((item) => isShallowJson(item, maxDepth - 1));
}

function isSameNumber(left: Numeric, right: Numeric): boolean {
  if (typeof left === "number" && typeof right === "number") return left === right;
  return numberKey(left) === numberKey(right);
}

interface Parts {
  readonly isNegative: boolean;
  /** Without leading or trailing zeros; empty for zero. */
  readonly digits: string;
  /** Power of ten of the last digit. */
  readonly scale: bigint;
}

/** Longer exponents are clamped to this many nines. */
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

/** A text shared by exactly the numbers of one value. */
export function numberKey(value: Numeric): string {
  const { isNegative, digits, scale } = partsOf(value);
  return digits === "" ? "0" : `${isNegative ? "-" : ""}${digits}e${scale}`;
}

/** A comparator (negative, zero, positive) that is exact. */
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
