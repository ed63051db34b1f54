/**
 * Where a JSON value has half of a surrogate pair: names of members and places of elements down to the first such text, or
 * to the first object that has such a name. `text` is what the value was parsed from, UTF-8 once, so that only an escape in
 * it can be such a half: where every escape of a half has the other beside it, as in nearly all texts, the value is not
 * looked through.
 */
export function pathOfHalfPair(text: string, value: unknown): readonly string[] | undefined {
  return hasHalfPair(text) ? firstHalfPair(value) : undefined;
}

const ESCAPE_LENGTH = String.raw`\ud83d`.length;

/** For texts that are JSON: what follows `\u` are four digits. */
function hasHalfPair(text: string): boolean {
  // From one escape to the next, since the second backslash of two begins none.
  for (let at = text.indexOf("\\"); at !== -1; at = text.indexOf("\\", at)) {
    const unit = escapedUnit(text, at);
    if (unit < 0xd800 || unit > 0xdfff) {
      at += 2;
      continue;
    }
    const next = escapedUnit(text, at + ESCAPE_LENGTH);
    if (unit > 0xdbff || next < 0xdc00 || next > 0xdfff) return true;
    at += 2 * ESCAPE_LENGTH;
  }
  return false;
}

/** The unit that `\uXXXX` at this place stands for; -1 for anything else. */
function escapedUnit(text: string, at: number): number {
  return text.startsWith("\\u", at) ? Number.parseInt(text.slice(at + 2, at + ESCAPE_LENGTH), 16) : -1;
}

type Container = readonly unknown[] | Readonly<Record<string, unknown>>;

/** Looks through a value in its order. */
function firstHalfPair(root: unknown): readonly string[] | undefined {
  // A value may nest deeper than the stack, and have more members than there is memory to note each. So what is noted is the
  // way: the containers, their names (an array has none) and how many of their members were seen. Lists beside each other do
  // not need an object for each container.
  const containers: Container[] = [];
  const namesOf: (readonly string[] | undefined)[] = [];
  const seenOf: number[] = [];
  const path = (): readonly string[] => seenOf.map((seen, depth) => namesOf[depth]?.[seen - 1] ?? String(seen - 1));
  let value = root;
  for (;;) {
    if (typeof value === "string" && !value.isWellFormed()) return path();
    if (typeof value === "object" && value !== null) {
      const names = Array.isArray(value) ? undefined : Object.keys(value);
      if (names?.some((name) => !name.isWellFormed()) === true) return path();
      containers.push(value as Container);
      namesOf.push(names);
      seenOf.push(0);
    }
    while (seenOf.length > 0 && seenOf.at(-1) === (namesOf.at(-1) ?? containers.at(-1))?.length) {
      containers.pop();
      namesOf.pop();
      seenOf.pop();
    }
    const [container, seen] = [containers.at(-1), seenOf.at(-1)];
    if (container === undefined || seen === undefined) return undefined;
    seenOf[seenOf.length - 1] = seen + 1;
    value = (container as Readonly<Record<string, unknown>>)[namesOf.at(-1)?.[seen] ?? seen];
  }
}
