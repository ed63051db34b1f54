import { isNumeric, isSameJson, type Json } from "./json-text.ts";

/** The message names the operation that failed. */
export class PatchError extends Error {}

/** Applies a JSON Merge Patch (RFC 7396) without mutating its arguments. */
export function mergePatch(target: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch;
  const result = new Map(isObject(target) ? Object.entries(target) : []);
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) result.delete(name);
    else result.set(name, mergePatch(result.get(name), value));
  }
  return fromEntries(result);
}

/** Applies a JSON Patch (RFC 6902) atomically, without mutating its arguments. Throws {@link PatchError}. */
export function jsonPatch(target: Json, patch: Json): Json {
  if (!Array.isArray(patch)) throw new PatchError("A JSON Patch is a list of operations");
  let document = target;
  for (const [at, operation] of (patch as readonly Json[]).entries()) {
    try {
      document = applyOperation(document, operation);
    } catch (error) {
      throw error instanceof PatchError ? new PatchError(`Operation ${at}: ${error.message}`) : error;
    }
  }
  return document;
}

function applyOperation(document: Json, operation: Json): Json {
  if (!isObject(operation)) throw new PatchError("it is no object");
  const { op, path, from, value } = operation;
  const steps = stepsOf(path, "path");
  switch (op) {
    case "add":
      return added(document, steps, required(value));
    case "remove":
      return removed(document, steps);
    case "replace":
      valueAt(document, steps);
      return steps.length === 0 ? required(value) : added(removed(document, steps), steps, required(value));
    case "move": {
      const source = stepsOf(from, "from");
      if (steps.length > source.length && source.every((step, at) => step === steps[at])) {
        throw new PatchError("a value cannot be moved into itself");
      }
      const moved = valueAt(document, source);
      return added(removed(document, source), steps, moved);
    }
    case "copy":
      return added(document, steps, valueAt(document, stepsOf(from, "from")));
    case "test":
      if (!isSameJson(valueAt(document, steps), required(value))) {
        throw new PatchError(`the value at ${JSON.stringify(path)} is another one`);
      }
      return document;
    default:
      throw new PatchError(`there is no operation ${JSON.stringify(op ?? null)}`);
  }
}

function required(value: Json | undefined): Json {
  if (value === undefined) throw new PatchError("it needs a value");
  return value;
}

/** Steps of a JSON Pointer (RFC 6901). */
function stepsOf(pointer: Json | undefined, name: string): string[] {
  if (typeof pointer !== "string" || (pointer !== "" && !pointer.startsWith("/")) || /~(?![01])/.test(pointer)) {
    throw new PatchError(`its ${name} is no JSON pointer`);
  }
  const steps = pointer.split("/").slice(1);
  return steps.map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function valueAt(document: Json, steps: readonly string[]): Json {
  let value = document;
  for (const step of steps) {
    const next = Array.isArray(value)
      ? (value as readonly Json[])[indexOf(step, value.length - 1)]
      : memberOf(value, step);
    if (next === undefined) throw new PatchError(`there is nothing at ${JSON.stringify(`/${steps.join("/")}`)}`);
    value = next;
  }
  return value;
}

function memberOf(value: Json, name: string): Json | undefined {
  return isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

function added(document: Json, steps: readonly string[], value: Json): Json {
  const [step, ...rest] = steps;
  if (step === undefined) return value;
  if (Array.isArray(document)) {
    const list = document as readonly Json[];
    if (rest.length > 0) {
      const at = indexOf(step, list.length - 1);
      return list.with(at, added(list[at] ?? null, rest, value));
    }
    return list.toSpliced(step === "-" ? list.length : indexOf(step, list.length), 0, value);
  }
  if (!isObject(document)) throw new PatchError(`there is no place for ${JSON.stringify(step)}`);
  const members = new Map(Object.entries(document));
  if (rest.length === 0) return fromEntries(members.set(step, value));
  const inner = memberOf(document, step);
  if (inner === undefined) throw new PatchError(`there is nothing at ${JSON.stringify(step)}`);
  return fromEntries(members.set(step, added(inner, rest, value)));
}

function removed(document: Json, steps: readonly string[]): Json {
  valueAt(document, steps);
  const [step, ...rest] = steps;
  if (step === undefined) throw new PatchError("the whole document cannot be removed");
  if (Array.isArray(document)) {
    const list = document as readonly Json[];
    const at = indexOf(step, list.length - 1);
    return rest.length === 0 ? list.toSpliced(at, 1) : list.with(at, removed(list[at] ?? null, rest));
  }
  const members = new Map(Object.entries(document as Readonly<Record<string, Json>>));
  if (rest.length === 0) members.delete(step);
  else members.set(step, removed(members.get(step) ?? null, rest));
  return fromEntries(members);
}

function indexOf(step: string, max: number): number {
  if (!/^(?:0|[1-9][0-9]{0,9})$/.test(step) || Number(step) > max) {
    throw new PatchError(`${JSON.stringify(step)} is no place in the list`);
  }
  return Number(step);
}

function isObject(value: Json | undefined): value is { readonly [name: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isNumeric(value);
}

/** Sets own properties, `__proto__` included. */
function fromEntries(members: ReadonlyMap<string, Json>): Json {
  return Object.fromEntries(members);
}
