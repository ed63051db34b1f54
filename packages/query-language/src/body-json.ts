import { readJson } from "@headworks/json";

/** Bodies above this many characters are not parsed as JSON. */
const MAX_JSON_SIZE = 16 * 1024 * 1024;

/** What a body says as JSON, its numbers as they are written, for queries and for conditions; undefined when it is none, or longer than 16 Mi characters. */
export function parseBodyJson(text: string): unknown {
  if (text.length > MAX_JSON_SIZE) return undefined;
  try {
    return readJson(text);
  } catch {
    return undefined;
  }
}
