import type { mocksOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { notFound, validationError } from "#api/api-error.ts";
import type { CaptureStore } from "#storage/capture-store.ts";
import { draftOfEntry } from "./captured-mock.ts";
import type { MockDraft, StoredMock } from "./mock-rule.ts";
import type { MockRecorder } from "./mocks.observer.ts";
import type { RuleBook } from "./rule-book.ts";

type RecordingHandlers = Pick<
  Handlers<typeof mocksOperations>,
  | "setMockRecording"
  | "getMockRecording"
  | "listRecordedMocks"
  | "promoteRecordedMocks"
  | "clearRecordedMocks"
  | "createMocksFromTraffic"
>;

export function recordingHandlers(parts: {
  readonly book: RuleBook;
  readonly recorder: MockRecorder;
  readonly captured: CaptureStore;
}): RecordingHandlers {
  const { book, recorder, captured } = parts;
  const recorded = async (): Promise<readonly StoredMock[]> => {
    await recorder.settled();
    return book.store.rules().filter(({ isRecorded }) => isRecorded);
  };
  const state = async () => {
    const { isRecording: recording, missed } = recorder;
    return { status: 200, body: { recording, recorded: (await recorded()).length, missed } } as const;
  };
  return {
    setMockRecording: ({ body }) => {
      if (body.enabled && !recorder.isRecording) recorder.missed = 0;
      recorder.isRecording = body.enabled;
      book.changed();
      return state();
    },
    getMockRecording: state,
    listRecordedMocks: async ({ query }) => {
      const { limit = 100, offset = 0 } = query;
      const rules = await recorded();
      return {
        status: 200,
        headers: { "x-total-count": String(rules.length) },
        body: rules
          .toReversed()
          .slice(offset, offset + limit)
          .map((rule) => book.show(rule)),
      };
    },
    promoteRecordedMocks: async ({ body }) => {
      const collectionId = checkedCollection(book, body?.collection_id);
      const selected = body?.ids === undefined || body.ids === null ? undefined : new Set(body.ids);
      const rules = (await recorded()).filter(({ id }) => selected?.has(id) !== false);
      book.promote(rules, collectionId);
      return { status: 200, body: { promoted: rules.length } };
    },
    clearRecordedMocks: async () => {
      book.remove((await recorded()).map(({ id }) => id));
      return { status: 204 };
    },
    createMocksFromTraffic: async ({ body }) => {
      const collectionId = checkedCollection(book, body.collection_id);
      const drafts: MockDraft[] = [];
      const errors: { entry_id: string; error: string }[] = [];
      const ids = [...new Set(body.entry_ids)];
      for (const id of ids) {
        const entry = await captured.getEntry(id, { includeBodies: true, decompressed: true });
        const prefix = body.name_prefix ?? "";
        const reading = entry === undefined ? undefined : draftOfEntry(entry, prefix === "" ? "" : `${prefix} `);
        if (reading?.ok === true) drafts.push({ ...reading.draft, collectionId, enabled: body.enabled ?? true });
        else errors.push({ entry_id: id, error: reading?.problem ?? "Entry not found" });
      }
      if (drafts.length === 0) {
        return ids.length === 1 && errors[0] !== undefined && errors[0].error !== "Entry not found"
          ? refuse(errors[0].error)
          : notFound("entry");
      }
      const rules = book.add(drafts);
      const created = rules.map((rule) => rule.id);
      return { status: 201, body: { created: created.length, ids: created, errors, total: ids.length } };
    },
  };
}

function refuse(problem: string): never {
  throw validationError([{ path: "body/entry_ids/0", message: problem }]);
}

/** Throws 400 for an unknown collection. */
export function checkedCollection(
  book: RuleBook,
  id: string | null | undefined,
  path = "body/collection_id",
): string | null {
  if (id === undefined || id === null) return null;
  if (book.hasCollection(id)) return id;
  throw validationError([{ path, message: "is not a collection" }]);
}
