import { randomUUID } from "node:crypto";
import type { mocksOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { validationError } from "#api/api-error.ts";
import type { StoredMock } from "./mock-rule.ts";
import type { RuleBook } from "./rule-book.ts";

type CollectionHandlers = Pick<
  Handlers<typeof mocksOperations>,
  | "listMockCollections"
  | "createMockCollection"
  | "getMockCollection"
  | "updateMockCollection"
  | "deleteMockCollection"
  | "toggleMockCollection"
>;

/** Handlers of the operations on collections. */
export function collectionHandlers(book: RuleBook): CollectionHandlers {
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
      store.together(() => {
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
      store.together(() => {
        store.saveCollection({ ...collection, enabled, updatedAtMs: clock.now() });
        book.change(rules.filter((rule) => rule.enabled !== enabled).map((rule) => ({ rule, to: { enabled } })));
      });
      book.changed();
      return { status: 200, body: { id: collection.id, enabled, toggled: rules.length } };
    },
  };
}
