import type { RuleKind } from "@headworks/capture-contract";

/** Order of the bits; append new kinds. */
export const KINDS = [
  "block",
  "rewrite",
  "mock",
  "breakpoint",
  "throttle",
  "script",
  "plugin",
] as const satisfies readonly RuleKind[];
/** Above {@link FLAG_MODIFIED} and its like. One bit for each kind of rule that affected the entry. */
const FIRST_BIT = 8;

/** Bits of `entry.flags`. */
export function flagsOfKinds(trace: readonly { readonly kind: RuleKind }[]): number {
  return trace.reduce((flags, { kind }) => flags | (FIRST_BIT << KINDS.indexOf(kind)), 0);
}

/** Inverse of {@link flagsOfKinds}. */
export function kindsOfFlags(flags: number): RuleKind[] {
  return flags < FIRST_BIT ? [] : KINDS.filter((_kind, index) => (flags & (FIRST_BIT << index)) !== 0);
}
