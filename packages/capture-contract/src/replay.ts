import type { Static } from "typebox";
import { defineOperations, nullable, oneOf, strictObject, Type } from "@headworks/contract-kit";
import { DiffOptions, DiffOrder, EntryDiff, SessionDiff, SessionDiffOrder } from "./diff.ts";
import { RequestData, ResponseData } from "./message.ts";
import {
  booleanText,
  COUNTED,
  CreatedId,
  EntryId,
  EntryIdParams,
  Id,
  IdParams,
  named,
  Timestamp,
} from "./primitives.ts";

const milliseconds = nullable(Type.Number());

/** Many replays of one request. */
export const ReplayBatch = strictObject(
  {
    id: Id,
    saved_request_id: nullable(Type.String()),
    source_entry_id: nullable(Type.String()),
    state: oneOf(["running", "done", "cancelled", "interrupted"], {
      description: "`interrupted`: the service stopped before it completed",
    }),
    iterations: Type.Integer(),
    concurrency: Type.Integer(),
    delay_ms: nullable(Type.Integer()),
    total: Type.Integer({ description: "Completed replays" }),
    succeeded: Type.Integer({ description: "Replays with a response, whatever its status" }),
    failed: Type.Integer(),
    min_ms: milliseconds,
    max_ms: milliseconds,
    avg_ms: milliseconds,
    p50_ms: milliseconds,
    p90_ms: milliseconds,
    p95_ms: nullable(Type.Number({ description: "Nearest rank over the replays with a response" })),
    p99_ms: milliseconds,
    histogram: Type.Array(strictObject({ from_ms: Type.Number(), to_ms: Type.Number(), count: Type.Integer() }), {
      description: "Histogram of durations, at most 20 equal slices",
    }),
    statuses: Type.Record(Type.String(), Type.Integer(), { description: "Count of each status" }),
    errors: Type.Array(strictObject({ code: Type.String(), message: Type.String(), count: Type.Integer() }), {
      description: "Most frequent first; `message` is the first one's",
    }),
    started_at: Timestamp,
    finished_at: nullable(Timestamp),
  },
  { $id: "ReplayBatch" },
);

export type ReplayBatch = Static<typeof ReplayBatch>;

export const REPLAY_LIMITS = { iterations: 10_000, concurrency: 100, delayMs: 600_000, redirects: 20 } as const;

const method = Type.String({
  minLength: 1,
  maxLength: 64,
  pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
  description: "Request method",
});

const url = Type.String({ minLength: 1, maxLength: 65_536, description: "Absolute URL of http or https" });
const headers = Type.Record(Type.String({ maxLength: 256 }), Type.String({ maxLength: 65_536 }));

const pairs = (description: string) =>
  Type.Array(Type.Array(Type.String({ maxLength: 65_536 }), { minItems: 2, maxItems: 2 }), {
    maxItems: 512,
    description,
  });

const bodyText = Type.String({ description: "Text, or `base64:` and standard base64 for bytes" });
const tags = Type.Array(Type.String({ minLength: 1, maxLength: 64 }), { maxItems: 64, description: "Labels" });

const variables = Type.Record(Type.String({ pattern: "^[A-Za-z_][A-Za-z0-9_.-]{0,63}$" }), Type.String(), {
  additionalProperties: false,
  maxProperties: 256,
  description:
    "Values for `{{name}}` in URL, header fields and body; `{{$uuid}}`, `{{$timestamp}}`, `{{$timestamp_ms}}`, `{{$iso_timestamp}}`, `{{$random_int}}` and `{{$iteration}}` need none",
});

const listing = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1000, default: 100, description: "Maximum number of items" }),
  ),
  offset: Type.Optional(
    Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0, description: "Number of items to skip" }),
  ),
};

