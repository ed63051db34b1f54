import { randomUUID } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import type { ImportMocks, mocksOperations, MockUpdate } from "@headworks/capture-contract";
import { MockUpdate as MockUpdateSchema } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { portableList } from "#portable/portable-list.ts";
import { ApiError, validationError } from "#api/api-error.ts";
import { readImportApart } from "./import-thread.ts";
import { ImportProblem } from "./imported-mocks.ts";
import type { ImportedMocks } from "./imported-mocks.ts";
import type { MockDraft } from "./mock-rule.ts";
import { newMock, showMock } from "./mock-rule.ts";
import { draftIssues, readDraft } from "./mocks.check.ts";
import { checkedCollection } from "./recording-handlers.ts";
import type { RuleBook } from "./rule-book.ts";

const MOST_SHOWN = 200;
const CHECKED_AT_ONCE = 20;

/** Handler of the import of documents. */
export function importHandlers(book: RuleBook): Pick<Handlers<typeof mocksOperations>, "importMocks"> {
  return {
    importMocks: async ({ body, signal }) => {
      const collectionId = checkedCollection(book, body.collection_id);
      const read = await checked(await imported(book, body, signal));
      const drafts = read.drafts.map((draft) => ({
        ...draft,
        collectionId: collectionId ?? draft.collectionId,
        enabled: body.enabled === false ? false : draft.enabled,
      }));
      const { format } = body;
      const facts = { imported: drafts.length, format, skipped: read.skipped, warnings: [...read.warnings] };
      if (body.dry_run === true) {
        const nowMs = book.clock.now();
        const rules = drafts
          .slice(0, MOST_SHOWN)
          .map((draft) => showMock(newMock(randomUUID(), draft, nowMs), { hits: 0, nextIndex: 0 }, nowMs));
        return { status: 200, body: { ...facts, dry_run: true, rules } };
      }
      const ids = drafts.length === 0 ? [] : book.add(drafts).map(({ id }) => id);
      return { status: 201, body: { ...facts, ids } };
    },
  };
}

async function imported(book: RuleBook, body: ImportMocks, signal: AbortSignal): Promise<ImportedMocks> {
  try {
    if (body.format === "json") return ownExport(book, body.data);
    const { format, data, base_url: baseUrl = null } = body;
    return await readImportApart({ format, data, baseUrl }, book.clock, signal);
  } catch (error) {
    if (!(error instanceof ImportProblem)) throw error;
    throw new ApiError("VALIDATION_ERROR", `Import failed: ${error.message}`, {
      details: [{ path: "body/data", message: error.message }],
      cause: error,
    });
  }
}

/** Rules that a document gives but nobody could have made by hand, such as with a pattern that is too large, are left out. */
async function checked(read: ImportedMocks): Promise<ImportedMocks> {
  const warnings = [...read.warnings];
  const drafts: MockDraft[] = [];
  for (const [index, draft] of read.drafts.entries()) {
    // Thousands of patterns take seconds to compile; traffic must not wait for all of them at once.
    if (index % CHECKED_AT_ONCE === CHECKED_AT_ONCE - 1) await setImmediate();
    const [issue] = draftIssues(draft, "");
    if (issue === undefined) drafts.push(draft);
    else warnings.push(`${draft.name.slice(0, 200)}: ${issue.path.slice(1)} ${issue.message}`);
  }
  const skipped = read.skipped + read.drafts.length - drafts.length;
  return { drafts, skipped, warnings: warnings.slice(0, 100) };
}

/** What this service exported: a list of rules, or an object with them. They become new rules, whatever ids they had. */
function ownExport(book: RuleBook, data: unknown): ImportedMocks {
  const document: unknown = typeof data === "string" ? parsed(data) : data;
  const list: unknown = Array.isArray(document) ? document : (document as { mocks?: unknown } | null)?.mocks;
  if (!Array.isArray(list)) throw new ImportProblem("The document is no list of mock rules");
  // Objects get an id for the check; everything else is refused by it.
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
  return { drafts, skipped: 0, warnings: warnings.slice(0, 100) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ImportProblem("The document is not JSON", { cause: error });
  }
}
