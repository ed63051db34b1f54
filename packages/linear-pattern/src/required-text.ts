import type { CharSet } from "./char-set.ts";
import type { PatternNode } from "./syntax.ts";

/** Longer texts find no more than these. */
const LONGEST = 200;

/** What is sure of the texts a node matches; `exact` when it matches one text only. */
interface Sure {
  readonly exact: string | undefined;
  readonly prefix: string;
  readonly suffix: string;
  readonly best: string;
}

const NOTHING: Sure = { exact: undefined, prefix: "", suffix: "", best: "" };

/**
 * A text that every text the pattern matches contains once its ASCII letters are in lower case; empty when nothing is
 * sure. It lets many patterns be passed over by one search for their texts.
 */
export function requiredText(node: PatternNode): string {
  return sureOf(node).best;
}

function exactly(text: string): Sure {
  const kept = text.slice(0, LONGEST);
  return kept === text
    ? { exact: text, prefix: text, suffix: text, best: text }
    : { exact: undefined, prefix: kept, suffix: text.slice(-LONGEST), best: kept };
}

function sureOf(node: PatternNode): Sure {
  switch (node.kind) {
    case "empty":
    case "assert":
      return exactly("");
    case "set": {
      const unit = singleUnit(node.set);
      return unit === undefined ? NOTHING : exactly(String.fromCharCode(unit));
    }
    case "group":
      return sureOf(node.item);
    case "choice": {
      const [first, ...rest] = node.items.map(sureOf);
      const isOne = first?.exact !== undefined && rest.every(({ exact }) => exact === first.exact);
      return isOne ? first : NOTHING;
    }
    case "repeat": {
      if (node.min === 0) return NOTHING;
      const item = sureOf(node.item);
      if (item.exact === undefined) return item;
      const all = exactly(item.exact.repeat(Math.min(node.min, LONGEST)));
      return node.min === node.max ? all : { ...all, exact: undefined };
    }
    case "sequence":
      return sequence(node.items.map(sureOf));
  }
}

function sequence(items: readonly Sure[]): Sure {
  let prefix = "";
  let isPrefixOpen = true;
  let run = "";
  let best = "";
  for (const item of items) {
    if (isPrefixOpen) prefix += item.prefix;
    best = longer(best, longer(item.best, run + item.prefix));
    if (item.exact === undefined) {
      isPrefixOpen = false;
      run = item.suffix;
    } else run += item.exact;
    run = run.slice(-LONGEST);
    prefix = prefix.slice(0, LONGEST);
  }
  best = longer(best, run).slice(0, LONGEST);
  return { exact: isPrefixOpen && prefix.length < LONGEST ? prefix : undefined, prefix, suffix: run, best };
}

function longer(left: string, right: string): string {
  return right.length > left.length ? right : left;
}

/** The one unit of a set, in lower case: a plain character, or an ASCII letter in both cases. */
function singleUnit(set: CharSet): number | undefined {
  const [first = 0, firstEnd, second, secondEnd] = set;
  if (first !== firstEnd) return undefined;
  const isUpper = first >= 0x41 && first <= 0x5a;
  if (set.length === 2) return isUpper ? first + 32 : first;
  const isBothCases = set.length === 4 && isUpper && second === first + 32 && secondEnd === second;
  return isBothCases ? second : undefined;
}
