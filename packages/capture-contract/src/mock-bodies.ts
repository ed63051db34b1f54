import type { Static } from "typebox";
import { nullable, oneOf, strictObject, Type, upload } from "@headworks/contract-kit";
import { Condition, conditionShorthand } from "./condition.ts";
import { HeadersList } from "./message.ts";
import {
  flatResponse,
  MOCK_LIMITS,
  MockExpiration,
  MockHeaders,
  MockResponse,
  MockRule,
  NewMockResponse,
  NewMockResponseConfig,
} from "./mock-rule.ts";
import { booleanText, EntryId, Id, named, NoDevice, Timestamp } from "./primitives.ts";

const tags = Type.Array(Type.String({ minLength: 1, maxLength: 255 }), { maxItems: 100, description: "Labels" });
const nullableText = (description: string) => nullable(Type.String({ maxLength: 4096 }), { description });

const writable = {
  name: Type.Optional(named("Name of the rule; optional with the shorthand")),
  description: Type.Optional(nullableText("Purpose")),
  tags: Type.Optional(tags),
  collection_id: Type.Optional(nullable(Id, { description: "Collection of the rule" })),
  condition: Type.Optional(Condition),
  ...conditionShorthand,
  response: Type.Optional(NewMockResponse),
  response_config: Type.Optional(NewMockResponseConfig),
  ...flatResponse,
  enabled: Type.Optional(Type.Boolean({ description: "Whether the rule is active. Default: true" })),
  priority: Type.Optional(
    Type.Integer({
      minimum: -1_000_000,
      maximum: 1_000_000,
      description: "If several rules match, the lowest number wins. Default: 100",
    }),
  ),
  expiration: Type.Optional(nullable(MockExpiration)),
  response_schema: Type.Optional(
    nullable(Type.String({ maxLength: 262_144 }), { description: "JSON Schema, as text, for the bodies" }),
  ),
  response_script: Type.Optional(Type.Null({ description: "Reserved: must be null" })),
  device_id: Type.Optional(NoDevice),
};

/** Body of a create: a condition and a response, or the flat form (`url_pattern`, `method`, `status_code`, `body`, …). */
export const NewMock = strictObject(writable);

export type NewMock = Static<typeof NewMock>;

/** Body of an update: what GET returned may be sent back; its read-only fields are not changes. */
export const MockUpdate = strictObject({
  ...writable,
  comment: Type.Optional(nullableText("Comment on the version that this update replaces")),
  id: Type.Optional(Id),
  created_at: Type.Optional(Timestamp),
  updated_at: Type.Optional(Timestamp),
  hit_count: Type.Optional(Type.Integer()),
  expired: Type.Optional(Type.Boolean()),
  version: Type.Optional(Type.Integer()),
  version_history: Type.Optional(Type.Array(Type.Unknown())),
});

export type MockUpdate = Static<typeof MockUpdate>;

/** A request to try rules on; everything but its URL has a default. */
export const MockSampleRequest = strictObject({
  method: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: "Default: GET" })),
  url: Type.String({ minLength: 1, maxLength: 65_536, description: "The absolute URL" }),
  headers: Type.Optional(MockHeaders),
  headers_list: Type.Optional(HeadersList),
  body: Type.Optional(
    nullable(Type.String({ maxLength: MOCK_LIMITS.bodyBytes }), { description: "Text, or `base64:` and base64" }),
  ),
  body_encoding: Type.Optional(nullable(oneOf(["utf8", "base64"]), { description: "Encoding of `body`" })),
  host: Type.Optional(Type.String({ description: "Ignored; the URL determines it" })),
  path: Type.Optional(Type.String({ description: "Ignored; the URL determines it" })),
  content_type: Type.Optional(
    nullable(Type.String({ maxLength: 255 }), { description: "Media type, if `headers` has none" }),
  ),
  http_version: Type.Optional(nullable(Type.String())),
  trailers_list: Type.Optional(HeadersList),
  body_size: Type.Optional(Type.Integer()),
  body_stored_size: Type.Optional(Type.Integer()),
  body_state: Type.Optional(Type.String()),
  truncated: Type.Optional(Type.Boolean()),
});

