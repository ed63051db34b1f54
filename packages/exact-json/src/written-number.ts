/** A number whose text says more than a double keeps, such as `1.10` or `12345678901234567890`. */
export class WrittenNumber {
  /** The number as it was written, by the grammar of JSON. */
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** The text, for patterns and people. */
  toString(): string {
    return this.text;
  }

  /** The nearest double. */
  valueOf(): number {
    return Number(this.text);
  }

  /** `JSON.stringify` writes the number as it was read. A browser that cannot do that gets the nearest double. */
  toJSON(): unknown {
    return RAW_JSON === undefined ? Number(this.text) : RAW_JSON(this.text);
  }
}

/** ECMAScript's way to say what JSON has in a place, which TypeScript does not know yet. */
const RAW_JSON = (JSON as { readonly rawJSON?: (text: string) => unknown }).rawJSON;

/** A number in one of the forms that a {@link Json} has. */
export type Numeric = number | bigint | WrittenNumber;

/** A JSON value; integers made by programs may be bigints. */
export type Json = null | boolean | Numeric | string | readonly Json[] | { readonly [name: string]: Json };

export function isNumeric(value: unknown): value is Numeric {
  return typeof value === "number" || typeof value === "bigint" || value instanceof WrittenNumber;
}

/** The number that a text is, which matches the grammar of JSON. */
export function writtenNumber(text: string): number | WrittenNumber {
  const value = Number(text);
  return String(value) === text ? value : new WrittenNumber(text);
}

/** The JSON number that a text is; undefined for any other text. */
export function numberOfText(text: string): number | WrittenNumber | undefined {
  return /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$/.test(text) ? writtenNumber(text) : undefined;
}
