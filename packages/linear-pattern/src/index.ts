export { checkPattern, compilePattern, type LinearPattern, type PatternCheck, type PatternError } from "./pattern.ts";
