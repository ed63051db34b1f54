export {
  checkPattern,
  compilePattern,
  type LinearPattern,
  type PatternCheck,
  type PatternError,
  type PatternMatch,
} from "./pattern.ts";