/** A request as a caller writes it: what a saved request shows may be sent back, and only `url` is needed. */
export const WrittenRequest = strictObject(
  {
    method: Type.Optional(method),
    url,
    headers: Type.Optional(headers),
    headers_list: Type.Optional(pairs("Takes precedence over `headers`, since it keeps order and duplicates")),
    body: Type.Optional(nullable(bodyText)),
    content_type: Type.Optional(
      nullable(Type.String({ maxLength: 1024, description: "Used as Content-Type if that is missing" })),
    ),
    host: Type.Optional(Type.String()),
    path: Type.Optional(Type.String()),
    trailers_list: Type.Optional(pairs("Not sent")),
    body_encoding: Type.Optional(nullable(oneOf(["utf8", "base64"]))),
    body_size: Type.Optional(Type.Integer()),
    body_stored_size: Type.Optional(Type.Integer()),
    body_state: Type.Optional(Type.String()),
    truncated: Type.Optional(Type.Boolean()),
    http_version: Type.Optional(nullable(Type.String())),
  },
  { $id: "WrittenRequest" },
);

export type WrittenRequest = Static<typeof WrittenRequest>;

/** A request kept to be sent again. */
export const SavedRequest = strictObject(
  {
    id: Id,
    source_entry_id: nullable(Type.String({ description: "The captured entry that it was created from" })),
    name: nullable(Type.String()),
    request: RequestData,
    saved_at: Timestamp,
    updated_at: Timestamp,
    tags: Type.Array(Type.String()),
    collection: nullable(Type.String()),
  },
  { $id: "SavedRequest" },
);

export type SavedRequest = Static<typeof SavedRequest>;

const about = {
  name: Type.Optional(nullable(named("Name"))),
  tags: Type.Optional(tags),
  collection: Type.Optional(nullable(named("Collection of the request"))),
};

/** Body of a save: a request, an entry to take it from, or both, when the request wins. */
export const NewSavedRequest = strictObject({
  request: Type.Optional(WrittenRequest),
  entry_id: Type.Optional(nullable(EntryId)),
  traffic_id: Type.Optional(nullable(Id)),
  ...about,
});

export type NewSavedRequest = Static<typeof NewSavedRequest>;

/** Body of an update: what GET returned may be sent back; its read-only fields are not changes. */
export const SavedRequestUpdate = strictObject({
  request: WrittenRequest,
  ...about,
  id: Type.Optional(Id),
  source_entry_id: Type.Optional(nullable(Type.String())),
  saved_at: Type.Optional(Timestamp),
  updated_at: Type.Optional(Timestamp),
});

export type SavedRequestUpdate = Static<typeof SavedRequestUpdate>;

/** Changes to the request before it is replayed. */
export const ReplayModifications = strictObject(
  {
    url: Type.Optional(nullable(url)),
    method: Type.Optional(nullable(method)),
    headers: Type.Optional(nullable(headers, { description: "Header fields to add, or to replace by name" })),
    remove_headers: Type.Optional(
      nullable(Type.Array(Type.String({ minLength: 1, maxLength: 256 }), { maxItems: 256 }), {
        description: "Names of header fields to remove",
      }),
    ),
    body: Type.Optional(nullable(bodyText, { description: "New body; empty for none, null for the present one" })),
    follow_redirects: Type.Optional(nullable(Type.Boolean(), { description: "Follow redirects" })),
    max_redirects: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: REPLAY_LIMITS.redirects,
        description: "Maximum number of redirects. Default: 10",
      }),
    ),
  },
  { $id: "ReplayModifications" },
);

export type ReplayModifications = Static<typeof ReplayModifications>;

const Redirect = strictObject({
  status_code: Type.Integer(),
  url: Type.String({ description: "URL that redirected" }),
  entry_id: nullable(Type.String()),
});

/** The result of one replay. */
export const ReplayResult = strictObject(
  {
    id: Id,
    saved_request_id: nullable(Type.String()),
    source_entry_id: nullable(Type.String({ description: "The captured entry whose request was sent" })),
    batch_id: nullable(Type.String()),
    iteration: nullable(Type.Integer({ description: "Number within its batch, from 1" })),
    entry_id: nullable(Type.String({ description: "The captured entry of this replay; null if capture is off" })),
    request: RequestData,
    response: nullable(ResponseData),
    error: nullable(Type.String()),
    error_code: nullable(Type.String()),
    redirects: Type.Array(Redirect),
    executed_at: Timestamp,
    duration_ms: Type.Number(),
    diff: Type.Optional(EntryDiff),
  },
  { $id: "ReplayResult" },
);

export type ReplayResult = Static<typeof ReplayResult>;

