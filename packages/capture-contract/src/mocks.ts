import { defineOperations, nullable, strictObject } from "@headworks/contract-kit";
import { Type } from "typebox";
import {
  MadeFromTraffic,
  MockBatchToggle,
  MockBatchToggled,
  MockListQuery,
  MockRecording,
  MocksFromTraffic,
  MockCollection,
  mockCollectionProperties,
  MockHit,
  MockHitStats,
  MockMatch,
  mockPageProperties,
  MockSample,
  MockTemplate,
  MockTrial,
  MockUpdate,
  NewMock,
} from "./mock-bodies.ts";
import {
  ImportMockDocumentQuery,
  ImportMocks,
  MockDocument,
  MockImportPreview,
  MockImportResult,
} from "./mock-documents.ts";
import { MockRule, MockVersion } from "./mock-rule.ts";
import { MockMiss, MockServing, StartServing } from "./mock-serving.ts";
import { booleanText, CreatedId, Id, IdParams, named, Timestamp, ToggleBody, ToggleResult } from "./primitives.ts";

const page = strictObject(mockPageProperties);

/** Rules, their collections, their history. */
const ruleOperations = defineOperations({
  listMocks: {
    method: "GET",
    path: "/mocks",
    summary: "List mock rules, newest first",
    access: "mocks:read",
    query: MockListQuery,
    responses: { 200: Type.Array(MockRule) },
    expose: { mcp: { name: "list_mocks", readOnly: true } },
  },
  createMock: {
    method: "POST",
    path: "/mocks",
    summary: "Create a mock rule",
    access: "mocks:write",
    body: NewMock,
    responses: { 201: CreatedId },
    expose: { mcp: { name: "create_mock", readOnly: false } },
  },
  createAdvancedMock: {
    method: "POST",
    path: "/mocks/advanced",
    summary: "Create a mock rule with labels, collection and several answers",
    access: "mocks:write",
    body: NewMock,
    responses: { 201: CreatedId },
  },
  listMockTemplates: {
    method: "GET",
    path: "/mocks/templates",
    summary: "Answers to begin with",
    access: "mocks:read",
    responses: { 200: Type.Array(MockTemplate) },
  },
  exportMocks: {
    method: "GET",
    path: "/mocks/export",
    summary: "All mock rules as JSON, oldest first",
    access: "mocks:read",
    responses: { 200: Type.Array(MockRule) },
  },
  importMocks: {
    method: "POST",
    path: "/mocks/import",
    summary: "Make mock rules of a HAR, OpenAPI or Postman document or of an export",
    description: "For a request of up to 10 MiB; larger documents are sent as they are to `/mocks/import/document`.",
    access: "mocks:write",
    body: ImportMocks,
    responses: { 200: MockImportPreview, 201: MockImportResult },
    expose: { cli: false },
  },
  importMockDocument: {
    method: "POST",
    path: "/mocks/import/document",
    summary: "Make mock rules of a HAR, OpenAPI or Postman document or of an export",
    description:
      "The document itself, streamed; what else the import is to do stands in the query. `Task` events tell how far it is.",
    access: "mocks:write",
    query: ImportMockDocumentQuery,
    body: MockDocument,
    responses: { 200: MockImportPreview, 201: MockImportResult },
  },
  batchToggleMocks: {
    method: "POST",
    path: "/mocks/batch-toggle",
    summary: "Enable or disable several mock rules",
    access: "mocks:write",
    body: MockBatchToggle,
    responses: {
      200: MockBatchToggled,
    },
  },
  previewMock: {
    method: "POST",
    path: "/mocks/preview",
    summary: "Which rule would answer a request, and how",
    access: "mocks:write",
    body: MockSample,
    responses: {
      200: MockMatch,
    },
  },
  getMock: {
    method: "GET",
    path: "/mocks/{id}",
    summary: "One mock rule with its former versions",
    access: "mocks:read",
    params: IdParams,
    responses: { 200: MockRule },
  },
  updateMock: {
    method: "PUT",
    path: "/mocks/{id}",
    summary: "Update a mock rule; what it was is kept as a version",
    access: "mocks:write",
    params: IdParams,
    body: MockUpdate,
    responses: { 200: MockRule },
  },
  deleteMock: {
    method: "DELETE",
    path: "/mocks/{id}",
    summary: "Delete a mock rule",
    access: "mocks:delete",
    params: IdParams,
    responses: { 204: null },
  },
  toggleMock: {
    method: "POST",
    path: "/mocks/{id}/toggle",
    summary: "Enable or disable a mock rule",
    access: "mocks:write",
    params: IdParams,
    body: ToggleBody,
    bodyOptional: true,
    responses: { 200: ToggleResult },
  },
  duplicateMock: {
    method: "POST",
    path: "/mocks/{id}/duplicate",
    summary: "Copy a mock rule",
    access: "mocks:write",
    params: IdParams,
    body: nullable(
      strictObject({
        new_name: Type.Optional(nullable(named("Name of the copy"), { description: "`<name> (copy)` unless given" })),
      }),
    ),
    bodyOptional: true,
    responses: { 201: CreatedId },
  },
  rollbackMock: {
    method: "POST",
    path: "/mocks/{id}/rollback",
    summary: "Give a mock rule the condition and answers of a former version",
    access: "mocks:write",
    params: IdParams,
    body: strictObject({ version: Type.Integer({ minimum: 1, description: "Number of the version" }) }),
    responses: { 200: MockRule },
  },
  listMockVersions: {
    method: "GET",
    path: "/mocks/{id}/versions",
    summary: "Former versions of a mock rule, newest first",
    access: "mocks:read",
    params: IdParams,
    responses: { 200: Type.Array(MockVersion) },
  },
  testMock: {
    method: "POST",
    path: "/mocks/{id}/test",
    summary: "Whether a rule matches a request, and what decided",
    access: "mocks:write",
    params: IdParams,
    body: MockSample,
    responses: {
      200: MockTrial,
    },
  },
});

