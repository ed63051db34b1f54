import { MAX_IMPORT_BYTES } from "@headworks/capture-contract";
import { validationError } from "#api/api-error.ts";
import type { ImportMode } from "#slice.ts";
import { objectAt, parseJsonText, pointerName, readJsonUpload } from "./json-document.ts";

/** What an import is to take in, and how. */
export interface GivenImport {
  readonly document: unknown;
  /** Where the document stood in the request: `body`, `body/data`. */
  readonly at: string;
  readonly mode: ImportMode;
  readonly dryRun: boolean;
}

/** The query of an import. */
interface ImportQuery {
  readonly mode?: ImportMode;
  readonly dry_run?: string;
}

/**
 * Reads the body of an import: the document itself, or an object that holds it as an object or as JSON text under one of
 * `names`, with `mode` and `dry_run` beside it. The query wins over the body. Throws 400 or 413.
 */
export async function readImport(
  pieces: AsyncIterable<Uint8Array>,
  query: ImportQuery,
  names: readonly string[],
  limitBytes = MAX_IMPORT_BYTES,
): Promise<GivenImport> {
  const body = objectAt(await readJsonUpload(pieces, limitBytes), "body");
  const holders = names.filter((name) => Object.hasOwn(body, name));
  const [holder] = holders;
  const queryDryRun = query.dry_run === undefined ? undefined : query.dry_run === "true";
  if (holder === undefined) {
    return { document: body, at: "body", mode: query.mode ?? "merge", dryRun: queryDryRun ?? false };
  }
  const known: ReadonlySet<string> = new Set([holder, "mode", "dry_run"]);
  const details = Object.keys(body)
    .filter((name) => !known.has(name))
    .map((name) => ({
      path: `body/${pointerName(name)}`,
      message: holders.includes(name) ? `cannot stand beside ${holder}` : "unknown property",
    }));
  const { mode, dry_run: dryRun = false } = body;
  const isMode = mode === undefined || mode === "merge" || mode === "replace";
  if (!isMode) details.push({ path: "body/mode", message: 'must be one of "merge", "replace"' });
  if (typeof dryRun !== "boolean") details.push({ path: "body/dry_run", message: "must be boolean" });
  if (!isMode || details.length > 0) throw validationError(details);
  const held = body[holder];
  return {
    document: typeof held === "string" ? parseJsonText(held, `The text in ${holder}`, `body/${holder}`) : held,
    at: `body/${holder}`,
    mode: query.mode ?? mode ?? "merge",
    dryRun: queryDryRun ?? dryRun === true,
  };
}
