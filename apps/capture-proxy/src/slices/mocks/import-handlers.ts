import { randomUUID } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import {
  type ImportMocks,
  MAX_MOCK_DOCUMENT_BYTES,
  type mocksOperations,
  type MockUpdate,
  MockUpdate as MockUpdateSchema,
  type TaskProgress,
} from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { readJson } from "@headworks/json";
import { WorkerFault, WorkerHost } from "@headworks/worker-host";
import { ApiError, validationError } from "#api/api-error.ts";
import { portableList } from "#portable/portable-list.ts";
import type { Clock, EventSink } from "#slice.ts";
import type { DocumentImport, ReadDocument } from "./import-documents.ts";
import type { ImportReply, ImportStep } from "./import-thread.ts";
import { type ImportedMocks, ImportProblem, shownWarnings } from "./imported-mocks.ts";
import { type MockDraft, newMock, showMock } from "./mock-rule.ts";
import { draftIssues, readDraft } from "./mocks.check.ts";
import { checkedCollection } from "./mocks.observer.ts";
import type { RuleBook } from "./rule-book.ts";

const MAX_SHOWN = 200;
const CHECKED_AT_ONCE = 20;

/** Per step: a chunk of a HAR, or a whole document of another format. */
const MAX_STEP_MS = 60_000;
const MAX_HEAP_MB = 1024;
const PROGRESS_MS = 100;

interface ImportOptions {
  readonly format: ImportMocks["format"];
  readonly collectionId: string | null;
  readonly enabled: boolean;
  readonly isDryRun: boolean;
}

export function importHandlers(
  book: RuleBook,
  events: Pick<EventSink, "task">,
): Pick<Handlers<typeof mocksOperations>, "importMocks" | "importMockDocument"> {
  return {
    importMocks: async ({ body, signal }) => {
      const { format, data, base_url: baseUrl = null, enabled = true, dry_run: isDryRun = false } = body;
      const collectionId = checkedCollection(book, body.collection_id);
      const read = await orRefused("body/data", async () => {
        if (format === "json") return ownExport(book, data);
        return rulesOf(
          book,
          await readDocumentApart({ format, baseUrl }, [bytesOf(data)], { clock: book.clock, signal }),
        );
      });
      return await response(book, read, { format, collectionId, enabled, isDryRun });
    },
    importMockDocument: async ({ query, body, headers, signal }) => {
      const { format, base_url: baseUrl = null } = query;
      const collectionId = checkedCollection(book, query.collection_id, "query/collection_id");
      const start = { id: query.task_id, kind: "import-mocks", contentLength: headers["content-length"] } as const;
      const { read } = await events.task(start, async (onProgress) => {
        const chunks = within(format, body, headers["content-length"]);
        const wait = { clock: book.clock, signal, onProgress };
        const found = await orRefused("body", async () =>
          rulesOf(book, await readDocumentApart({ format, baseUrl }, chunks, wait)),
        );
        return { read: found, completed: found.drafts.length };
      });
      const options = { enabled: query.enabled !== "false", isDryRun: query.dry_run === "true" };
      return await response(book, read, { format, collectionId, ...options });
    },
  };
}

async function response(book: RuleBook, given: ImportedMocks, options: ImportOptions) {
  const { format, collectionId, enabled, isDryRun } = options;
  const read = await checked(given);
  const drafts = read.drafts.map((draft) => ({
    ...draft,
    collectionId: collectionId ?? draft.collectionId,
    enabled: enabled ? draft.enabled : false,
  }));
  const facts = {
    imported: drafts.length,
    format,
    skipped: read.skipped,
    warnings: shownWarnings(read.warnings, read.moreWarnings),
  };
  if (isDryRun) {
    const nowMs = book.clock.now();
    const rules = drafts
      .slice(0, MAX_SHOWN)
      .map((draft) => showMock(newMock(randomUUID(), draft, nowMs), { hits: 0, nextIndex: 0 }, nowMs));
    return { status: 200, body: { ...facts, dry_run: true, rules } } as const;
  }
  const ids = drafts.length === 0 ? [] : book.add(drafts).map(({ id }) => id);
  return { status: 201, body: { ...facts, ids } } as const;
}

interface DocumentWait {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onProgress?: (soFar: Pick<TaskProgress, "bytes" | "entries">) => void;
}

/**
 * Reads a document in a thread, because megabytes of YAML take seconds that would delay traffic. One chunk is in flight
 * at a time. Throws {@link ImportProblem}, also beyond the limits of time and memory, and errors of `chunks`.
 */
export async function readDocumentApart(
  document: DocumentImport,
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  { clock, signal, onProgress }: DocumentWait,
): Promise<ReadDocument> {
  const host = new WorkerHost<ImportStep, ImportReply>({
    module: new URL("./import-thread.ts", import.meta.url),
    name: "weir-mock-import",
    maxHeapMb: MAX_HEAP_MB,
    workerData: document,
    // The thread holds the document so far.
    restarts: false,
    clock,
  });
  const stop = (): void => void host.close();
  signal.addEventListener("abort", stop);
  let bytes = 0;
  let reportedMs = Number.NEGATIVE_INFINITY;
  try {
    for await (const chunk of chunks) {
      bytes += chunk.length;
      // A copy: transferring a view would detach its whole buffer.
      const own = new Uint8Array(chunk);
      const reply = await host.request(own, { transfer: [own.buffer], timeoutMs: MAX_STEP_MS });
      if ("problem" in reply) throw new ImportProblem(reply.problem);
      if (clock.monotonic() - reportedMs < PROGRESS_MS) continue;
      reportedMs = clock.monotonic();
      onProgress?.({ bytes, entries: "entries" in reply ? reply.entries : 0 });
    }
    const reply = await host.request("end", { timeoutMs: MAX_STEP_MS });
    if ("problem" in reply) throw new ImportProblem(reply.problem);
    if (!("document" in reply)) throw new Error("The reading thread replied out of order");
    return reply.document;
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof WorkerFault)) throw error;
    if (error.kind === "memory") throw new ImportProblem("The document takes too much memory to read");
    throw error.cause ?? new ImportProblem("The document takes too long to read");
  } finally {
    signal.removeEventListener("abort", stop);
    await host.close();
  }
}