/** Body of a replay. */
export const ReplayOrder = strictObject({
  modifications: Type.Optional(nullable(ReplayModifications)),
  variables: Type.Optional(variables),
  diff: Type.Optional(
    Type.Union([Type.Boolean(), DiffOptions], { description: "Compare the response with that of the original entry" }),
  ),
});

export type ReplayOrder = Static<typeof ReplayOrder>;

const batchNumbers = {
  iterations: Type.Optional(
    Type.Integer({ minimum: 1, maximum: REPLAY_LIMITS.iterations, description: "Number of requests. Default: 1" }),
  ),
  concurrency: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: REPLAY_LIMITS.concurrency,
      description: "Number of concurrent requests. Default: 1",
    }),
  ),
  delay_ms: Type.Optional(
    nullable(
      Type.Integer({
        minimum: 0,
        maximum: REPLAY_LIMITS.delayMs,
        description: "Delay before each request after the first ones",
      }),
    ),
  ),
};

/** Body of a batch: the numbers flat or in `config`. */
export const BatchOrder = strictObject({
  ...batchNumbers,
  config: Type.Optional(nullable(strictObject(batchNumbers))),
  modifications: Type.Optional(nullable(ReplayModifications)),
  variables: Type.Optional(variables),
  wait: Type.Optional(
    Type.Boolean({ description: "False: respond with 202 at once and let the batch continue. Default: true" }),
  ),
});

export type BatchOrder = Static<typeof BatchOrder>;

const resultsLimit = Type.Optional(
  Type.Integer({
    minimum: 0,
    maximum: REPLAY_LIMITS.iterations,
    default: 1000,
    description: "Maximum number of results; the history has the others",
  }),
);

const ReplayBatchWithResults = strictObject(
  { ...ReplayBatch.properties, results: Type.Array(ReplayResult, { description: "In order of iteration" }) },
  { $id: "ReplayBatchWithResults" },
);

const decompressed = strictObject({
  decompressed: Type.Optional(booleanText("Remove the content coding of bodies (gzip and others)")),
});

