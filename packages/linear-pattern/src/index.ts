export {
  checkPattern,
  compilePattern,
  compileTextPredicate,
  type LinearPattern,
  type PatternCheck,
  type PatternError,
  type PatternMatch,
  readReplacement,
  type Replaced,
  type Replacement,
  type ReplacementCheck,
  type TextPredicate,
} from "./pattern.ts";