const collectionOperations = defineOperations({
  listMockCollections: {
    method: "GET",
    path: "/mocks/collections",
    summary: "List collections of mock rules, newest first",
    access: "mocks:read",
    responses: { 200: Type.Array(MockCollection) },
  },
  createMockCollection: {
    method: "POST",
    path: "/mocks/collections",
    summary: "Create a collection",
    access: "mocks:write",
    body: strictObject({ name: named("Name of the collection"), ...mockCollectionProperties }),
    responses: { 201: CreatedId },
  },
  getMockCollection: {
    method: "GET",
    path: "/mocks/collections/{id}",
    summary: "One collection",
    access: "mocks:read",
    params: IdParams,
    responses: { 200: MockCollection },
  },
  updateMockCollection: {
    method: "PUT",
    path: "/mocks/collections/{id}",
    summary: "Update a collection; what is left out stays",
    access: "mocks:write",
    params: IdParams,
    body: strictObject({
      name: Type.Optional(named("Name of the collection")),
      ...mockCollectionProperties,
      id: Type.Optional(Id),
      created_at: Type.Optional(Timestamp),
      updated_at: Type.Optional(Timestamp),
      rule_count: Type.Optional(Type.Integer()),
    }),
    responses: { 200: MockCollection },
  },
  deleteMockCollection: {
    method: "DELETE",
    path: "/mocks/collections/{id}",
    summary: "Delete a collection; its rules stay without one unless they are to be deleted too",
    access: "mocks:delete",
    params: IdParams,
    query: strictObject({ delete_rules: Type.Optional(booleanText("Delete its rules too")) }),
    body: nullable(
      strictObject({ delete_rules: Type.Optional(Type.Boolean({ description: "Delete its rules too" })) }),
    ),
    bodyOptional: true,
    responses: { 204: null },
  },
  toggleMockCollection: {
    method: "POST",
    path: "/mocks/collections/{id}/toggle",
    summary: "Enable or disable a collection and all of its rules",
    access: "mocks:write",
    params: IdParams,
    body: ToggleBody,
    bodyOptional: true,
    responses: { 200: strictObject({ id: Id, enabled: Type.Boolean(), toggled: Type.Integer() }) },
  },
});

