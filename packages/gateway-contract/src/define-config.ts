import type { DocumentInput } from "./document.ts";

/** The same type with numbers allowed where 64-bit numbers are read, since small budgets are easier to write so. */
type Written<T> = T extends bigint
  ? bigint | number
  : T extends readonly (infer Member)[]
    ? readonly Written<Member>[]
    : T extends object
      ? { readonly [Name in keyof T]: Written<T[Name]> }
      : T;

/** A configuration as TypeScript and JavaScript write it. */
export type WrittenConfig = Written<DocumentInput>;

/**
 * Gives a configuration back as it is; editors know all its fields by this call, and the compiler notices those that it has
 * not, which it would not if the type were inferred.
 */
export function defineConfig(config: WrittenConfig): WrittenConfig {
  return config;
}

/**
 * The text of a configuration, JSON with exact 64-bit numbers, which `sluice` reads as it reads any file. Numbers that
 * JavaScript has rounded already are refused with a RangeError: write those as bigints, such as `18446744073709551615n`.
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
