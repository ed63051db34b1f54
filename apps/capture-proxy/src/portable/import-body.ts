import { MAX_IMPORT_BYTES } from "@headworks/capture-contract";
import { unicodeIssue } from "@headworks/contract-kit/server";
import { readJson } from "@headworks/json";
import { ApiError, validationError } from "#api/api-error.ts";
import type { ImportMode } from "#slice.ts";

/** The rules to import, and the import mode. */
export interface GivenImport {
  readonly document: unknown;
  /** Where the document stood in the request: `body`, `body/data`. */
  readonly at: string;
  readonly mode: ImportMode;
  readonly dryRun: boolean;
}

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

/** A JSON object of unknown members. */
type JsonObject = Readonly<Record<string, unknown>>;

/** The value as an object. Throws 400 with its path. */
export function objectAt(value: unknown, path: string): JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw validationError([{ path, message: "must be an object" }]);
  }
  return value as JsonObject;
}

/** A name inside a JSON pointer (RFC 6901 section 3). */
export function pointerName(name: string): string {
  return name.slice(0, 100).replaceAll("~", "~0").replaceAll("/", "~1");
}

/**
 * Reads an uploaded JSON document whole. Throws 413 above the limit, 400 for what is not UTF-8 or not JSON.
 */
async function readJsonUpload(pieces: AsyncIterable<Uint8Array>, limitBytes: number): Promise<unknown> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let text = "";
  let sizeBytes = 0;
  try {
    for await (const piece of pieces) {
      sizeBytes += piece.length;
      if (sizeBytes > limitBytes) {
        throw new ApiError("PAYLOAD_TOO_LARGE", `The body is larger than ${limitBytes} bytes`);
      }
      text += decoder.decode(piece, { stream: true });
    }
    text += decoder.decode();
  } catch (cause) {
    // What the decoder throws is a TypeError; broken connections are reported as they are.
    if (!(cause instanceof TypeError)) throw cause;
    throw new ApiError("BAD_REQUEST", "The body is not valid UTF-8", { cause });
  }
  return parseJsonText(text, "The body", "body");
}

/**
 * Parses JSON from outside, numbers with their digits; `what` begins the sentence of the refusal, and `at` the path of a text with half of a surrogate
 * pair, which is refused, too.
 */
function parseJsonText(text: string, what: string, at: string): unknown {
  let value: unknown;
  try {
    value = readJson(text);
  } catch (cause) {
    const position = /at position \d+/.exec((cause as SyntaxError).message)?.[0];
    const message = `${what} is not valid JSON${position === undefined ? "" : ` (${position})`}`;
    throw new ApiError("BAD_REQUEST", message, { cause });
  }
  const issue = unicodeIssue(text, value, at);
  if (issue !== undefined) throw validationError([issue]);
  return value;
}
