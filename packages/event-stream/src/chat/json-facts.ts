import { isNumeric, readJson } from "@headworks/json";

/** An object as it came from a peer: nothing in it can be relied on. */
export type Facts = Readonly<Record<string, unknown>>;

/** The object that a text holds; undefined for anything else. */
export function parsedObject(text: string): Facts | undefined {
  try {
    return asObject(readJson(text));
  } catch {
    return undefined;
  }
}

export function asObject(value: unknown): Facts | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !isNumeric(value)
    ? (value as Facts)
    : undefined;
}

/** The objects of a list; anything else is left out. */
export function asObjects(value: unknown): readonly Facts[] {
  if (!Array.isArray(value)) return [];
  const items: readonly unknown[] = value;
  return items.flatMap((item): readonly Facts[] => {
    const facts = asObject(item);
    return facts === undefined ? [] : [facts];
  });
}

export function asText(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** A text that says something. */
export function asName(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** A number that can count something. */
export function asCount(value: unknown): number | undefined {
  const count = isNumeric(value) ? Number(value) : undefined;
  return count !== undefined && Number.isSafeInteger(count) && count >= 0 ? count : undefined;
}
