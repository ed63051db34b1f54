import { randomUUID } from "node:crypto";
import { MOCK_LIMITS, type MockCollection, type MockRule } from "@headworks/capture-contract";
import { ApiError, notFound } from "#api/api-error.ts";
import type { Clock } from "#slice.ts";
import { type MockDraft, newMock, showMock, type StoredCollection, type StoredMock } from "./mock-rule.ts";
import type { MocksStore } from "./mocks.store.ts";
import type { MockHits } from "./mocks.task.ts";

/** The rules as operations and recording use them. Every change is durable and active on return. */
export interface RuleBook {
  readonly store: MocksStore;
  readonly hits: MockHits;
  readonly clock: Clock;
  /** Throws 404. Includes recorded rules. */
  readonly find: (id: string) => StoredMock;
  readonly show: (rule: StoredMock, withVersions?: boolean) => MockRule;
  /** Adds new rules; throws 409 above the limit. */
  readonly add: (drafts: readonly MockDraft[], isRecorded?: boolean) => StoredMock[];
  /** Updates the given fields; an expiration starts anew when it changes or the rule is enabled. */
  readonly change: (changes: readonly { readonly rule: StoredMock; readonly to: Partial<MockDraft> }[]) => StoredMock[];
  /** Keeps the previous state as a version. */
  readonly revise: (
    rule: StoredMock,
    to: Partial<MockDraft> & Pick<MockDraft, "condition" | "responseConfig">,
    comment: string | null,
  ) => StoredMock;
  readonly promote: (rules: readonly StoredMock[], collectionId: string | null) => void;
  readonly remove: (ids: readonly string[]) => void;
  readonly findCollection: (id: string) => StoredCollection;
  readonly showCollection: (collection: StoredCollection) => MockCollection;
  readonly hasCollection: (id: string) => boolean;
  /** Applies changes made directly in the store. */
  readonly changed: () => void;
}

export function createRuleBook(parts: {
  readonly store: MocksStore;
  readonly hits: MockHits;
  readonly clock: Clock;
  readonly onChange: () => void;
}): RuleBook {
  const { store, hits, clock, onChange } = parts;
  const restarted = (rule: StoredMock, to: Partial<MockDraft>): StoredMock => {
    const nowMs = clock.now();
    const next = { ...rule, ...to, updatedAtMs: nowMs };
    const isNew = to.expiration !== undefined && JSON.stringify(to.expiration) !== JSON.stringify(rule.expiration);
    const isSwitchedOn = next.enabled && !rule.enabled;
    if (!isNew && !isSwitchedOn) return next;
    return { ...next, expirationSince: { atMs: nowMs, hits: hits.progress(rule.id).hits } };
  };
  return {
    store,
    hits,
    clock,
    find: (id) => store.rule(id) ?? notFound("mock", id),
    show: (rule, withVersions = false) =>
      showMock(rule, hits.progress(rule.id), clock.now(), withVersions ? store.versions(rule.id) : []),
    add: (drafts, isRecorded = false) => {
      if (store.rules().length + drafts.length > MOCK_LIMITS.rules) {
        throw new ApiError("CONFLICT", `There would be more than ${MOCK_LIMITS.rules} mock rules; delete some first`);
      }
      const rules = drafts.map((draft) => newMock(randomUUID(), draft, clock.now(), isRecorded));
      store.insert(rules);
      onChange();
      return rules;
    },
    change: (changes) => {
      const changed = changes.map(({ rule, to }) => restarted(rule, to));
      if (changed.length === 0) return changed;
      store.update(changed.map((rule) => ({ rule })));
      onChange();
      return changed;
    },
    revise: (rule, to, comment) => {
      const nowMs = clock.now();
      const { version, condition, responseConfig } = rule;
      const next = { ...restarted(rule, to), version: version + 1 };
      store.update([{ rule: next, kept: { version, condition, responseConfig, comment, savedAtMs: nowMs } }]);
      onChange();
      return next;
    },
    promote: (rules, collectionId) => {
      if (rules.length === 0) return;
      const updatedAtMs = clock.now();
      store.update(
        rules.map((rule) => ({
          rule: { ...rule, isRecorded: false, collectionId: collectionId ?? rule.collectionId, updatedAtMs },
        })),
      );
      onChange();
    },
    remove: (ids) => {
      if (ids.length === 0) return;
      store.remove(ids);
      for (const id of ids) hits.forget(id);
      onChange();
    },
    findCollection: (id) =>
      store.collections().find((collection) => collection.id === id) ?? notFound("mock collection", id),
    showCollection: (collection) => showCollection(collection, store.rules()),
    hasCollection: (id) => store.collections().some((collection) => collection.id === id),
    changed: onChange,
  };
}

function showCollection(collection: StoredCollection, rules: readonly StoredMock[]): MockCollection {
  return {
    id: collection.id,
    name: collection.name,
    description: collection.description,
    enabled: collection.enabled,
    tags: [...collection.tags],
    color: collection.color,
    created_at: new Date(collection.createdAtMs).toISOString(),
    updated_at: new Date(collection.updatedAtMs).toISOString(),
    rule_count: rules.filter(({ collectionId }) => collectionId === collection.id).length,
  };
}
