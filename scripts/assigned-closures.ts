import { tokenize } from "./import-scanner.ts";
import type { Token } from "./import-scanner.ts";

/**
 * Lines (from 1) that assign a function literal to a property: `a.b = () => …`. V8 allocates such a function in the old
 * generation, as if it were a method. Until the surrounding code is optimized, everything the function captures, such as a
 * whole connection, then stays in memory until the next full collection. A class field (`b = () => …`) or a constant that is
 * assigned afterwards (`const b = () => …; a.b = b`) avoids this.
 */
export function scanAssignedClosures(source: string): number[] {
  const tokens = tokenize(source);
  return tokens.flatMap((token, at) => {
    const isFound = token.text === "=" && isProperty(tokens, at - 1) && isFunction(tokens, at + 1);
    return isFound ? [source.slice(0, token.start).split("\n").length] : [];
  });
}

/** True if `.name` or `[…]` ends here, or either before the operator of a logical assignment. */
function isProperty(tokens: readonly Token[], end: number): boolean {
  const sign = tokens[end]?.text ?? "";
  const at = "?|&".includes(sign) && tokens[end - 1]?.text === sign ? end - 2 : end;
  return tokens[at]?.text === "]" || (tokens[at]?.kind === "word" && tokens[at - 1]?.text === ".");
}

function isFunction(tokens: readonly Token[], start: number): boolean {
  const first = tokens[start]?.text === "async" ? start + 1 : start;
  if (tokens[first]?.text === "function") return true;
  if (tokens[first]?.kind === "word") return isArrow(tokens, first + 1);
  if (tokens[first]?.text !== "(") return false;
  const behind = behindParentheses(tokens, first);
  return tokens[behind]?.text === ":" || isArrow(tokens, behind);
}

function isArrow(tokens: readonly Token[], at: number): boolean {
  return tokens[at]?.text === "=" && tokens[at + 1]?.text === ">";
}

function behindParentheses(tokens: readonly Token[], opening: number): number {
  let depth = 0;
  for (let at = opening; at < tokens.length; at += 1) {
    if (tokens[at]?.text === "(") depth += 1;
    else if (tokens[at]?.text === ")" && (depth -= 1) === 0) return at + 1;
  }
  return tokens.length;
}
