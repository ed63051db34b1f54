// Tested by compile.test.ts
/** Bodies above this many characters are not parsed as JSON. */
const LARGEST_JSON = 16 * 1024 * 1024;

/** What a body says as JSON, for queries and for conditions; undefined when it is none, or longer than 16 Mi characters. */
export function parseBodyJson(text: string): unknown {
  if (text.length > LARGEST_JSON) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
