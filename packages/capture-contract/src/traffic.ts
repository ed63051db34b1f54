import { booleanText, COUNTED, EntryId, EntryIdParams, Id, ImportResult, named, Timestamp } from "./primitives.ts";
import { defineOperations, media, nullable, oneOf, strictObject, Type, upload } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { MatchExplanation, MatchPreviewRequest } from "./condition.ts";
import { TrafficEntry, TrafficSnapshot } from "./message.ts";

const filterProperties = {
  q: Type.Optional(Type.String({ maxLength: 4096, description: "Query; combined with the other filters by AND" })),
  method: Type.Optional(Type.String({ maxLength: 255, description: "Request method" })),
  url: Type.Optional(Type.String({ maxLength: 4096, description: "Substring, or a pattern with `*`" })),
  status_code: Type.Optional(
    Type.String({ maxLength: 255, description: "`404`, `4xx`, `400-499`, or a comma list of these" }),
  ),
  status: Type.Optional(Type.String({ maxLength: 255, description: "Same as `status_code`" })),
  content_type: Type.Optional(
    Type.String({
      maxLength: 255,
      description: "Substring of the response's media type; with a semicolon, of its whole Content-Type",
    }),
  ),
  host: Type.Optional(Type.String({ maxLength: 255, description: "Part of the host, or a pattern with `*`" })),
  search: Type.Optional(Type.String({ maxLength: 4096, description: "Text in URL, header fields or bodies" })),
  file_type: Type.Optional(Type.String({ maxLength: 32, description: "File extension in the path" })),
  header: Type.Optional(
    Type.String({
      maxLength: 1024,
      description:
        "`name:value`: a field of that name contains the value; `name:`: the field is present; other text: part of any name or value",
    }),
  ),
  cookie: Type.Optional(
    Type.String({
      maxLength: 1024,
      description:
        "`name=value`: the cookie of exactly that name contains the value; `name=`: the cookie is present; other text: part of any name or value",
    }),
  ),
  is_passthrough: Type.Optional(booleanText("Only tunnels")),
  min_size: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: "Minimum size of the response in bytes",
    }),
  ),
  max_size: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: Number.MAX_SAFE_INTEGER,
      description: "Maximum size of the response in bytes",
    }),
  ),
  min_time: Type.Optional(Type.Number({ minimum: 0, description: "Minimum duration in milliseconds" })),
  max_time: Type.Optional(Type.Number({ minimum: 0, description: "Maximum duration in milliseconds" })),
  session_id: Type.Optional(
    Type.String({ maxLength: 64, description: "Id of a session. Default: the active session" }),
  ),
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
  Type.Integer({ minimum: 1, maximum: 1000, default: 100, description: "Maximum number of entries" }),
);
const offset = Type.Optional(
  Type.Integer({
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    default: 0,
    description: "Number of entries to skip",
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
    name: Type.String({ description: "Host, with its port unless it is the scheme's default; or a path" }),
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

/** The recent entries that a condition matches. */
export const MatchPreview = strictObject(
  {
    examined: Type.Integer({ description: "Entries that were checked" }),
    matched: Type.Integer({ description: "Number of matching entries" }),
    complete: Type.Boolean({ description: "False if time ran out before `limit` entries were checked" }),
    sample: Type.Array(TrafficSnapshot, { description: "The newest matching entries" }),
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
      "An array with `X-Total-Count`. With `cursor` (empty for the first page) the response is `{entries, next_cursor}`. `X-Total-Complete: false` means that more may match than were counted so far. With `include_bodies`, bodies are included as long as all fit into 32 MiB (always those of the first entry), originals before rules included: with `cursor` the page ends before an entry whose bodies do not fit; without it such entries have no bodies, and `X-Bodies-Omitted` counts them. Bodies above 64 MiB are available only at their own URL.",
    access: "traffic:read",
    responseFields: {
      ...COUNTED,
      "X-Total-Complete": "`false`: more may match than were counted so far",
      "X-Bodies-Omitted": "Number of entries without the requested bodies; absent for none",
    },
    query: strictObject({
      ...filterProperties,
      limit,
      offset,
      cursor: Type.Optional(
        Type.String({
          maxLength: 255,
          description: "Cursor of the next page, empty for the first one; not with `offset`",
        }),
      ),
      include_bodies: Type.Optional(booleanText("Include bodies, up to 32 MiB in total")),
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
      "Rows for tables, without headers and bodies. If a filter has to read entries, counting them may take long: until then `total_complete` is false, `total` is the count so far, and the next request continues from there.",
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
        total_complete: Type.Boolean({ description: "All entries were counted" }),
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
    summary: "Show which of the newest entries a condition matches",
    description:
      "Entries are checked as stored: tunnels never match, and messages that a rule changed are checked in their changed form. Bodies that need much decoding may end the search early; then `complete` is false.",
    access: "traffic:read",
    body: MatchPreviewRequest,
    responses: { 200: MatchPreview },
  },
  summarizeTraffic: {
    method: "GET",
    path: "/traffic/summary",
    summary: "Totals, percentiles, types and a time histogram of the traffic",
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
      of_host: Type.Optional(Type.String({ maxLength: 300, description: "A host of the tree, or `host:port`" })),
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
      decompressed: Type.Optional(booleanText("Remove the content coding of bodies (gzip and others)")),
      include_bodies: Type.Optional(booleanText("Include bodies. Default: true")),
    }),
    responses: { 200: TrafficEntry },
    expose: { mcp: { name: "get_traffic", readOnly: true } },
  },
  getTrafficBody: {
    method: "GET",
    path: "/traffic/{id}/body/{side}",
    summary: "A body as bytes",
    description:
      "Honours Range. With `decoded=true` the content coding is removed. `charset=utf-8` also converts text to UTF-8. The response is always `application/octet-stream` or `text/plain`, never the captured type. `X-Body-Partial: true` means that bytes are missing: with `X-Body-Undecodable: true` because the content coding is unknown or damaged, otherwise because the body was cut when it was stored.",
    access: "traffic:read",
    responseFields: {
      "X-Body-Partial": "`true`: bytes of the body are missing",
      "X-Body-Undecodable":
        "`true`: the content coding is damaged; or, if no bytes are missing, it is unknown or not what the body is in, and the bytes are those received",
    },
    params: strictObject({ id: EntryId, side: oneOf(["request", "response"]) }),
    query: strictObject({
      decoded: Type.Optional(booleanText("Remove the content coding (gzip and others)")),
      charset: Type.Optional(oneOf(["utf-8"], { description: "Convert text to this charset" })),
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
  clearTraffic: {
    method: "POST",
    path: "/traffic/clear",
    summary: "Clear the captured traffic of the active session, or only some entries",
    description: "`ids` may belong to any session, so they cannot be combined with `session_id`.",
    access: "traffic:delete",
    query: strictObject({
      ids: Type.Optional(Type.String({ maxLength: 400_000, description: "Comma list" })),
      session_id: Type.Optional(
        Type.String({ maxLength: 64, description: "Id of a session. Default: the active session" }),
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
    summary: "Import a HAR document into a new session; capture continues",
    description:
      "The body is the document, or `{har, session_name, switch_session}` and nothing else. Streamed: a file of any size may be sent. Bodies above `max_body_size` are cut, like captured ones, and named in `errors`.",
    access: "traffic:export",
    query: strictObject({
      session_name: Type.Optional(named("Name of the new session")),
      switch_session: Type.Optional(booleanText("Make it the active session")),
      task_id: Type.Optional(Type.String({ maxLength: 64, description: "Id of this import in `Task` events" })),
    }),
    body: upload(["application/json", "application/octet-stream"], "HAR 1.1 or 1.2"),
    responses: { 200: ImportResult },
  },
});
