import { ImportResult } from "./import-result.ts";
import { defineOperations, media, nullable, oneOf, strictObject, Type, upload } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { MatchExplanation, MatchPreviewRequest } from "./match-preview.ts";
import { COUNTED, EntryId, EntryIdParams, Id, Timestamp, booleanText, named } from "./primitives.ts";
import { TrafficEntry, TrafficSnapshot } from "./traffic-entry.ts";

const filterProperties = {
  q: Type.Optional(
    Type.String({ maxLength: 4096, description: "Query language; combined with the other filters by AND" }),
  ),
  method: Type.Optional(Type.String({ maxLength: 255, description: "Request method" })),
  url: Type.Optional(Type.String({ maxLength: 4096, description: "Substring, or a pattern with `*`" })),
  status_code: Type.Optional(
    Type.String({ maxLength: 255, description: "`404`, `4xx`, `400-499`, or a comma list of these" }),
  ),
  status: Type.Optional(Type.String({ maxLength: 255, description: "Same as `status_code`" })),
  content_type: Type.Optional(
    Type.String({
      maxLength: 255,
      description: "Substring of the answer's media type; with a semicolon, of its whole Content-Type",
    }),
  ),
  host: Type.Optional(Type.String({ maxLength: 255, description: "Part of the host, or a pattern with `*`" })),
  search: Type.Optional(Type.String({ maxLength: 4096, description: "Text in URL, header fields or bodies" })),
  file_type: Type.Optional(Type.String({ maxLength: 32, description: "Suffix of the path" })),
  header: Type.Optional(
    Type.String({
      maxLength: 1024,
      description:
        "`name:value`: a field of that name contains the value; `name:`: there is a field of that name; anything else: part of any line, name or value",
    }),
  ),
  cookie: Type.Optional(
    Type.String({
      maxLength: 1024,
      description:
        "`name=value`: the cookie of exactly that name contains the value; `name=`: there is such a cookie; anything else: part of any cookie, name or value",
    }),
  ),
  is_passthrough: Type.Optional(booleanText("Only tunnels, which were counted and not read")),
  min_size: Type.Optional(
    Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: "Least bytes of the answer" }),
  ),
  max_size: Type.Optional(
    Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: "Most bytes of the answer" }),
  ),
  min_time: Type.Optional(Type.Number({ minimum: 0, description: "Least duration in milliseconds" })),
  max_time: Type.Optional(Type.Number({ minimum: 0, description: "Most duration in milliseconds" })),
  session_id: Type.Optional(Type.String({ maxLength: 64, description: "Id of a session; without it the active one" })),
};

/** Filter parameters shared by lists, counts, summaries and exports. */
export const TrafficFilter = strictObject(filterProperties);
export type TrafficFilter = Static<typeof TrafficFilter>;

export const SORT_COLUMNS = [
  "seq",
  "timestamp",
  "method",
  "status",
  "host",
  "path",
  "type",
  "size",
  "request_size",
  "duration",
  "ttfb",
] as const;

const limit = Type.Optional(
  Type.Integer({ minimum: 1, maximum: 1000, default: 100, description: "Most entries of one answer" }),
);
const offset = Type.Optional(
  Type.Integer({
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    default: 0,
    description: "Entries that are left out first",
  }),
);

export const HistogramBucket = strictObject({
  start: Timestamp,
  count: Type.Integer(),
  errors: Type.Integer(),
});

/** Totals over a filter: the footer, the pills and the overview strip. */
export const TrafficSummary = strictObject(
  {
    total: Type.Integer({ description: "Entries of the session" }),
    matched: Type.Integer(),
    pending: Type.Integer(),
    request_bytes: Type.Integer(),
    response_bytes: Type.Integer(),
    duration_p50_ms: nullable(Type.Number()),
    duration_p95_ms: nullable(Type.Number()),
    errors: Type.Integer({ description: "Failed, or status 400 and above" }),
    by_type: Type.Record(Type.String(), Type.Integer()),
    by_status_class: Type.Record(Type.String(), Type.Integer()),
    first_timestamp: nullable(Timestamp),
    last_timestamp: nullable(Timestamp),
    histogram: Type.Array(HistogramBucket, { description: "At most 60 equal slices of the time range" }),
  },
  { $id: "TrafficSummary" },
);
export type TrafficSummary = Static<typeof TrafficSummary>;

export const TreeNode = strictObject(
  {
    name: Type.String({ description: "Host, with its port unless that is the scheme's own; or a path" }),
    count: Type.Integer(),
    errors: Type.Integer(),
    response_bytes: Type.Integer(),
    last_timestamp: Timestamp,
  },
  { $id: "TreeNode" },
);
export type TreeNode = Static<typeof TreeNode>;