export type MockSampleRequest = Static<typeof MockSampleRequest>;

/** A request, written down or captured. */
export const MockSample = strictObject({
  request: Type.Optional(MockSampleRequest),
  entry_id: Type.Optional(
    Type.String({ maxLength: 64, description: "A captured entry, instead of `request`", "x-entry-id": true }),
  ),
});

/** Rules under one name, switched together. */
export const MockCollection = strictObject(
  {
    id: Id,
    name: Type.String(),
    description: nullable(Type.String()),
    enabled: Type.Boolean({ description: "If off, none of its rules is active" }),
    tags: Type.Array(Type.String()),
    color: nullable(Type.String()),
    created_at: Timestamp,
    updated_at: Timestamp,
    rule_count: Type.Integer(),
  },
  { $id: "MockCollection" },
);

export type MockCollection = Static<typeof MockCollection>;

/** Optional properties of a collection. */
export const mockCollectionProperties = {
  description: Type.Optional(nullableText("Purpose of its rules")),
  tags: Type.Optional(tags),
  enabled: Type.Optional(Type.Boolean({ description: "Whether its rules can be active" })),
  color: Type.Optional(nullable(Type.String({ maxLength: 64 }), { description: "Display colour" })),
};

/** One response from a rule. */
export const MockHit = strictObject(
  {
    mock_id: Id,
    timestamp: Timestamp,
    request_url: Type.String(),
    request_method: Type.String(),
    response_status: Type.Integer(),
    response_time_ms: Type.Number({ description: "From the request head to the response, including the delay" }),
    response_index: nullable(Type.Integer({ description: "Index of the rule's response; null if it has only one" })),
  },
  { $id: "MockHit" },
);

export type MockHit = Static<typeof MockHit>;

/** Statistics of a rule's responses since the history was last cleared. */
export const MockHitStats = strictObject(
  {
    total_hits: Type.Integer(),
    avg_response_time_ms: nullable(Type.Number()),
    min_response_time_ms: nullable(Type.Number()),
    max_response_time_ms: nullable(Type.Number()),
    first_hit: nullable(Timestamp),
    last_hit: nullable(Timestamp),
  },
  { $id: "MockHitStats" },
);

export type MockHitStats = Static<typeof MockHitStats>;

export const MockTemplate = strictObject(
  { name: Type.String(), description: Type.String(), template: NewMockResponse },
  { $id: "MockTemplate" },
);

/** A part of a list that can grow. */
export const mockPageProperties = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1000, default: 100, description: "Maximum number of items" }),
  ),
  offset: Type.Optional(
    Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0, description: "Number of items to skip" }),
  ),
};

/** Whether responses of origins become rules. */
export const MockRecording = strictObject(
  {
    recording: Type.Boolean(),
    recorded: Type.Integer({ description: "Recorded rules that were neither promoted nor cleared yet" }),
    missed: Type.Integer({ description: "Responses that could not be recorded since it was switched on" }),
  },
  { $id: "MockRecording" },
);

/** The captured entries that become rules. */
export const MocksFromTraffic = strictObject({
  entry_ids: Type.Array(EntryId, {
    minItems: 1,
    maxItems: 1000,
    description: "Ids of entries",
  }),
  name_prefix: Type.Optional(nullable(Type.String({ maxLength: 128 }), { description: "Prefix of each rule's name" })),
  enabled: Type.Optional(Type.Boolean({ description: "Whether the rules are active at once. Default: true" })),
  collection_id: Type.Optional(nullable(Id, { description: "Collection of the new rules" })),
});

const entryError = strictObject({ entry_id: Type.String(), error: Type.String() });

/** The rules that were made, and why others were not. */
export const MadeFromTraffic = strictObject({
  created: Type.Integer(),
  ids: Type.Array(Id),
  errors: Type.Array(entryError),
  total: Type.Integer(),
});

