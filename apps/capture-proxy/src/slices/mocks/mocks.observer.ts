import { isDeepStrictEqual } from "node:util";
import type { MockResponse, MockResponseConfig, mocksOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { notFound, validationError } from "#api/api-error.ts";
import type { ExchangeView } from "#exchange/exchange.ts";
import type { Observer } from "#exchange/phases.ts";
import type { SliceTask } from "#slice.ts";
import type { CaptureStore } from "#storage/capture-store.ts";
import { draftOfEntry } from "./captured-mock.ts";
import { type MockDraft, responsesOf, type StoredMock } from "./mock-rule.ts";
import type { RuleBook } from "./rule-book.ts";

export interface MockRecorder {
  readonly observer: Observer;
  readonly task: SliceTask;
  isRecording: boolean;
  /** Responses that could not be recorded since recording was last enabled. */
  missed: number;
  /** Resolves when all responses so far are recorded. */
  settled(): Promise<void>;
}

const PERSIST_EVERY_MS = 500;
const MAX_WAITING = 1000;
const MAX_RECORDED = 2000;
const MAX_RESPONSES = 100;

/**
 * While recording, remembers entries answered by their origin and makes rules from the store shortly after: exchanges
 * are not delayed, and bodies of any size are available. Responses to the same request become one rule with a sequence
 * in the same order.
 */
export function createMockRecorder(parts: {
  readonly book: RuleBook;
  readonly captured: CaptureStore;
  readonly onFailure: (error: unknown) => void;
}): MockRecorder {
  const { book, captured } = parts;
  let waiting: string[] = [];
  let present: Promise<void> | undefined;
  const recorder: MockRecorder = {
    isRecording: false,
    missed: 0,
    observer: {
      name: "mocks",
      onFinished: (exchange) => {
        if (!recorder.isRecording || !isAnswered(exchange)) return;
        if (exchange.isRecorded && waiting.length < MAX_WAITING) waiting.push(exchange.id);
        else recorder.missed += 1;
      },
    },
    task: {
      start: (signal) => {
        const stop = book.clock.every(PERSIST_EVERY_MS, () => void recorder.settled());
        signal.addEventListener("abort", stop);
      },
    },
    settled: () => {
      if (waiting.length === 0) return present ?? Promise.resolve();
      // Sequential: concurrent runs could both add the rule for a request.
      present = (present ?? Promise.resolve()).then(take).catch(parts.onFailure);
      return present;
    },
  };
  const take = async (): Promise<void> => {
    const ids = waiting;
    waiting = [];
    if (ids.length === 0) return;
    await captured.flush();
    for (const id of ids) {
      const entry = await captured.getEntry(id, { includeBodies: true, decompressed: true });
      const reading = entry === undefined ? undefined : draftOfEntry(entry, "Recorded: ");
      if (reading?.ok !== true || !record(book, reading.draft)) recorder.missed += 1;
    }
  };
  return recorder;
}

function isAnswered(exchange: ExchangeView): boolean {
  const { source, state, passthrough, response } = exchange;
  return source === "upstream" && state.step === "completed" && !passthrough && (response?.status ?? 0) >= 200;
}

/** False at the limit of recorded rules or responses. */
function record(book: RuleBook, draft: MockDraft): boolean {
  const recorded = book.store.rules().filter(({ isRecorded }) => isRecorded);
  const same = recorded.find((rule) => isDeepStrictEqual(rule.condition, draft.condition));
  if (same !== undefined) return extended(book, same, draft);
  if (recorded.length >= MAX_RECORDED) return false;
  book.add([draft], true);
  return true;
}

function extended(book: RuleBook, rule: StoredMock, draft: MockDraft): boolean {
  const responses = responsesOf(rule.responseConfig);
  const [response] = responsesOf(draft.responseConfig);
  if (response === undefined || isDeepStrictEqual(responses.at(-1), response)) return true;
  if (responses.length >= MAX_RESPONSES) return false;
  book.change([{ rule, to: { responseConfig: inOrder([...responses, response]) } }]);
  return true;
}

/** A sequence of the responses; the last one repeats. */
export function inOrder(responses: readonly MockResponse[]): MockResponseConfig {
  const [only] = responses;
  if (only !== undefined && responses.length === 1) return { type: "single", response: only };
  return { type: "sequence", responses: responses, current_index: 0, cycle: false };
}

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