/** Fields whose values {@link trafficOperations.listTrafficValues} can enumerate for completion. */
export const VALUE_FIELDS = ["host", "method", "status", "path", "type", "scheme", "mime", "header", "client"] as const;

/** What a condition would have done lately. */
export const MatchPreview = strictObject(
  {
    examined: Type.Integer({ description: "Entries that were tried" }),
    matched: Type.Integer({ description: "How many of them it matches" }),
    complete: Type.Boolean({ description: "False when time ran out before `limit` entries were tried" }),
    sample: Type.Array(TrafficSnapshot, { description: "The newest of those that match" }),
    explanation: Type.Optional(MatchExplanation),
  },
  { $id: "MatchPreview" },
);
export type MatchPreview = Static<typeof MatchPreview>;

export const trafficOperations = defineOperations({
  listTraffic: {
    method: "GET",
    path: "/traffic",
    summary: "List captured entries, newest first",
    description:
      "A bare array with `X-Total-Count`. With `cursor` (empty for the first page) the answer is `{entries, next_cursor}`, and `X-Total-Complete: false` says that more may match than were counted so far.",
    access: "traffic:read",
    responseFields: {
      ...COUNTED,
      "X-Total-Complete": "`false`: more may match than were counted so far",
      "X-Bodies-Omitted": "How many entries came without the bodies that were asked for; absent for none",
    },
    query: strictObject({
      ...filterProperties,
      limit,
      offset,
      cursor: Type.Optional(
        Type.String({
          maxLength: 255,
          description: "Place of the next page; empty asks for the first. Not with `offset`",
        }),
      ),
      include_bodies: Type.Optional(
        booleanText(
          "With the bodies: those of the first entry, and of others as far as all fit into 32 MiB, those from before the rules included. With `cursor` the page ends before an entry whose bodies do not fit; without it such entries come without bodies, and `X-Bodies-Omitted` says how many they are. A body above 64 MiB is to be had at its own address only",
        ),
      ),
    }),
    responses: {
      200: Type.Union([
        Type.Array(TrafficEntry),
        strictObject({ entries: Type.Array(TrafficEntry), next_cursor: nullable(Type.String()) }),
      ]),
    },
    expose: { mcp: { name: "list_traffic", readOnly: true } },
  },
  listTrafficRows: {
    method: "GET",
    path: "/traffic/rows",
    summary: "A window of rows of a filtered, sorted list",
    description:
      "Light rows for tables. A filter that has to look into entries may take long to count them all: until then `total_complete` is false, `total` is what was found so far, and asking again goes on from there.",
    access: "traffic:read",
    query: strictObject({
      ...filterProperties,
      sort: Type.Optional(oneOf([...SORT_COLUMNS], { default: "seq" })),
      order: Type.Optional(oneOf(["asc", "desc"], { default: "desc" })),
      limit,
      offset,
    }),
    responses: {
      200: strictObject({
        total: Type.Integer(),
        total_complete: Type.Boolean({ description: "Everything was looked at" }),
        rows: Type.Array(TrafficSnapshot),
      }),
    },
  },
  countTraffic: {
    method: "GET",
    path: "/traffic/count",
    summary: "Count entries",
    access: "traffic:read",
    query: TrafficFilter,
    responses: { 200: strictObject({ count: Type.Integer() }) },
  },
  previewMatches: {
    method: "POST",
    path: "/traffic/match-preview",
    summary: "Which of the newest entries a condition would have matched",
    description:
      "Entries are tried as they are stored: tunnels never match, and what a rule changed is looked at in its changed form. Bodies that need much decoding may end the search early; then `complete` is false.",
    access: "traffic:read",
    body: MatchPreviewRequest,
    responses: { 200: MatchPreview },
  },
  summarizeTraffic: {
    method: "GET",
    path: "/traffic/summary",
    summary: "Totals, percentiles, types and a time histogram over a filter",
    access: "traffic:read",
    query: TrafficFilter,
    responses: { 200: TrafficSummary },
  },
  treeTraffic: {
    method: "GET",
    path: "/traffic/tree",
    summary: "Hosts with counts, or the paths of one host",
    access: "traffic:read",
    query: strictObject({
      ...filterProperties,
      of_host: Type.Optional(Type.String({ maxLength: 300, description: "A name of the tree, or `host:port`" })),
    }),
    responses: { 200: Type.Array(TreeNode) },
  },
  listTrafficValues: {
    method: "GET",
    path: "/traffic/values",
    summary: "Values seen in the traffic, for completion",
    access: "traffic:read",
    query: strictObject({
      field: oneOf([...VALUE_FIELDS]),
      prefix: Type.Optional(Type.String({ maxLength: 255 })),
      session_id: Type.Optional(Type.String({ maxLength: 64 })),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 200, default: 20 })),
    }),
    responses: { 200: Type.Array(strictObject({ value: Type.String(), count: Type.Integer() })) },
  },
  getTraffic: {
    method: "GET",
    path: "/traffic/{id}",
    summary: "One entry with full header fields and bodies",
    access: "traffic:read",
    params: EntryIdParams,
    query: strictObject({
      decompressed: Type.Optional(booleanText("Bodies without their content coding (gzip and others)")),
      include_bodies: Type.Optional(booleanText("With the bodies, as it is unless switched off")),
    }),
    responses: { 200: TrafficEntry },
    expose: { mcp: { name: "get_traffic", readOnly: true } },
  },
  getTrafficBody: {
    method: "GET",
    path: "/traffic/{id}/body/{side}",
    summary: "A body as bytes",
    description:
      "Honours Range. With `decoded=true` the content coding is removed. `charset=utf-8` also converts text to UTF-8. The answer is always `application/octet-stream` or `text/plain`, never the captured type. `X-Body-Partial: true` says that bytes are missing; with `X-Body-Undecodable: true` because the content coding is unknown or damaged, else because the body was cut when it was stored.",
    access: "traffic:read",
    responseFields: {
      "X-Body-Partial": "`true`: bytes of the body are missing",
      "X-Body-Undecodable":
        "`true`: the content coding is damaged; or, where no bytes are missing, the body is not in it or it is unknown, and the bytes are those that came",
    },
    params: strictObject({ id: EntryId, side: oneOf(["request", "response"]) }),
    query: strictObject({
      decoded: Type.Optional(booleanText("Without its content coding (gzip and others)")),
      charset: Type.Optional(oneOf(["utf-8"], { description: "Text is converted to this" })),
      download: Type.Optional(booleanText("As an attachment, for browsers")),
    }),
    responses: {
      200: media("application/octet-stream", "The body"),
      206: media("application/octet-stream", "A part of the body"),
    },
  },
  noteTraffic: {
    method: "PATCH",
    path: "/traffic/{id}",
    summary: "Set or clear the note of an entry",
    access: "traffic:write",
    params: EntryIdParams,
    body: strictObject({ notes: nullable(Type.String({ maxLength: 65536 }), { description: "The note" }) }),
    responses: { 200: strictObject({ id: Id, notes: nullable(Type.String()) }) },
  },
  deleteTraffic: {
    method: "DELETE",
    path: "/traffic/{id}",
    summary: "Delete one entry",
    access: "traffic:delete",
    params: EntryIdParams,
    responses: { 204: null },
  },
  getScriptTraces: {
    method: "GET",
    path: "/traffic/{id}/script-traces",
    summary: "Script executions that touched an entry",
    access: "traffic:read",
    // A command comes with scripts.
    expose: { cli: false },
    params: EntryIdParams,
    responses: {
      200: Type.Array(
        strictObject({
          script_id: Id,
          script_name: Type.String(),
          duration_ms: Type.Number(),
          success: Type.Boolean(),
          error: nullable(Type.String()),
          console: Type.Array(Type.String()),
          timestamp: Timestamp,
          traffic_entry_id: Id,
          hook: Type.String(),
        }),
      ),
    },
  },
  clearTraffic: {
    method: "POST",
    path: "/traffic/clear",
    summary: "Clear the captured traffic of the active session, or only the entries named by `ids`",
    description: "`ids` may be of any session, so they cannot be combined with `session_id`.",
    access: "traffic:delete",
    query: strictObject({
      ids: Type.Optional(Type.String({ maxLength: 400_000, description: "Comma list" })),
      session_id: Type.Optional(
        Type.String({ maxLength: 64, description: "Id of a session; without it the active one" }),
      ),
    }),
    body: strictObject({
      ids: Type.Optional(Type.Array(Id, { maxItems: 100_000, description: "Only these entries" })),
    }),
    bodyOptional: true,
    responses: { 204: null },
  },
  importHar: {
    method: "POST",
    path: "/traffic/import/har",
    summary: "Import a HAR document into a new session; live capture is untouched",
    description:
      "The document itself, or `{har, session_name, switch_session}` with nothing else beside `har`. Streamed: a file of any size may be sent. Bodies above `max_body_size` are cut, as captured ones are, and named in `errors`.",
    access: "traffic:export",
    query: strictObject({
      session_name: Type.Optional(named("Name of the new session")),
      switch_session: Type.Optional(booleanText("Make it the active one")),
      task_id: Type.Optional(Type.String({ maxLength: 64, description: "Names this import in `Task` events" })),
    }),
    body: upload(["application/json", "application/octet-stream"], "HAR 1.1 or 1.2"),
    responses: { 200: ImportResult },
  },
});