/** The filter of a list of rules. */
export const MockListQuery = strictObject({
  ...mockPageProperties,
  collection_id: Type.Optional(Type.String({ maxLength: 64, description: "Only rules of this collection" })),
  tag: Type.Optional(Type.String({ maxLength: 255, description: "Only rules with this label" })),
  enabled: Type.Optional(booleanText("Only enabled rules, or only disabled ones")),
  search: Type.Optional(Type.String({ maxLength: 255, description: "Text in name or description" })),
});

/** Several rules switched at once. */
export const MockBatchToggle = strictObject({
  ids: Type.Array(Type.String({ minLength: 1, maxLength: 64 }), { maxItems: 10_000, description: "Ids of rules" }),
  enabled: Type.Boolean({ description: "On or off" }),
});

/** The outcome of the import. */
export const MockBatchToggled = strictObject({
  updated: Type.Integer(),
  not_found: Type.Array(Type.String()),
  total: Type.Integer(),
});

/** The rule that matches a request, and its response. */
export const MockMatch = strictObject({
  matched: Type.Boolean(),
  rule_id: Type.Optional(Id),
  rule_name: Type.Optional(Type.String()),
  response: Type.Optional(MockResponse),
  response_index: Type.Optional(nullable(Type.Integer())),
  message: Type.Optional(Type.String()),
});

/** Whether one rule matches a request, and why. */
export const MockTrial = strictObject({
  matches: Type.Boolean(),
  rule_id: Id,
  rule_name: Type.String(),
  explanation: Type.Array(Type.String(), { description: "The parts of the condition with their results" }),
});

/** Recorded rules to activate. */
export const PromoteMocks = strictObject({
  ids: Type.Optional(
    nullable(Type.Array(Type.String({ minLength: 1, maxLength: 64 }), { maxItems: 10_000 }), {
      description: "Only these. Default: all",
    }),
  ),
  collection_id: Type.Optional(nullable(Id, { description: "Collection of the rules" })),
});

/** The name of a copy. */
export const DuplicateMock = strictObject({
  new_name: Type.Optional(nullable(named("Name of the copy"), { description: "Default: `<name> (copy)`" })),
});

/** The parts of a request that must equal the recorded one; omitted ones have their default. */
export const ServingMatch = strictObject(
  {
    method: Type.Optional(Type.Boolean({ description: "The method (default true)" })),
    scheme: Type.Optional(Type.Boolean({ description: "`http` or `https` (default false)" })),
    host: Type.Optional(Type.Boolean({ description: "Host and port (default true)" })),
    path: Type.Optional(Type.Boolean({ description: "The path without its query (default true)" })),
    query: Type.Optional(Type.Boolean({ description: "The query parameters, in any order (default true)" })),
    ignore_query: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 255 }), {
        maxItems: 1000,
        description: "Query parameters to ignore",
      }),
    ),
    body: Type.Optional(Type.Boolean({ description: "The bytes of the body (default false)" })),
  },
  { $id: "ServingMatch" },
);

export type ServingMatch = Static<typeof ServingMatch>;

export const StartServing = strictObject({
  session_id: Id,
  match: Type.Optional(ServingMatch),
  repeat: Type.Optional(
    oneOf(["last", "cycle", "none"], {
      description:
        "After all recorded responses to a request were used: repeat the last (default), start over, or treat it as not recorded",
    }),
  ),
  strict: Type.Optional(
    Type.Boolean({
      description:
        "True (default): requests that were not recorded get 502 and are not sent; false: they go to their origin",
    }),
  ),
});

export type StartServing = Static<typeof StartServing>;

