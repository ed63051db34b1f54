import { randomUUID } from "node:crypto";
import type { Static } from "typebox";
import type { MockHit, MockSample, MockSampleRequest, RequestData, mocksOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { hasField, type RawFields } from "@headworks/http1";
import type { Explanation } from "@headworks/match-condition";
import { notFound, validationError } from "#api/api-error.ts";
import type { RequestMessage, Scheme } from "#exchange/exchange.ts";
import type { EventSink } from "#slice.ts";
import type { CaptureStore } from "#storage/capture-store.ts";
import { importHandlers } from "./import-handlers.ts";
import type { StoredMock } from "./mock-rule.ts";
import { type MockCompiler, type MockSet, RequestSubject } from "./mocks.compile.ts";
import { type MockRecorder, recordingHandlers } from "./mocks.observer.ts";
import type { StoredHit } from "./mocks.task.ts";
import { headerPairs } from "./prepared-response.ts";
import type { RuleBook } from "./rule-book.ts";
import { ruleHandlers } from "./rule-handlers.ts";
import type { Serving } from "./served-session.ts";

const PORTS: Readonly<Record<string, number>> = { http: 80, https: 443, ws: 80, wss: 443 };

export interface MocksOperationsParts {
  readonly book: RuleBook;
  readonly compiler: MockCompiler;
  readonly active: { readonly rules: MockSet };
  readonly recorder: MockRecorder;
  readonly serving: Serving;
  readonly captured: CaptureStore;
  readonly events: Pick<EventSink, "task">;
  /** In [0, 1). */
  readonly random: () => number;
}

export function createMocksOperations(parts: MocksOperationsParts): Handlers<typeof mocksOperations> {
  const { book } = parts;
  return {
    ...ruleHandlers(book),
    ...trialHandlers(parts),
    ...importHandlers(book, parts.events),
    ...collectionHandlers(book),
    ...historyHandlers(book),
    ...recordingHandlers(parts),
    ...parts.serving.handlers,
  };
}

type TrialHandlers = Pick<Handlers<typeof mocksOperations>, "previewMock" | "testMock">;

/** Operations that try rules on a request without responding to one. */
function trialHandlers(parts: {
  readonly book: RuleBook;
  readonly compiler: MockCompiler;
  readonly active: { readonly rules: MockSet };
  readonly captured: CaptureStore;
  /** In [0, 1). */
  readonly random: () => number;
}): TrialHandlers {
  const { book, compiler, captured } = parts;
  return {
    previewMock: async ({ body }) => {
      const subject = await subjectOf(body, captured);
      const found = parts.active.rules.find(subject, book.clock.now());
      if (found === undefined || found === "needs-body") {
        return { status: 200, body: { matched: false, message: "No enabled rule matches this request" } };
      }
      const { rule, choice, progress } = found;
      const { response, index } = choice.choose(subject, progress, parts.random(), true);
      return {
        status: 200,
        body: {
          matched: true,
          rule_id: rule.id,
          rule_name: rule.name,
          response: writable(response.response),
          response_index: index,
        },
      };
    },
    testMock: async ({ params, body }) => {
      const rule = book.find(params.id);
      const subject = await subjectOf(body, captured);
      const explanation = compiler.one(rule).condition.explain(subject);
      return {
        status: 200,
        body: {
          matches: explanation.outcome === "holds",
          rule_id: rule.id,
          rule_name: rule.name,
          explanation: [...sentences(explanation, "")],
        },
      };
    },
  };
}

/** Wire types are mutable, responses are not. */
function writable<T extends { readonly headers: object }>(response: T) {
  return { ...response, headers: { ...response.headers } as Record<string, string | string[]> };
}

async function subjectOf(body: Static<typeof MockSample>, captured: CaptureStore): Promise<RequestSubject> {
  if ((body.request === undefined) === (body.entry_id === undefined)) {
    throw validationError([{ path: "body/request", message: "give either request or entry_id" }]);
  }
  if (body.request !== undefined) return await sampleSubject(body.request, "body/request");
  const entry = await captured.getEntry(body.entry_id ?? "", { includeBodies: true, decompressed: false });
  return entry === undefined ? notFound("entry") : await sampleSubject(entry.request, "body/entry");
}

function* sentences(explanation: Explanation, indent: string): Generator<string> {
  yield indent + explanation.text;
  for (const part of explanation.parts) yield* sentences(part, `${indent}  `);
}

type HistoryHandlers = Pick<
  Handlers<typeof mocksOperations>,
  "listMockHits" | "clearMockHistory" | "clearMockAnalytics" | "getMockStats" | "listMockHistory"
>;

function historyHandlers({ hits, find }: RuleBook): HistoryHandlers {
  const clear = () => {
    hits.clearHistory();
    return { status: 204 } as const;
  };
  return {
    listMockHits: ({ query }) => page(hits.history(), query),
    clearMockHistory: clear,
    clearMockAnalytics: clear,
    getMockStats: ({ params }) => {
      const stats = hits.stats(find(params.id).id);
      return {
        status: 200,
        body: {
          total_hits: stats?.total ?? 0,
          avg_response_time_ms: stats === undefined ? null : Math.round((stats.sumMs / stats.total) * 100) / 100,
          min_response_time_ms: stats?.minMs ?? null,
          max_response_time_ms: stats?.maxMs ?? null,
          first_hit: stats === undefined ? null : new Date(stats.firstMs).toISOString(),
          last_hit: stats === undefined ? null : new Date(stats.lastMs).toISOString(),
        },
      };
    },
    listMockHistory: ({ params, query }) => {
      const { id } = find(params.id);
      return page(
        hits.history().filter(({ mockId }) => mockId === id),
        query,
      );
    },
  };
}

/** Newest first. */
function page(hits: readonly StoredHit[], query: { readonly limit?: number; readonly offset?: number }) {
  const { limit = 100, offset = 0 } = query;
  return {
    status: 200,
    headers: { "x-total-count": String(hits.length) },
    body: hits
      .toReversed()
      .slice(offset, offset + limit)
      .map(showHit),
  } as const;
}

function showHit(hit: StoredHit): MockHit {
  return {
    mock_id: hit.mockId,
    timestamp: new Date(hit.atMs).toISOString(),
    request_url: hit.url,
    request_method: hit.method,
    response_status: hit.status,
    response_time_ms: hit.timeMs,
    response_index: hit.index,
  };
}

type CollectionHandlers = Pick<
  Handlers<typeof mocksOperations>,
  | "listMockCollections"
  | "createMockCollection"
  | "getMockCollection"
  | "updateMockCollection"
  | "deleteMockCollection"
  | "toggleMockCollection"
>;

function collectionHandlers(book: RuleBook): CollectionHandlers {
  const { store, clock, findCollection, showCollection } = book;
  const members = (id: string): StoredMock[] => store.rules().filter(({ collectionId }) => collectionId === id);
  return {
    listMockCollections: () => ({ status: 200, body: store.collections().toReversed().map(showCollection) }),
    createMockCollection: ({ body }) => {
      const nowMs = clock.now();
      const collection = {
        id: randomUUID(),
        name: body.name.trim(),
        description: body.description ?? null,
        enabled: body.enabled ?? true,
        tags: body.tags ?? [],
        color: body.color ?? null,
        createdAtMs: nowMs,
        updatedAtMs: nowMs,
      };
      store.saveCollection(collection);
      book.changed();
      return { status: 201, body: { id: collection.id } };
    },
    getMockCollection: ({ params }) => ({ status: 200, body: showCollection(findCollection(params.id)) }),
    updateMockCollection: ({ params, body }) => {
      const before = findCollection(params.id);
      const collection = {
        ...before,
        name: body.name?.trim() ?? before.name,
        description: body.description === undefined ? before.description : body.description,
        enabled: body.enabled ?? before.enabled,
        tags: body.tags ?? before.tags,
        color: body.color === undefined ? before.color : body.color,
        updatedAtMs: clock.now(),
      };
      store.saveCollection(collection);
      book.changed();
      return { status: 200, body: showCollection(collection) };
    },
    deleteMockCollection: ({ params, query, body }) => {
      const { id } = findCollection(params.id);
      const inQuery = query.delete_rules === undefined ? undefined : query.delete_rules === "true";
      if (inQuery !== undefined && body?.delete_rules !== undefined && inQuery !== body.delete_rules) {
        throw validationError([{ path: "body/delete_rules", message: "contradicts the query" }]);
      }
      store.transaction(() => {
        if (body?.delete_rules ?? inQuery) book.remove(members(id).map((rule) => rule.id));
        store.removeCollection(id);
      });
      book.changed();
      return { status: 204 };
    },
    toggleMockCollection: ({ params, body }) => {
      const collection = findCollection(params.id);
      const enabled = body?.enabled ?? !collection.enabled;
      const rules = members(collection.id).filter(({ isRecorded }) => !isRecorded);
      store.transaction(() => {
        store.saveCollection({ ...collection, enabled, updatedAtMs: clock.now() });
        book.change(rules.filter((rule) => rule.enabled !== enabled).map((rule) => ({ rule, to: { enabled } })));
      });
      book.changed();
      return { status: 200, body: { id: collection.id, enabled, toggled: rules.length } };
    },
  };
}

/** A sample request with its body. Throws 400 for an invalid URL. */
export async function sampleSubject(sample: MockSampleRequest | RequestData, pointer: string): Promise<RequestSubject> {
  const { message, body } = sampleRequest(sample, pointer);
  const subject = new RequestSubject(message);
  await subject.readBody(body);
  return subject;
}

function sampleRequest(
  sample: MockSampleRequest | RequestData,
  pointer: string,
): { readonly message: RequestMessage; readonly body: Buffer | undefined } {
  const url = URL.parse(sample.url);
  const scheme = url?.protocol.replace(/:$/, "") ?? "";
  if (url === null || PORTS[scheme] === undefined || url.hostname === "") {
    throw validationError([{ path: `${pointer}/url`, message: "must be an absolute URL with http, https, ws or wss" }]);
  }
  const fields = sampleFields(sample);
  if (!hasField(fields, "host")) fields.unshift("Host", url.host);
  return {
    message: {
      method: sample.method ?? "GET",
      scheme: scheme as Scheme,
      host: url.hostname.replace(/^\[|\]$/g, ""),
      port: url.port === "" ? (PORTS[scheme] ?? 0) : Number(url.port),
      path: writtenPath(sample.url) ?? `${url.pathname}${url.search}`,
      version: "HTTP/1.1",
      fields,
      trailers: undefined,
    },
    body: sampleBody(sample),
  };
}

/** Path and query as written: URL parsers normalize, the proxy does not. */
function writtenPath(url: string): string | undefined {
  const written = /^[a-z]+:\/\/[^/?#]+(\/[^#]*)/i.exec(url)?.[1];
  return written !== undefined && /^[\x21-\x7e]+$/.test(written) ? written : undefined;
}

function sampleFields(sample: MockSampleRequest | RequestData): RawFields {
  const fields: RawFields = [];
  if (sample.headers_list !== undefined) {
    for (const [name, value] of sample.headers_list) fields.push(name, value);
  } else {
    for (const [name, value] of headerPairs(sample.headers ?? {})) fields.push(name, value);
  }
  const type = sample.content_type ?? null;
  if (type !== null && !hasField(fields, "content-type")) fields.push("Content-Type", type);
  return fields;
}

function sampleBody({ body, body_encoding: encoding }: MockSampleRequest | RequestData): Buffer | undefined {
  if (body === undefined || body === null) return undefined;
  if (encoding === "base64" || (encoding !== "utf8" && body.startsWith("base64:"))) {
    return Buffer.from(body.replace(/^base64:/, ""), "base64");
  }
  return Buffer.from(body);
}