const historyOperations = defineOperations({
  listMockHits: {
    method: "GET",
    path: "/mocks/analytics",
    summary: "The last 1,000 answers of all mock rules, newest first",
    access: "mocks:read",
    query: page,
    responses: { 200: Type.Array(MockHit) },
  },
  clearMockHistory: {
    method: "POST",
    path: "/mocks/history/clear",
    summary: "Forget all answers that mock rules gave; the rules keep their counts",
    access: "mocks:delete",
    responses: { 204: null },
  },
  clearMockAnalytics: {
    method: "POST",
    path: "/mocks/analytics/clear",
    summary: "Same as clearing the history",
    access: "mocks:delete",
    responses: { 204: null },
    expose: { cli: false },
  },
  getMockStats: {
    method: "GET",
    path: "/mocks/{id}/analytics",
    summary: "What the answers of one mock rule were like",
    access: "mocks:read",
    params: IdParams,
    responses: { 200: MockHitStats },
  },
  listMockHistory: {
    method: "GET",
    path: "/mocks/{id}/history",
    summary: "Answers that one mock rule gave, newest first",
    access: "mocks:read",
    params: IdParams,
    query: page,
    responses: { 200: Type.Array(MockHit) },
  },
});

const recordingOperations = defineOperations({
  createMocksFromTraffic: {
    method: "POST",
    path: "/mocks/from-traffic",
    summary: "Make mock rules of captured entries",
    access: "mocks:write",
    body: MocksFromTraffic,
    responses: { 201: MadeFromTraffic },
  },
  setMockRecording: {
    method: "POST",
    path: "/mocks/recording",
    summary: "Switch recording on or off: while on, answers of origins become recorded rules",
    access: "mocks:write",
    body: strictObject({ enabled: Type.Boolean({ description: "On or off; off again after a restart" }) }),
    responses: { 200: MockRecording },
  },
  getMockRecording: {
    method: "GET",
    path: "/mocks/recording/status",
    summary: "Whether answers are being recorded",
    access: "mocks:read",
    responses: { 200: MockRecording },
  },
  listRecordedMocks: {
    method: "GET",
    path: "/mocks/recording/recorded",
    summary: "Recorded rules, which answer nothing before they are promoted, newest first",
    access: "mocks:read",
    query: page,
    responses: { 200: Type.Array(MockRule) },
  },
  promoteRecordedMocks: {
    method: "POST",
    path: "/mocks/recording/promote",
    summary: "Make recorded rules answer",
    access: "mocks:write",
    body: nullable(
      strictObject({
        ids: Type.Optional(
          nullable(Type.Array(Type.String({ minLength: 1, maxLength: 64 }), { maxItems: 10_000 }), {
            description: "These alone; all unless given",
          }),
        ),
        collection_id: Type.Optional(nullable(Id, { description: "Collection that they join" })),
      }),
    ),
    bodyOptional: true,
    responses: { 200: strictObject({ promoted: Type.Integer() }) },
  },
  clearRecordedMocks: {
    method: "POST",
    path: "/mocks/recording/clear",
    summary: "Forget recorded rules",
    access: "mocks:delete",
    responses: { 204: null },
  },
});

const servingOperations = defineOperations({
  getMockServing: {
    method: "GET",
    path: "/mocks/serving",
    summary: "Whether a recorded session stands in for all origins",
    access: "mocks:read",
    responses: { 200: MockServing },
  },
  startMockServing: {
    method: "POST",
    path: "/mocks/serving",
    summary: "Let a recorded session stand in for all origins; off again after a restart",
    access: "mocks:write",
    body: StartServing,
    responses: { 200: MockServing },
  },
  stopMockServing: {
    method: "DELETE",
    path: "/mocks/serving",
    summary: "Let requests go to their origins again",
    access: "mocks:write",
    responses: { 200: MockServing },
  },
  listMockMisses: {
    method: "GET",
    path: "/mocks/serving/misses",
    summary: "Requests that the served session has no answer for, with the recorded ones closest to them, newest first",
    access: "mocks:read",
    query: page,
    responses: { 200: Type.Array(MockMiss) },
  },
});

export const mocksOperations = {
  ...ruleOperations,
  ...collectionOperations,
  ...historyOperations,
  ...recordingOperations,
  ...servingOperations,
} as const;
