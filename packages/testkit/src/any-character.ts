import fc from "fast-check";

const FIRST_SURROGATE = 0xd800;
const SURROGATES = 0x800;
const LAST_INDEX = 0x10_ffff - SURROGATES;

/**
 * Any character of Unicode, as a unit of texts: `fc.string({ unit: anyCharacter })`. The texts are those of the unit
 * `"binary"`, `__proto__` and its like among them; that one makes a table of a million characters first, which takes a
 * second.
 */
export const anyCharacter: fc.Arbitrary<string> = fc.nat(LAST_INDEX).map(
  (at) => String.fromCodePoint(at < FIRST_SURROGATE ? at : at + SURROGATES),
  (character) => {
    const point = typeof character === "string" ? (character.codePointAt(0) ?? -1) : -1;
    if (point < 0 || String.fromCodePoint(point) !== character) throw new Error("This is not one character");
    return point < FIRST_SURROGATE ? point : point - SURROGATES;
  },
);