/** A recorded session that stands in for all origins. */
export const MockServing = strictObject(
  {
    serving: Type.Boolean(),
    session_id: nullable(Id),
    session_name: nullable(Type.String()),
    strict: Type.Boolean(),
    repeat: oneOf(["last", "cycle", "none"]),
    match: ServingMatch,
    started_at: nullable(Timestamp),
    recorded: Type.Integer({ description: "Recorded responses that can be served" }),
    skipped: Type.Integer({ description: "Entries without a response that can be served" }),
    answered: Type.Integer({ description: "Requests served from the session" }),
    missed: Type.Integer({ description: "Requests without a recorded response" }),
  },
  { $id: "MockServing" },
);

export type MockServing = Static<typeof MockServing>;

/** A request without a response in the served session. */
export const MockMiss = strictObject(
  {
    timestamp: Timestamp,
    method: Type.String(),
    url: Type.String(),
    reason: Type.String(),
    near: Type.Array(
      strictObject({
        entry_id: Id,
        method: Type.String(),
        url: Type.String(),
        differences: Type.Array(Type.String(), { description: "What differs" }),
      }),
      { description: "The most similar recorded requests, best match first" },
    ),
  },
  { $id: "MockMiss" },
);

export type MockMiss = Static<typeof MockMiss>;

const documentFormat = oneOf(["har", "openapi", "postman", "json"], {
  description: "HAR 1.2, OpenAPI 3.0 or 3.1 (JSON or YAML), Postman collection 2.1, or an export of this service",
});

export const ImportMocks = strictObject({
  format: documentFormat,
  data: Type.Unknown({ description: "The document, as text or as an object" }),
  dry_run: Type.Optional(Type.Boolean({ description: "Preview: create nothing" })),
  collection_id: Type.Optional(nullable(Id, { description: "Collection of the new rules" })),
  enabled: Type.Optional(Type.Boolean({ description: "False: all rules are created disabled" })),
  base_url: Type.Optional(
    nullable(Type.String({ maxLength: 4096 }), {
      description: "OpenAPI: base URL instead of the document's `servers`; a path alone applies to every host",
    }),
  ),
});

export type ImportMocks = Static<typeof ImportMocks>;

/** Bytes of a document that rules are made of, by format. A HAR is read entry by entry, the others as a whole. */
export const MAX_MOCK_DOCUMENT_BYTES = {
  har: 104_857_600,
  openapi: 26_214_400,
  postman: 26_214_400,
  json: 26_214_400,
} as const;

/** Options of an import whose body is the document itself. */
export const ImportMockDocumentQuery = strictObject({
  format: documentFormat,
  dry_run: Type.Optional(booleanText("Preview: create nothing")),
  collection_id: Type.Optional(
    Type.String({ minLength: 1, maxLength: 64, description: "Collection of the new rules" }),
  ),
  enabled: Type.Optional(booleanText("Whether the rules are active at once")),
  base_url: Type.Optional(
    Type.String({
      maxLength: 4096,
      description: "OpenAPI: base URL instead of the document's `servers`; a path alone applies to every host",
    }),
  ),
  task_id: Type.Optional(Type.String({ maxLength: 64, description: "Id of this import in `Task` events" })),
});

const importResult = {
  imported: Type.Integer({ description: "Number of rules created (or to be created)" }),
  format: Type.String(),
  skipped: Type.Integer({ description: "Parts of the document without a rule" }),
  warnings: Type.Array(Type.String(), {
    description: "What was skipped or guessed: at most 100 sentences; the last one then counts the others",
  }),
};

/** The result of an import. */
export const MockImportResult = strictObject({ ...importResult, ids: Type.Array(Id) }, { $id: "MockImportResult" });

/** The result of a dry run. */
export const MockImportPreview = strictObject(
  { ...importResult, dry_run: Type.Boolean(), rules: Type.Array(MockRule, { description: "The first 200" }) },
  { $id: "MockImportPreview" },
);

/** A document that rules are made of, as it is. */
export const MockDocument = upload(
  ["application/octet-stream", "application/json", "application/yaml"],
  "HAR 1.1 or 1.2 of up to 100 MiB; OpenAPI 3.0 or 3.1 in JSON or YAML, a Postman collection 2.1 or an export of this service, each up to 25 MiB",
);
