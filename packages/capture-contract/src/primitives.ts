import type { Static } from "typebox";
import { oneOf, strictObject, Type } from "@headworks/contract-kit";

export const Id = Type.String({ minLength: 1, maxLength: 64, description: "UUID" });

/** The id of a captured entry; the command line takes other names of entries where a schema says `x-entry-id`. */
export const EntryId = Type.String({
  minLength: 1,
  maxLength: 64,
  description: "UUID of an entry",
  "x-entry-id": true,
});

export const Timestamp = Type.String({ format: "date-time", description: "RFC 3339, UTC, with milliseconds" });

/**
 * A name given by a user; something must be seen of it, and NUL ends texts elsewhere. No two neighbouring parts of the
 * pattern take the same character: patterns are tried on texts of any length, also on those that are too long.
 */
export const named = (description: string) =>
  Type.String({ minLength: 1, maxLength: 255, pattern: "^\\s*[^\\s\\u0000][^\\u0000]*$", description });

/** In rules: clients cannot be distinguished by device, so a rule for one device would affect all. */
export const NoDevice = Type.Null({ description: "Reserved: each rule applies to all devices" });

/** Path parameters of operations about one captured entry. */
export const EntryIdParams = strictObject({ id: EntryId });
export const IdParams = strictObject({ id: Id });

/** Body of every `/{id}/toggle`: sets when given, flips when the body is absent. */
export const ToggleBody = strictObject({
  enabled: Type.Boolean({ description: "On or off. Default: the opposite of the current state" }),
});

export const ToggleResult = strictObject({ id: Id, enabled: Type.Boolean() }, { $id: "ToggleResult" });
export const CreatedId = strictObject({ id: Id }, { $id: "CreatedId" });

/** The body of every non-2xx response. */
export const ApiErrorBody = strictObject(
  {
    error: Type.String({ description: "A readable sentence" }),
    code: Type.String({ description: "Stable code for programs" }),
    message: Type.Optional(Type.String()),
    details: Type.Optional(Type.Array(strictObject({ path: Type.String(), message: Type.String() }))),
  },
  { $id: "ApiError" },
);

export type ApiErrorBody = Static<typeof ApiErrorBody>;

/** The changed settings of a status that are given elsewhere, by the names that they have there. */
export const OverriddenSettings = Type.Record(Type.String(), oneOf(["environment", "flag"]), {
  description:
    "Changed settings for which the environment or a flag takes precedence at each start: a change that applies now is in effect until then, one that applies after a restart never is",
});

export type OverriddenSettings = Static<typeof OverriddenSettings>;

/** The header fields of responses that are lists, or a page of one. */
export const COUNTED = { "X-Total-Count": "Total number of items" };

/** A switch in a query, which knows only texts. */
export const booleanText = (description: string) => oneOf(["true", "false"], { description });

/** A setting that is a list of host patterns. */
export const hostList = (description: string, applies = "now") =>
  Type.Array(Type.String({ minLength: 1, maxLength: 255 }), {
    maxItems: 10_000,
    default: [],
    description,
    "x-applies": applies,
  });

/** A setting that gives values to host patterns, `HOST=VALUE`; the first that matches a host counts. */
export const hostValues = (description: string, maxLength: number) =>
  Type.Array(Type.String({ minLength: 1, maxLength }), {
    maxItems: 1000,
    default: [],
    description,
    "x-applies": "now",
  });

/** Entries dropped because of limits during an import; absent if none were. */
export const IMPORT_LOSS = {
  dropped_count: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: "Its oldest entries that were dropped because of `max_requests` when it became the active session",
    }),
  ),
  displaced_count: Type.Optional(
    Type.Integer({
      minimum: 1,
      description: "Older entries of other sessions that were dropped because of `max_total_size_mb`",
    }),
  ),
};

/** The result of an import. */
export const ImportResult = strictObject(
  {
    session_id: Id,
    imported_count: Type.Integer(),
    skipped_count: Type.Integer(),
    ...IMPORT_LOSS,
    errors: Type.Array(Type.String(), {
      description:
        "What was skipped, cut or dropped because of a limit: at most 100 sentences, those about entries as `entry N: …`",
    }),
  },
  { $id: "ImportResult" },
);

export type ImportResult = Static<typeof ImportResult>;
