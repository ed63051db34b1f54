import type { MockUpdate, NewMock, NewMockResponse, mocksOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { notFound, validationError } from "#api/api-error.ts";
import { showVersion, type StoredMock } from "./mock-rule.ts";
import { draftIssues, readDraft } from "./mocks.check.ts";
import type { RuleBook } from "./rule-book.ts";

const TEMPLATES: {
  name: string;
  description: string;
  template: NewMockResponse & { headers: Record<string, string> };
}[] = [
  {
    name: "JSON Response",
    description: "200 with a JSON body",
    template: {
      status_code: 200,
      headers: { "Content-Type": "application/json" },
      body: '{"success": true, "data": {}}',
    },
  },
  {
    name: "404 Not Found",
    description: "404 with a JSON error",
    template: {
      status_code: 404,
      headers: { "Content-Type": "application/json" },
      body: '{"error": "Not found"}',
    },
  },
  {
    name: "500 Server Error",
    description: "500 with a JSON error",
    template: {
      status_code: 500,
      headers: { "Content-Type": "application/json" },
      body: '{"error": "Internal server error"}',
    },
  },
  {
    name: "Slow Response",
    description: "200 after three seconds",
    template: {
      status_code: 200,
      headers: { "Content-Type": "application/json" },
      body: '{"success": true}',
      delay_ms: 3000,
    },
  },
];

type RuleHandlers = Pick<
  Handlers<typeof mocksOperations>,
  | "listMocks"
  | "createMock"
  | "createAdvancedMock"
  | "listMockTemplates"
  | "exportMocks"
  | "batchToggleMocks"
  | "getMock"
  | "updateMock"
  | "deleteMock"
  | "toggleMock"
  | "duplicateMock"
  | "rollbackMock"
  | "listMockVersions"
>;

export function ruleHandlers(book: RuleBook): RuleHandlers {
  const { store, find, show } = book;
  const create = (body: NewMock) => {
    const [rule] = book.add([readDraft(body, book.hasCollection)]);
    return { status: 201, body: { id: (rule as StoredMock).id } } as const;
  };
  return {
    listMocks: ({ query }) => {
      const { rules, total } = listed(store.rules(), query);
      return {
        status: 200,
        headers: { "x-total-count": String(total) },
        body: rules.map((rule) => show(rule)),
      };
    },
    createMock: ({ body }) => create(body),
    createAdvancedMock: ({ body }) => create(body),
    listMockTemplates: () => ({ status: 200, body: TEMPLATES }),
    exportMocks: () => ({
      status: 200,
      body: store
        .rules()
        .filter(({ isRecorded }) => !isRecorded)
        .map((rule) => show(rule, true)),
    }),
    batchToggleMocks: ({ body }) => {
      const ids = [...new Set(body.ids)];
      const found = ids.flatMap((id) => store.rule(id) ?? []);
      book.change(
        found.filter((rule) => rule.enabled !== body.enabled).map((rule) => ({ rule, to: { enabled: body.enabled } })),
      );
      const missing = ids.filter((id) => store.rule(id) === undefined);
      return { status: 200, body: { updated: found.length, not_found: missing, total: ids.length } };
    },
    getMock: ({ params }) => ({ status: 200, body: show(find(params.id), true) }),
    updateMock: ({ params, body }) => ({ status: 200, body: show(updated(book, find(params.id), body), true) }),
    deleteMock: ({ params }) => {
      book.remove([find(params.id).id]);
      return { status: 204 };
    },
    toggleMock: ({ params, body }) => {
      const rule = find(params.id);
      const enabled = body?.enabled ?? !rule.enabled;
      if (enabled !== rule.enabled) book.change([{ rule, to: { enabled } }]);
      return { status: 200, body: { id: rule.id, enabled } };
    },
    duplicateMock: ({ params, body }) => {
      const rule = find(params.id);
      const name = body?.new_name?.trim() ?? `${rule.name.slice(0, 248)} (copy)`;
      const { id: _id, version: _version, createdAtMs: _created, updatedAtMs: _updated, ...draft } = rule;
      const { expirationSince: _since, isRecorded: _recorded, ...copied } = draft;
      const [copy] = book.add([{ ...copied, name }]);
      return { status: 201, body: { id: (copy as StoredMock).id } };
    },
    rollbackMock: ({ params, body }) => {
      const rule = find(params.id);
      const former = store.versions(rule.id).find(({ version }) => version === body.version);
      if (former === undefined) return notFound("version");
      const { condition, responseConfig } = former;
      const issues = draftIssues({ condition, responseConfig, responseSchema: rule.responseSchema }, "body/version");
      if (issues.length > 0) throw validationError(issues);
      const rolled = book.revise(rule, { condition, responseConfig }, `Before rollback to version ${body.version}`);
      resetSequence(book, rolled, 0);
      return { status: 200, body: show(rolled, true) };
    },
    listMockVersions: ({ params }) => ({ status: 200, body: store.versions(find(params.id).id).map(showVersion) }),
  };
}

function listed(
  rules: readonly StoredMock[],
  query: {
    readonly limit?: number;
    readonly offset?: number;
    readonly collection_id?: string;
    readonly tag?: string;
    readonly enabled?: string;
    readonly search?: string;
  },
): { readonly rules: readonly StoredMock[]; readonly total: number } {
  const { collection_id: collectionId, tag, enabled, search, limit = 100, offset = 0 } = query;
  const needle = search?.toLowerCase();
  const found = rules.filter(
    (rule) =>
      !rule.isRecorded &&
      (collectionId === undefined || rule.collectionId === collectionId) &&
      (tag === undefined || rule.tags.includes(tag)) &&
      (enabled === undefined || rule.enabled === (enabled === "true")) &&
      (needle === undefined || `${rule.name}\n${rule.description ?? ""}`.toLowerCase().includes(needle)),
  );
  return { rules: found.reverse().slice(offset, offset + limit), total: found.length };
}

/** Only changes of condition or response make a version. */
function updated(book: RuleBook, rule: StoredMock, body: MockUpdate): StoredMock {
  const draft = readDraft(body, book.hasCollection);
  const isSame =
    JSON.stringify(draft.condition) === JSON.stringify(rule.condition) &&
    JSON.stringify(draft.responseConfig) === JSON.stringify(rule.responseConfig);
  const next = isSame
    ? book.change([{ rule, to: { ...draft, condition: rule.condition, responseConfig: rule.responseConfig } }])[0]
    : book.revise(rule, draft, body.comment ?? null);
  const config = body.response_config as { readonly current_index?: number } | undefined;
  if (config?.current_index !== undefined || !isSame) resetSequence(book, rule, config?.current_index ?? 0);
  return next ?? rule;
}

function resetSequence({ hits }: RuleBook, rule: StoredMock, index: number): void {
  const progress = hits.progress(rule.id);
  if (progress.nextIndex === index) return;
  progress.nextIndex = index;
  hits.touched(rule.id);
}
