import type { DocumentInput } from "./document.ts";

/** Allows plain numbers for 64-bit numbers. */
type Written<T> = T extends bigint
  ? bigint | number
  : T extends readonly (infer Member)[]
    ? readonly Written<Member>[]
    : T extends object
      ? { readonly [Name in keyof T]: Written<T[Name]> }
      : T;

/** A configuration in TypeScript or JavaScript. */
export type WrittenConfig = Written<DocumentInput>;

/** Returns the configuration unchanged; the parameter's type rejects unknown fields. */
export function defineConfig(config: WrittenConfig): WrittenConfig {
  return config;
}

/**
 * Serializes a configuration as JSON with exact 64-bit numbers, readable by `sluice`. Unsafe integers are rejected with
 * a RangeError: write them as bigints, such as `18446744073709551615n`.
 */
export function configText(config: WrittenConfig): string {
  const { rawJSON } = JSON as unknown as { readonly rawJSON: (text: string) => unknown };
  const exact = (name: string, value: unknown): unknown => {
    if (typeof value === "bigint") return rawJSON(String(value));
    if (typeof value === "number" && !Number.isFinite(value)) throw new RangeError(`${name} is not a finite number`);
    if (typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value)) {
      throw new RangeError(`${name} is too large for a number: write it as ${BigInt(value)}n`);
    }
    return value;
  };
  return `${JSON.stringify(config, exact, 2)}\n`;
}
