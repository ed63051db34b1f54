import { isError } from "#config/check-document.ts";
import { diffDocuments, type Change } from "#config/diff-documents.ts";
import { toJson } from "#config/write-document.ts";
import { complain, openDocument, type DocumentFile, type Streams } from "./document-file.ts";
import { EXIT } from "./invocation.ts";

export interface DiffOptions {
  readonly json?: boolean;
}

const MARKS = { added: "+", removed: "-", changed: "~", moved: ">" } as const;

/**
 * `sluice diff OLD NEW`: lists the changed paths between two configurations, without values, which may be secret.
 * Resolves to 0, or to 1 if one cannot be read.
 */
export async function diff(before: string, after: string, options: DiffOptions, streams: Streams): Promise<number> {
  const [old, young] = [await openReadable(before, streams), await openReadable(after, streams)];
  if (young?.reading.document === undefined || old?.reading.document === undefined) return EXIT.failure;
  const changes = diffDocuments(old.reading.document, young.reading.document);
  if (options.json === true) streams.stdout.write(`${toJson({ changes })}\n`);
  else if (changes.length === 0) streams.stdout.write("no differences\n");
  else streams.stdout.write(changes.map((change) => `${changeText(change)}\n`).join(""));
  return EXIT.ok;
}

/** Checks the structure only: files and secrets of another machine need not exist here. */
async function openReadable(name: string, streams: Streams): Promise<DocumentFile | undefined> {
  const file = await openDocument(name, streams);
  if (file === undefined || !file.reading.issues.some(isError)) return file;
  complain(name, file.reading.issues, streams);
  return undefined;
}

/** `~ route users-v1 (/match/path/value)`. */
export function changeText({ kind, name, change, pointers }: Change): string {
  const places = pointers.length === 0 ? "" : ` (${pointers.join(", ")})`;
  return `${MARKS[change]} ${kind}${name === "" ? "" : ` ${name}`}${places}`;
}