/** Turns an {@link ImportProblem} into a 400 with the path. */
async function orRefused(path: string, read: () => Promise<ImportedMocks>): Promise<ImportedMocks> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof ImportProblem)) throw error;
    throw new ApiError("VALIDATION_ERROR", `Import failed: ${error.message}`, {
      details: [{ path, message: error.message }],
      cause: error,
    });
  }
}

/**
 * The text of a document, or a document given as an object. Throws {@link ImportProblem} for one without a JSON text.
 */
function bytesOf(data: unknown): Uint8Array {
  try {
    return Buffer.from(typeof data === "string" ? data : JSON.stringify(data));
  } catch (error) {
    throw new ImportProblem("The document is nested too deeply", { cause: error });
  }
}

/** The bytes of an upload. Throws 413 as soon as the limit of the format is exceeded. */
async function* within(
  format: ImportMocks["format"],
  source: AsyncIterable<Uint8Array>,
  contentLength: string | string[] | undefined,
): AsyncGenerator<Uint8Array> {
  const max = MAX_MOCK_DOCUMENT_BYTES[format];
  const tooLarge = (): ApiError => {
    const sentence = `The document is larger than ${max} bytes (${max / 1_048_576} MiB), the limit for the format ${format}`;
    return new ApiError("PAYLOAD_TOO_LARGE", sentence);
  };
  if (Number(contentLength ?? 0) > max) throw tooLarge();
  let bytes = 0;
  for await (const chunk of source) {
    bytes += chunk.length;
    if (bytes > max) throw tooLarge();
    yield chunk;
  }
}

function rulesOf(book: RuleBook, read: ReadDocument): ImportedMocks {
  return "exported" in read ? ownExport(book, read.exported) : read;
}

/** Drops rules that fail the checks of rules made by hand, such as patterns that are too large. */
async function checked(read: ImportedMocks): Promise<ImportedMocks> {
  const warnings = [...read.warnings];
  const drafts: MockDraft[] = [];
  for (const [index, draft] of read.drafts.entries()) {
    // Compiling thousands of patterns takes seconds; yield to traffic in between.
    if (index % CHECKED_AT_ONCE === CHECKED_AT_ONCE - 1) await setImmediate();
    const [issue] = draftIssues(draft, "");
    if (issue === undefined) drafts.push(draft);
    else warnings.push(`${draft.name.slice(0, 200)}: ${issue.path.slice(1)} ${issue.message}`);
  }
  const skipped = read.skipped + read.drafts.length - drafts.length;
  return { drafts, skipped, warnings, moreWarnings: read.moreWarnings };
}

/** An export of this service: a list of rules, or an object with them. They get new ids. */
function ownExport(book: RuleBook, data: unknown): ImportedMocks {
  const document: unknown = typeof data === "string" ? parsed(data) : data;
  const list: unknown = Array.isArray(document) ? document : (document as { mocks?: unknown } | null)?.mocks;
  if (!Array.isArray(list)) throw new ImportProblem("The document is not a list of mock rules");
  // Objects get an id so that they pass the check; the check rejects everything else.
  const rules = (list as readonly unknown[]).map((rule): unknown =>
    typeof rule === "object" && rule !== null ? { id: randomUUID(), ...rule } : rule,
  );
  const warnings: string[] = [];
  const drafts: MockDraft[] = [];
  const outcome = portableList<MockUpdate & { readonly id: string }>({
    key: "mocks",
    schemaVersion: 1,
    schemas: [MockUpdateSchema],
    list: () => [],
    check: (rule) => {
      try {
        const { collection_id: collectionId, ...rest } = rule;
        const isKnown = typeof collectionId === "string" && book.hasCollection(collectionId);
        if (typeof collectionId === "string" && !isKnown) {
          warnings.push(`${rule.name?.slice(0, 200) ?? "A rule"}: its collection does not exist here`);
        }
        drafts.push(readDraft(isKnown ? rule : rest, book.hasCollection));
        return [];
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        return (error.details ?? [{ path: "body", message: error.message }]).map(({ path, message }) => ({
          path: path.replace(/^body/, ""),
          message,
        }));
      }
    },
    write: () => undefined,
    reload: () => undefined,
  }).importRules(rules, { mode: "merge", dryRun: true, version: 1 });
  if ("issues" in outcome) {
    throw validationError(outcome.issues.map(({ path, message }) => ({ path: `body/data${path}`, message })));
  }
  return { drafts, skipped: 0, warnings, moreWarnings: 0 };
}

function parsed(text: string): unknown {
  try {
    return readJson(text);
  } catch (error) {
    throw new ImportProblem("The document is not JSON", { cause: error });
  }
}