export const replayOperations = defineOperations({
  listSavedRequests: {
    method: "GET",
    path: "/replay/saved",
    summary: "List saved requests, newest first",
    access: "replay:read",
    responseFields: COUNTED,
    query: strictObject({
      collection: Type.Optional(Type.String({ maxLength: 255, description: "Only of this collection" })),
      tag: Type.Optional(Type.String({ maxLength: 64, description: "Only with this tag" })),
      search: Type.Optional(Type.String({ maxLength: 255, description: "Text in name or URL" })),
      include_bodies: Type.Optional(booleanText("Include bodies")),
      ...listing,
    }),
    responses: { 200: Type.Array(SavedRequest) },
    expose: { mcp: { name: "list_saved_requests", readOnly: true } },
  },
  saveRequest: {
    method: "POST",
    path: "/replay/saved",
    summary: "Save a request, either given or taken from an entry",
    access: "replay:write",
    body: NewSavedRequest,
    responses: { 201: CreatedId },
  },
  saveFromTraffic: {
    method: "POST",
    path: "/replay/saved/from-traffic",
    summary: "Save the requests of several entries",
    access: "replay:write",
    body: strictObject({
      entry_ids: Type.Array(EntryId, { minItems: 1, maxItems: 1000, description: "Ids of entries" }),
      name_prefix: Type.Optional(nullable(Type.String({ maxLength: 200 }), { description: "Prefix of each name" })),
      tags: about.tags,
      collection: about.collection,
    }),
    responses: {
      201: strictObject({
        saved: Type.Integer(),
        ids: Type.Array(Id),
        errors: Type.Array(Type.String(), { description: "`entry <id>: …`" }),
        total: Type.Integer(),
      }),
    },
  },
  listReplayCollections: {
    method: "GET",
    path: "/replay/collections",
    summary: "Collections of saved requests, with their counts",
    access: "replay:read",
    responseFields: COUNTED,
    responses: { 200: Type.Array(strictObject({ name: Type.String(), count: Type.Integer() })) },
  },
  getSavedRequest: {
    method: "GET",
    path: "/replay/saved/{id}",
    summary: "One saved request",
    access: "replay:read",
    params: IdParams,
    responses: { 200: SavedRequest },
  },
  updateSavedRequest: {
    method: "PUT",
    path: "/replay/saved/{id}",
    summary: "Update a saved request",
    access: "replay:write",
    params: IdParams,
    body: SavedRequestUpdate,
    responses: { 200: SavedRequest },
  },
  deleteSavedRequest: {
    method: "DELETE",
    path: "/replay/saved/{id}",
    summary: "Delete a saved request",
    access: "replay:delete",
    params: IdParams,
    responses: { 204: null },
  },
  executeReplay: {
    method: "POST",
    path: "/replay/execute/{id}",
    summary: "Resend a saved request, or that of a captured entry",
    description: "Treated like a client request: rules, capture and upstream settings apply to it.",
    access: "replay:write",
    params: EntryIdParams,
    query: decompressed,
    body: ReplayOrder,
    bodyOptional: true,
    responses: { 200: ReplayResult },
    // `weir replay run` does more with the response.
    expose: { cli: false },
  },
  executeBatch: {
    method: "POST",
    path: "/replay/execute/{id}/batch",
    summary: "Send a request many times",
    description: "Progress is reported on `/ws` as task `task_id`; if the caller disconnects, the batch is cancelled.",
    access: "replay:write",
    params: EntryIdParams,
    query: strictObject({
      task_id: Type.Optional(
        Type.String({
          minLength: 1,
          maxLength: 64,
          description: "Id of the batch and of its task. Default: generated",
        }),
      ),
      results_limit: resultsLimit,
    }),
    body: BatchOrder,
    bodyOptional: true,
    responses: { 200: ReplayBatchWithResults, 202: CreatedId },
    // `weir replay batch` shows how it goes on.
    expose: { cli: false },
  },
  listBatches: {
    method: "GET",
    path: "/replay/batches",
    summary: "List batches, newest first",
    access: "replay:read",
    responseFields: COUNTED,
    query: strictObject(listing),
    responses: { 200: Type.Array(ReplayBatch) },
  },
  getBatch: {
    method: "GET",
    path: "/replay/batches/{id}",
    summary: "One batch with its results",
    access: "replay:read",
    params: IdParams,
    query: strictObject({ results_limit: resultsLimit }),
    responses: { 200: ReplayBatchWithResults },
  },
  cancelBatch: {
    method: "POST",
    path: "/replay/batches/{id}/cancel",
    summary: "Cancel a running batch",
    access: "replay:write",
    params: IdParams,
    responses: { 200: ReplayBatch },
  },
  listReplayHistory: {
    method: "GET",
    path: "/replay/history",
    summary: "List replays, newest first, without bodies",
    access: "replay:read",
    responseFields: COUNTED,
    query: strictObject({
      saved_request_id: Type.Optional(Type.String({ maxLength: 64, description: "Only of this saved request" })),
      batch_id: Type.Optional(
        Type.String({ maxLength: 64, description: "Only of this batch. Default: only replays without a batch" }),
      ),
      ...listing,
    }),
    responses: { 200: Type.Array(ReplayResult) },
  },
  getReplay: {
    method: "GET",
    path: "/replay/history/{id}",
    summary: "One replay with its stored bodies",
    access: "replay:read",
    params: IdParams,
    query: decompressed,
    responses: { 200: ReplayResult },
  },
  clearReplayHistory: {
    method: "DELETE",
    path: "/replay/history",
    summary: "Clear the history of replays and batches; captured entries are kept",
    access: "replay:delete",
    responses: { 204: null },
  },
  diffEntries: {
    method: "POST",
    path: "/replay/diff",
    summary: "Compare two entries, or a replay with its original",
    access: "traffic:read",
    body: DiffOrder,
    responses: { 200: EntryDiff },
    // `weir diff`
    expose: { cli: false, mcp: { name: "diff_entries", readOnly: true } },
  },
  diffSessions: {
    method: "POST",
    path: "/replay/diff/sessions",
    summary: "Compare two sessions, request by request",
    description:
      "Requests with the same method and URL are paired in order; the response lists the differences of each pair.",
    access: "traffic:read",
    body: SessionDiffOrder,
    responses: { 200: SessionDiff },
    // `weir diff --sessions`
    expose: { cli: false, mcp: { name: "diff_sessions", readOnly: true } },
  },
});
