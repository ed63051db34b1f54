export {
  checkPattern,
  compilePattern,
  type LinearPattern,
  type PatternCheck,
  type PatternError,
  type PatternMatch,
  type Replaced,
} from "./pattern.ts";
export { compileTextPredicate, type TextPredicate } from "./text-predicate.ts";
export { readReplacement, type Replacement, type ReplacementCheck } from "./replacement.ts";
