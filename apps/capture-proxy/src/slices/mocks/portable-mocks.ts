import { MockCollection, MockRule, MockUpdate } from "@headworks/capture-contract";
import { portableList } from "#portable/portable-list.ts";
import type { ImportCounts, ImportOutcome, ImportRequest, PortableRules } from "#slice.ts";
import { draftIssues } from "./mocks.check.ts";
import { filledConfig, readMock, readVersion } from "./mock-rule.ts";
import type { StoredCollection } from "./mock-rule.ts";
import type { RuleBook } from "./rule-book.ts";

/**
 * Rules and their collections as one section `{collections, rules}`; a bare list has rules of existing collections.
 * Recorded rules are not included and stay untouched.
 */
export function portableMocks(book: RuleBook): PortableRules {
  const { store, clock } = book;
  let known: ReadonlySet<string> = new Set();
  const collections = portableList<MockCollection>({
    key: "collections",
    schemaVersion: 1,
    schemas: [MockCollection],
    list: () => store.collections().map((each) => ({ ...book.showCollection(each), rule_count: 0 })),
    check: () => [],
    write: (list) => store.replaceCollections(list.map(readCollection)),
    reload: () => undefined,
  });
  const rules = portableList<MockRule>({
    key: "rules",
    schemaVersion: 1,
    schemas: [MockRule, MockUpdate],
    list: () => store.rules().flatMap((rule) => (rule.isRecorded ? [] : [book.show(rule, true)])),
    check: (rule) => {
      const { condition, collection_id: collectionId, response_schema: responseSchema } = rule;
      const responseConfig = filledConfig(rule.response_config);
      const issues = draftIssues({ condition, responseConfig, responseSchema }, "");
      const isHomeless = collectionId !== null && !known.has(collectionId);
      return isHomeless ? [...issues, { path: "/collection_id", message: "is not a collection" }] : issues;
    },
    write: (list) =>
      store.replaceAll(
        list.map((shown) => {
          const { response_config: config, hit_count: hits } = shown;
          const nextIndex = config.type === "sequence" ? (config.current_index ?? 0) : 0;
          const rule = readMock(shown, store.rule(shown.id), clock.now());
          return { rule, progress: { hits, nextIndex }, versions: (shown.version_history ?? []).map(readVersion) };
        }),
      ),
    reload: () => undefined,
  });
  return {
    key: "mocks",
    schemaVersion: 1,
    exportRules: () => ({ collections: collections.exportRules(), rules: rules.exportRules() }),
    importRules: (data, request): ImportOutcome => {
      const section = sectionOf(data);
      if (section === undefined) return { issues: [{ path: "", message: "must be a list, or {collections, rules}" }] };
      const given = section.collections === undefined ? undefined : withoutCounts(section.collections);
      const stays = request.mode === "merge" || given === undefined;
      known = new Set([...(stays ? store.collections().map(({ id }) => id) : []), ...idsOf(given)]);
      const run = (how: ImportRequest): readonly (readonly [string, ImportOutcome])[] => [
        ...(given === undefined ? [] : [["/collections", collections.importRules(given, how)] as const]),
        [Array.isArray(data) ? "" : "/rules", rules.importRules(section.rules, how)] as const,
      ];
      const tried = joined(run({ ...request, dryRun: true }));
      return "issues" in tried || request.dryRun ? tried : joined(run(request));
    },
    reload: () => {
      store.reload();
      book.hits.reload(store.progress());
      book.changed();
    },
  };
}

function readCollection(shown: MockCollection): StoredCollection {
  const { id, name, description, enabled, tags, color, created_at: createdAt, updated_at: updatedAt } = shown;
  return {
    id,
    name,
    description,
    enabled,
    tags,
    color,
    createdAtMs: Date.parse(createdAt),
    updatedAtMs: Date.parse(updatedAt),
  };
}

function sectionOf(data: unknown): { readonly collections: unknown; readonly rules: unknown } | undefined {
  if (Array.isArray(data)) return { collections: undefined, rules: data };
  if (typeof data !== "object" || data === null) return undefined;
  if (Object.keys(data).some((name) => name !== "collections" && name !== "rules")) return undefined;
  const { collections, rules } = data as { readonly collections?: unknown; readonly rules?: unknown };
  return { collections, rules: rules ?? [] };
}

/** Rule counts are derived and not imported. */
function withoutCounts(collections: unknown): unknown {
  if (!Array.isArray(collections)) return collections;
  return (collections as readonly unknown[]).map((each) =>
    typeof each === "object" && each !== null ? { ...each, rule_count: 0 } : each,
  );
}

function idsOf(collections: unknown): string[] {
  if (!Array.isArray(collections)) return [];
  return (collections as readonly unknown[]).flatMap((each) => {
    const id = typeof each === "object" && each !== null && "id" in each ? each.id : undefined;
    return typeof id === "string" ? [id] : [];
  });
}

function joined(outcomes: readonly (readonly [prefix: string, outcome: ImportOutcome])[]): ImportOutcome {
  const issues = outcomes.flatMap(([prefix, outcome]) =>
    "issues" in outcome ? outcome.issues.map(({ path, message }) => ({ path: prefix + path, message })) : [],
  );
  if (issues.length > 0) return { issues };
  const counts = { added: 0, updated: 0, removed: 0, unchanged: 0 };
  for (const [, outcome] of outcomes) {
    if ("issues" in outcome) continue;
    for (const name of Object.keys(counts) as (keyof ImportCounts)[]) counts[name] += outcome.counts[name];
  }
  return { counts };
}
