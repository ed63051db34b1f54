import fc from "fast-check";

/** The default seed of property tests: a commit always gets the same result. */
const SEED = 20_261_121;

/** Reads `PROPERTY_SEED`: a whole number, `random`, or nothing. Throws Error for anything else. */
export function propertySeed(value: string | undefined): number | undefined {
  if (value === undefined || value === "") return SEED;
  if (value === "random") return undefined;
  if (!/^-?\d{1,10}$/u.test(value)) throw new Error(`PROPERTY_SEED is a whole number or "random", not "${value}"`);
  return Number(value);
}

const seed = propertySeed(process.env["PROPERTY_SEED"]);
if (seed !== undefined) fc.configureGlobal({ ...fc.readConfigureGlobal(), seed });
