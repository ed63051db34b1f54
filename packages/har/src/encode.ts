import type { HarEntry, HarHeader, HarPage } from "./har.ts";
import { LargeBody } from "./large-text.ts";
import { readOwnRecord } from "./entry-parts.ts";

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

/** Pieces of an entry's text, with the separator required at its position. */
export function* harEntryTexts(entry: HarEntry, index: number): Generator<string, void, void> {
  yield index === 0 ? "\n" : ",\n";
  if (!hasLargeBody(entry)) {
    yield JSON.stringify(entry);
    return;
  }
  // The random mark cannot occur in the entry, so placeholders of bodies are unambiguous.
  const mark = crypto.randomUUID();
  const bodies: LargeBody[] = [];
  const json = JSON.stringify(entry, (_key, value: unknown) => {
    if (!(value instanceof LargeBody)) return value;
    bodies.push(value);
    return mark;
  });
  const [first = "", ...rest] = json.split(mark);
  yield first;
  for (const [position, text] of rest.entries()) {
    yield* bodies[position]?.jsonTexts() ?? [];
    yield text;
  }
}

function hasLargeBody({ request, response, _weir: own }: HarEntry): boolean {
  const record = readOwnRecord(own);
  const texts = [request.postData?.text, response.content.text, record?.request?.raw, record?.response?.raw];
  return texts.some((text) => text instanceof LargeBody);
}

/** The text after the last entry, with the pages that entries refer to. */
export function harEpilogue(pages: readonly HarPage[] = []): string {
  return pages.length === 0 ? "\n]}}\n" : `\n],"pages":${JSON.stringify(pages)}}}\n`;
}

/** Writes HAR 1.2 with one entry in memory. The document is incomplete only if `entries` throws. */
export async function* encodeHar(
  header: HarHeader,
  entries: AsyncIterable<HarEntry> | Iterable<HarEntry>,
): AsyncGenerator<string> {
  yield harPrologue(header);
  let index = 0;
  for await (const entry of entries) {
    yield* harEntryTexts(entry, index);
    index += 1;
  }
  yield harEpilogue();
}
