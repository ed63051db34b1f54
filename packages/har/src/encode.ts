// Tested by decode.test.ts
import type { HarEntry, HarHeader } from "./har.ts";

/** The text before the first entry. */
export function harPrologue(header: HarHeader): string {
  const { creator, browser, comment, ...extensions } = header;
  const members = {
    version: "1.2",
    creator,
    ...(browser && { browser }),
    ...(comment !== undefined && { comment }),
    ...extensions,
  };
  return `{"log":${JSON.stringify(members).slice(0, -1)},"entries":[`;
}

/** The text of one entry with the separator that its position (0 for the first) asks for. */
export function harEntryText(entry: HarEntry, index: number): string {
  return `${index === 0 ? "\n" : ",\n"}${JSON.stringify(entry)}`;
}

/** The text after the last entry. */
export function harEpilogue(): string {
  return "\n]}}\n";
}

/**
 * Writes a HAR 1.2 document piece by piece; only one entry is in memory at a time. Ends early, with an incomplete
 * document, only when `entries` throws.
 */
export async function* encodeHar(
  header: HarHeader,
  entries: AsyncIterable<HarEntry> | Iterable<HarEntry>,
): AsyncGenerator<string> {
  yield harPrologue(header);
  let index = 0;
  for await (const entry of entries) {
    yield harEntryText(entry, index);
    index += 1;
  }
  yield harEpilogue();
}
