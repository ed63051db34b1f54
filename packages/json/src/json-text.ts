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
function toNumeric(text: string): number | WrittenNumber {
  const value = Number(text);
  return String(value) === text ? value : new WrittenNumber(text);
}

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

/**
 * Number texts that a double changes or may change: a fraction that ends in zero or starts with six zeros, an exponent,
 * negative zero. Three fast patterns; combined into one they are slow.
 */
const DELICATE = [/-0[\s,\]}]/, /\.[0-9]*0[\s,\]}]|\.000000/, /[:,[\s]-?[0-9.]+[eE]/] as const;

/** Long numbers; a double keeps those that were printed from one. */
const LONG = /[:,[\s]-?[0-9.]{16,}/g;

/** A text that is one number: the patterns above need a character before and after it. */
const BARE_NUMBER = /^[\s\ufeff]*[-0-9]/;

/**
 * Parses JSON (RFC 8259), skipping a byte order mark. Numbers whose text a double would change become
 * {@link WrittenNumber}; of duplicate members the last wins, as with `JSON.parse`.
 * @throws SyntaxError
 */
export function readJson(text: string): Json {
  const json = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  if (!BARE_NUMBER.test(json) && !isDelicate(json)) return JSON.parse(json) as Json;
  const reader = new ExactReader(json);
  const value = reader.read();
  // JSON.parse throws the SyntaxError with the position.
  return value === undefined ? (JSON.parse(json) as Json) : value;
}

/** False only if `JSON.parse` loses nothing. */
function isDelicate(json: string): boolean {
  if (DELICATE.some((pattern) => pattern.test(json))) return true;
  LONG.lastIndex = 0;
  for (let found = LONG.exec(json); found !== null; found = LONG.exec(json)) {
    const text = found[0].slice(1);
    if (String(Number(text)) !== text) return true;
  }
  return false;
}

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/y;

type Container = Json[] | Record<string, Json>;

/** Iterative, so that nesting uses heap and no stack. */
class ExactReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Undefined for invalid JSON. */
  read(): Json | undefined {
    const open: Container[] = [];
    const names: string[] = [];
    for (;;) {
      let value = this.#begin();
      if (value === undefined) return undefined;
      if (isContainer(value) && !this.#closes(value)) {
        if (!this.#name(value, names)) return undefined;
        open.push(value);
        continue;
      }
      for (;;) {
        const container = open.at(-1);
        if (container === undefined) return this.#mark() === -1 ? value : undefined;
        if (Array.isArray(container)) container.push(value);
        else setMember(container, names.pop() ?? "", value);
        const mark = this.#mark();
        this.#at += 1;
        if (mark === COMMA) {
          if (!this.#name(container, names)) return undefined;
          break;
        }
        if (mark !== endOf(container)) return undefined;
        value = container;
        open.pop();
      }
    }
  }

  /** Skips white space and peeks at the next character code; -1 at the end. */
  #mark(): number {
    for (; this.#at < this.#text.length; this.#at += 1) {
      const code = this.#text.charCodeAt(this.#at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return code;
    }
    return -1;
  }

  /** A scalar, or an empty container whose opening bracket was consumed. */
  #begin(): Json | Container | undefined {
    const mark = this.#mark();
    if (mark === QUOTE) return this.#string();
    if (mark === BRACE || mark === BRACKET) {
      this.#at += 1;
      return mark === BRACE ? {} : [];
    }
    if (mark === MINUS || (mark >= 0x30 && mark <= 0x39)) return this.#number();
    for (const [word, value] of WORDS) {
      if (!this.#text.startsWith(word, this.#at)) continue;
      this.#at += word.length;
      return value;
    }
    return undefined;
  }

  #closes(container: Container): boolean {
    if (this.#mark() !== endOf(container)) return false;
    this.#at += 1;
    return true;
  }

  /** Consumes the name and colon of an object member; no-op for arrays. False if they are missing. */
  #name(container: Container, names: string[]): boolean {
    if (Array.isArray(container)) return true;
    const name = this.#mark() === QUOTE ? this.#string() : undefined;
    if (name === undefined || this.#mark() !== COLON) return false;
    this.#at += 1;
    names.push(name);
    return true;
  }

  #number(): Json | undefined {
    const start = this.#at;
    let code = this.#text.charCodeAt(start);
    let at = start;
    // Fast path for short integers.
    while (code >= 0x30 && code <= 0x39 && at - start < 16) code = this.#text.charCodeAt((at += 1));
    if (at - start < 16 && at > start && !isNumberPart(code) && (at === start + 1 || this.#text[start] !== "0")) {
      this.#at = at;
      return Number(this.#text.slice(start, at));
    }
    NUMBER.lastIndex = start;
    const text = NUMBER.exec(this.#text)?.[0];
    if (text === undefined) return undefined;
    this.#at += text.length;
    return toNumeric(text);
  }

  #string(): string | undefined {
    const text = this.#text;
    const start = this.#at;
    let isPlain = true;
    let at = start + 1;
    for (; ; at += 1) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) break;
      if (code === BACKSLASH) {
        isPlain = false;
        at += 1;
      } else if (!(code >= 0x20)) return undefined;
    }
    this.#at = at + 1;
    if (isPlain) return text.slice(start + 1, at);
    try {
      return JSON.parse(text.slice(start, at + 1)) as string;
    } catch {
      return undefined;
    }
  }
}

function isNumberPart(code: number): boolean {
  return (code >= 0x30 && code <= 0x39) || code === 0x2e || (code | 0x20) === 0x65;
}

const WORDS: readonly (readonly [word: string, value: Json])[] = [
  ["true", true],
  ["false", false],
  ["null", null],
];

const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const COLON = 0x3a;
const BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const BRACE = 0x7b;
const endOf = (container: Container): number => (Array.isArray(container) ? 0x5d : 0x7d);

function isContainer(value: Json | Container): value is Container {
  return typeof value === "object" && value !== null && !(value instanceof WrittenNumber);
}

/** Sets an own property, `__proto__` included. */
function setMember(object: Record<string, Json>, name: string, value: Json): void {
  if (name === "__proto__") {
    Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
  } else object[name] = value;
}

/** Serializes with the indent and final line break of `like`, the text that the value was read from. */
export function writeJson(value: Json, like: string): string {
  const indent = /^\ufeff?[[{]\r?\n([ \t]{1,10})/.exec(like)?.[1] ?? "";
  const end = /\r?\n$/.exec(like)?.[0] ?? "";
  const exact = (_name: string, member: unknown): unknown =>
    typeof member === "bigint" ? new WrittenNumber(String(member)).toJSON() : member;
  return JSON.stringify(value, exact, indent) + end;
}
