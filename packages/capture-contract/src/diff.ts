import type { Static } from "typebox";
import { nullable, oneOf, strictObject, Type } from "@headworks/contract-kit";
import { Id } from "./primitives.ts";

/** Differences that a comparison ignores. */
export const DiffOptions = strictObject(
  {
    ignore_headers: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
        maxItems: 256,
        description:
          "Header fields to ignore; `*` matches any characters. Default: Date, Age, Expires, Set-Cookie, request ids, trace fields and similar ones",
      }),
    ),
    ignore_paths: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 1024 }), {
        maxItems: 256,
        description: "Paths in JSON bodies to ignore: `$.user.id`, `$.items[*].at`, `$..etag`, or `/user/id`",
      }),
    ),
    shape: Type.Optional(
      Type.Boolean({ description: "Compare only the structure of JSON bodies (members and types), not values" }),
    ),
  },
  { $id: "DiffOptions" },
);

export type DiffOptions = Static<typeof DiffOptions>;

const text = nullable(Type.String());
const Change = strictObject({ left: text, right: text });

const HeaderChange = strictObject({
  name: Type.String({ description: "As on the left side, or on the right if the left has none" }),
  left: nullable(Type.Array(Type.String()), { description: "All values in order; null if the field is missing" }),
  right: nullable(Type.Array(Type.String())),
});

const HeadersDiff = strictObject({
  changed: Type.Array(HeaderChange),
  ignored: Type.Array(HeaderChange, { description: "Ignored differences" }),
});

const JsonChange = strictObject({
  path: Type.String({ description: "JSON Pointer (RFC 6901); positions are those of the left side" }),
  op: oneOf(["add", "remove", "replace"]),
  left: Type.Optional(Type.Unknown()),
  right: Type.Optional(Type.Unknown()),
  is_type_change: Type.Optional(
    Type.Literal(true, { description: "The type changed, for example from string to number" }),
  ),
});

const TextPart = strictObject({
  kind: oneOf(["same", "removed", "added"]),
  left_line: Type.Integer({ description: "Number of its first line on the left side, from 1" }),
  right_line: Type.Integer(),
  line_count: Type.Integer(),
  lines: Type.Array(Type.String(), { description: "The lines; only unchanged lines next to a change are included" }),
});

/** Two bodies, compared as what they are. */
export const BodyDiff = strictObject(
  {
    kind: oneOf(["none", "same", "json", "text", "binary", "incomparable"], {
      description:
        "`none`: neither has a body; `json`, `text`, `binary`: they differ, compared as this type; `incomparable`: one was not stored completely",
    }),
    left_size: nullable(Type.Integer({ description: "Bytes without content coding" })),
    right_size: nullable(Type.Integer()),
    left_sha256: Type.Optional(text),
    right_sha256: Type.Optional(text),
    reason: Type.Optional(Type.String({ description: "Why they cannot be compared, or not as their own type" })),
    changes: Type.Optional(Type.Array(JsonChange)),
    ignored_changes: Type.Optional(Type.Integer({ description: "Number of ignored changes" })),
    parts: Type.Optional(Type.Array(TextPart)),
    truncated: Type.Optional(Type.Literal(true, { description: "The list of changes is incomplete" })),
  },
  { $id: "BodyDiff" },
);

export type BodyDiff = Static<typeof BodyDiff>;

const TimingChange = strictObject({
  left: nullable(Type.Number()),
  right: nullable(Type.Number()),
  delta: nullable(Type.Number()),
});

/** The differences of two entries; timings are listed but never count as a difference. */
export const EntryDiff = strictObject(
  {
    same: Type.Boolean({ description: "No differences, except ignored ones" }),
    request_same: Type.Boolean(),
    response_same: Type.Boolean(),
    left_id: text,
    right_id: text,
    method: nullable(Change),
    url: nullable(Change),
    status: nullable(Change, { description: "Null if identical; a side without a response is null" }),
    failure: nullable(Change, { description: "Codes of failures" }),
    request_headers: HeadersDiff,
    response_headers: HeadersDiff,
    request_body: BodyDiff,
    response_body: BodyDiff,
    timings: Type.Record(Type.String(), TimingChange, {
      description: "Milliseconds of `duration`, `dns`, `connect`, `tls`, `send`, `wait` and `receive`",
    }),
  },
  { $id: "EntryDiff" },
);

export type EntryDiff = Static<typeof EntryDiff>;

/** The entries or replays to compare, or a replay to compare with its original. */
export const DiffOrder = strictObject({
  left: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 64,
      description: "Id of an entry or a replay. Default: the original of `right`",
    }),
  ),
  right: Type.String({ minLength: 1, maxLength: 64, description: "Id of an entry or a replay" }),
  ...DiffOptions.properties,
});

export type DiffOrder = Static<typeof DiffOrder>;

/** Bounds of a comparison of two sessions. */
export const SESSION_DIFF_LIMITS = { entries: 50_000, comparisons: 10_000, rows: 1000 } as const;

const session = (side: string) =>
  Type.String({ minLength: 1, maxLength: 64, description: `Id of the ${side} session` });

/** The sessions to compare, and a filter. */
export const SessionDiffOrder = strictObject({
  left: session("left"),
  right: session("right"),
  q: Type.Optional(Type.String({ maxLength: 4096, description: "Only entries that match this query, on both sides" })),
  ignore_query: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 255 }), {
      maxItems: 256,
      description:
        "Query parameters to ignore when requests are paired; `*` matches any characters. Their order is always ignored",
    }),
  ),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: SESSION_DIFF_LIMITS.comparisons,
      description: "Maximum number of pairs whose responses are compared. Default: 1,000",
    }),
  ),
  ...DiffOptions.properties,
});

export type SessionDiffOrder = Static<typeof SessionDiffOrder>;

const SessionDiffRow = strictObject({
  id: Id,
  method: Type.String(),
  url: Type.String(),
  status_code: nullable(Type.Integer()),
  failure_code: nullable(Type.String()),
  duration_ms: nullable(Type.Number()),
});

export type SessionDiffRow = Static<typeof SessionDiffRow>;

const SessionDiffPair = strictObject({
  left: SessionDiffRow,
  right: SessionDiffRow,
  differs: Type.Array(oneOf(["status", "failure", "headers", "body", "request"]), {
    description: "What differs; a comparison of the two entries shows the details",
  }),
});

export type SessionDiffPair = Static<typeof SessionDiffPair>;

const rows = Type.Array(SessionDiffRow, { description: `At most ${SESSION_DIFF_LIMITS.rows}, oldest first` });

/** The differences of two sessions, request by request. */
export const SessionDiff = strictObject(
  {
    same: Type.Boolean({
      description: "Every request has a counterpart, and all responses are identical except for ignored differences",
    }),
    left_id: Id,
    right_id: Id,
    left_count: Type.Integer({ description: "Entries of the left session that were compared" }),
    right_count: Type.Integer(),
    pair_count: Type.Integer({ description: "Requests that are in both sessions, paired in order" }),
    same_count: Type.Integer({ description: "Pairs that were compared and are identical" }),
    changed_count: Type.Integer(),
    not_compared_count: Type.Integer({ description: "Pairs beyond `limit`" }),
    only_left_count: Type.Integer(),
    only_right_count: Type.Integer(),
    changed: Type.Array(SessionDiffPair, { description: `At most ${SESSION_DIFF_LIMITS.rows}, oldest first` }),
    only_left: rows,
    only_right: rows,
  },
  { $id: "SessionDiff" },
);

export type SessionDiff = Static<typeof SessionDiff>;
