import { WrittenNumber } from "./json-text.ts";

/** One step of a path: a member, an element (negative counts from the end), all children, or a member at any depth. */
export type JsonStep =
  | { readonly kind: "member"; readonly name: string }
  | { readonly kind: "element"; readonly index: number }
  | { readonly kind: "children" }
  | { readonly kind: "descendants"; readonly name: string | null };

/** Bounds `$..*` over a huge body. */
const MAX_VISITS = 200_000;

/** Parses JSONPath (RFC 9535) without filters. `at` is the offset of a syntax error. */
export function parseJsonPath(
  text: string,
):
  | { readonly ok: true; readonly steps: readonly JsonStep[] }
  | { readonly ok: false; readonly message: string; readonly at: number } {
  if (!text.startsWith("$")) return { ok: false, message: "a JSON path begins with `$`", at: 0 };
  const step =
    /\.\.(?:(\*)|([\p{L}_$][\p{L}\p{N}_$-]*))|\.(?:(\*)|([\p{L}_$][\p{L}\p{N}_$-]*))|\[\s*(?:(\*)|(-?\d{1,9})|'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*\]/uy;
  const steps: JsonStep[] = [];
  step.lastIndex = 1;
  for (let at = 1; at < text.length; at = step.lastIndex) {
    step.lastIndex = at;
    const match = step.exec(text);
    if (match === null) {
      return { ok: false, message: "expected `.name`, `['name']`, `[0]`, `[*]` or `..name` in the JSON path", at };
    }
    const [, deepStar, deepName, star, name, listStar, index, single, double] = match;
    if (deepStar !== undefined) steps.push({ kind: "descendants", name: null });
    else if (deepName !== undefined) steps.push({ kind: "descendants", name: deepName });
    else if (star !== undefined || listStar !== undefined) steps.push({ kind: "children" });
    else if (index !== undefined) steps.push({ kind: "element", index: Number(index) });
    else steps.push({ kind: "member", name: name ?? (single ?? double ?? "").replace(/\\(.)/gs, "$1") });
    if (steps.length > 64) return { ok: false, message: "the JSON path has more than 64 steps", at };
  }
  return { ok: true, steps };
}

/** The selected values in document order. Stops silently after {@link MAX_VISITS} values. */
export function selectJson(root: unknown, steps: readonly JsonStep[]): readonly unknown[] {
  let current: unknown[] = [root];
  let visits = 0;
  for (const step of steps) {
    const next: unknown[] = [];
    for (const value of current) {
      if (visits > MAX_VISITS) break;
      visits += applyStep(step, value, next, MAX_VISITS - visits);
    }
    current = next;
  }
  return current;
}

function children(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return isObject(value) ? Object.values(value) : [];
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !(value instanceof WrittenNumber);
}

function member(value: unknown, name: string, into: unknown[]): void {
  if (isObject(value) && !Array.isArray(value) && Object.hasOwn(value, name)) {
    into.push(Reflect.get(value, name));
  }
}

function applyStep(step: JsonStep, value: unknown, into: unknown[], budget: number): number {
  if (step.kind === "member") {
    member(value, step.name, into);
    return 1;
  }
  if (step.kind === "element") {
    if (!Array.isArray(value)) return 1;
    const found: unknown = value.at(step.index);
    if (step.index < value.length && step.index >= -value.length) into.push(found);
    return 1;
  }
  if (step.kind === "children") {
    const all = children(value);
    for (const child of all.slice(0, budget)) into.push(child);
    return all.length + 1;
  }
  return descend(step.name, value, into, budget);
}

/** Depth first with an explicit stack: bodies may nest deeper than the call stack allows. */
function descend(name: string | null, root: unknown, into: unknown[], budget: number): number {
  const stack: unknown[] = [root];
  let visits = 0;
  while (stack.length > 0 && visits < budget) {
    const value = stack.pop();
    visits += 1;
    if (name !== null) member(value, name, into);
    else if (value !== root) into.push(value);
    const below = children(value);
    for (let index = below.length - 1; index >= 0; index -= 1) stack.push(below[index]);
  }
  return visits;
}
