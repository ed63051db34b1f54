import type { RuleKind } from "@headworks/capture-contract";

/** In the order of their bits; new kinds go to the end. */
export const KINDS = [
  "block",
  "rewrite",
  "mock",
  "breakpoint",
  "throttle",
  "script",
  "plugin",
] as const satisfies readonly RuleKind[];
/** The bits above those of {@link FLAG_MODIFIED} and its like: one for each kind of rule that touched the entry. */
const FIRST_BIT = 8;

/** Bits of `entry.flags` for the kinds of rules in a trace. */
export function flagsOfKinds(trace: readonly { readonly kind: RuleKind }[]): number {
  return trace.reduce((flags, { kind }) => flags | (FIRST_BIT << KINDS.indexOf(kind)), 0);
}

/** The kinds that {@link flagsOfKinds} put into `entry.flags`. */
export function kindsOfFlags(flags: number): RuleKind[] {
  return flags < FIRST_BIT ? [] : KINDS.filter((_kind, index) => (flags & (FIRST_BIT << index)) !== 0);
}
