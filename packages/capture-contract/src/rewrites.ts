import type { Static, TProperties } from "typebox";
import { defineOperations, nullable, oneOf, strictObject, Type } from "@headworks/contract-kit";
import { Condition, conditionShorthand } from "./condition.ts";
import { HeadersList, RuleTrace } from "./message.ts";
import {
  COUNTED,
  CreatedId,
  Id,
  IdParams,
  named,
  NoDevice,
  Timestamp,
  ToggleBody,
  ToggleResult,
} from "./primitives.ts";

/** One operation of a JSON Patch (RFC 6902). */
export interface JsonPatchOperation {
  readonly op: "add" | "remove" | "replace" | "move" | "copy" | "test";
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
}

/** One thing that a rewrite rule does. */
export type RewriteAction =
  | { readonly type: "url_rewrite"; readonly pattern: string; readonly replacement: string; readonly flags?: string }
  | { readonly type: "set_header"; readonly name: string; readonly value: string; readonly append?: boolean }
  | { readonly type: "remove_header"; readonly name: string }
  | {
      readonly type: "header_rewrite";
      readonly name: string;
      readonly pattern: string;
      readonly replacement: string;
      readonly flags?: string;
    }
  | { readonly type: "body_rewrite"; readonly pattern: string; readonly replacement: string; readonly flags?: string }
  | { readonly type: "query_param"; readonly name: string; readonly value: string; readonly append?: boolean }
  | { readonly type: "remove_query_param"; readonly name: string }
  | { readonly type: "map_to_file"; readonly path: string; readonly prefix?: string | null }
  | { readonly type: "map_to_url"; readonly url: string }
  | { readonly type: "allow_cors"; readonly max_age_secs?: number }
  | { readonly type: "set_status"; readonly code: number }
  | { readonly type: "set_method"; readonly method: string }
  | {
      readonly type: "set_body";
      readonly content: string;
      readonly base64?: boolean;
      readonly content_type?: string | null;
    }
  | { readonly type: "json_patch"; readonly patch: readonly JsonPatchOperation[] }
  | { readonly type: "json_merge"; readonly patch: unknown };

const text = (description: string, maxLength = 8192) => Type.String({ maxLength, description });

const fieldName = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
  description: "Its name, case-insensitive",
});

const regex = (of: string) => ({
  pattern: Type.String({ minLength: 1, maxLength: 1000, description: `A regular expression; every match in ${of}` }),
  replacement: text("`$1` and `$<name>` insert captured groups, `$&` the match, `$$` a dollar sign"),
  flags: Type.Optional(
    Type.String({
      pattern: "^[ims]{0,3}$",
      description: "`i`: case-insensitive; `m`: multi-line; `s`: a dot matches line breaks",
    }),
  ),
});

const append = (thing: string) =>
  Type.Optional(Type.Boolean({ description: `Add a further ${thing}; existing ones are kept` }));

const pointer = (description: string) =>
  Type.String({ maxLength: 1000, pattern: "^(?:/(?:[^~/]|~[01])*)*$", description });

function action<const N extends string, P extends TProperties>(name: N, description: string, properties: P) {
  return strictObject({ type: oneOf([name]), ...properties }, { description });
}

const kinds = [
  action("url_rewrite", "Requests: replaces text in the whole URL; scheme, host and port may change", regex("the URL")),
  action("set_header", "Sets a header field to one value, at its position or at the end", {
    name: fieldName,
    value: text("Its value"),
    append: append("field"),
  }),
  action("remove_header", "Removes all header fields of a name", { name: fieldName }),
  action("header_rewrite", "Replaces text in each header field of a name", { name: fieldName, ...regex("its value") }),
  action("body_rewrite", "Replaces text in the body; content coding and charset are kept", regex("the body")),
  action("query_param", "Requests: sets a query parameter to one value; the rest of the query is unchanged", {
    name: Type.String({ minLength: 1, maxLength: 255, description: "Its name, not percent-encoded" }),
    value: text("Its value, not percent-encoded"),
    append: append("parameter"),
  }),
  action("remove_query_param", "Requests: removes all query parameters of a name", {
    name: Type.String({ minLength: 1, maxLength: 255, description: "Its name, not percent-encoded" }),
  }),
  action(
    "map_to_file",
    "Serves a file or folder. For requests the origin is not contacted; for responses the body is replaced",
    {
      path: Type.String({
        minLength: 1,
        maxLength: 4096,
        description: "A file or folder below `<data_dir>/map-files` or a directory of `map_file_dirs`",
      }),
      prefix: Type.Optional(
        nullable(Type.String({ maxLength: 4096, pattern: "^/" }), {
          description: "With a folder: the URL path that corresponds to the folder. Default: `/`",
        }),
      ),
    },
  ),
  action(
    "map_to_url",
    "Requests: sends the request to another URL. An empty path, or one that ends in `/`, is put before the request's path; any other replaces it. A query replaces the request's query",
    { url: Type.String({ minLength: 1, maxLength: 8192, description: "An absolute http or https URL" }) },
  ),
  action(
    "allow_cors",
    "Allows pages of any origin to use it: responds to preflights with what they request, without contacting the origin, and makes responses readable, also with credentials; for rules of both directions",
    {
      max_age_secs: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 86_400,
          description: "Seconds for which browsers cache the response to a preflight. Default: 5",
        }),
      ),
    },
  ),
  action("set_status", "Responses: sets the status", {
    code: Type.Integer({ minimum: 200, maximum: 599, description: "The status" }),
  }),
  action("set_method", "Requests: sets the method", {
    method: Type.String({ maxLength: 32, pattern: "^[A-Z][A-Z0-9_-]*$", description: "The method, in upper case" }),
  }),
  action("set_body", "Replaces the whole body", {
    content: Type.String({ maxLength: 8_388_608, description: "Text, encoded in the message's charset" }),
    base64: Type.Optional(Type.Boolean({ description: "`content` is base64 of the bytes" })),
    content_type: Type.Optional(
      nullable(Type.String({ minLength: 1, maxLength: 255, pattern: "^[\\x21-\\x7e][\\x20-\\x7e]*$" }), {
        description: "Media type of the new body. Default: unchanged",
      }),
    ),
  }),
  action("json_patch", "JSON Patch (RFC 6902) on a JSON body, all or nothing", {
    patch: Type.Array(
      strictObject({
        op: oneOf(["add", "remove", "replace", "move", "copy", "test"], { description: "What is done" }),
        path: pointer("JSON pointer to the target"),
        from: Type.Optional(pointer("JSON pointer to the source of `move` and `copy`")),
        value: Type.Optional(Type.Unknown({ description: "The value of `add`, `replace` and `test`" })),
      }),
      { minItems: 1, maxItems: 1000 },
    ),
  }),
  action("json_merge", "JSON Merge Patch (RFC 7396) on a JSON body", {
    patch: Type.Unknown({ description: "Members replace those of the body; null removes a member" }),
  }),
] as const;

/** The schema of {@link RewriteAction}. Patterns, replacements and paths are checked when a rule is accepted. */
export const RewriteAction = Type.Unsafe<RewriteAction>({
  $id: "RewriteAction",
  type: "object",
  required: ["type"],
  discriminator: { propertyName: "type" },
  oneOf: kinds,
  description: "One action of a rule",
});

const direction = oneOf(["request", "response", "both"], {
  description: "Which messages are changed; actions that do not apply to a message are skipped",
});

const actions = Type.Array(RewriteAction, { minItems: 1, maxItems: 100, description: "The actions, in order" });

/** A rule that changes requests, responses, or both. */
export const RewriteRule = strictObject(
  {
    id: Id,
    name: Type.String(),
    condition: Condition,
    direction,
    rewrites: actions,
    enabled: Type.Boolean(),
    priority: Type.Integer(),
    hit_count: Type.Integer({ description: "Number of exchanges that it matched" }),
    device_id: NoDevice,
    created_at: Timestamp,
    updated_at: Timestamp,
  },
  { $id: "RewriteRule" },
);

export type RewriteRule = Static<typeof RewriteRule>;

const writable = {
  name: named("Name of the rule"),
  condition: Type.Optional(Condition),
  direction,
  rewrites: actions,
  enabled: Type.Optional(Type.Boolean({ description: "Whether the rule is active. Default: true" })),
  priority: Type.Optional(
    Type.Integer({
      minimum: -1_000_000,
      maximum: 1_000_000,
      description: "All matching rules apply, lowest number first, then the oldest. Default: 100",
    }),
  ),
  device_id: Type.Optional(NoDevice),
  ...conditionShorthand,
};

/** Body of a create: with `condition`, or with its shorthand. */
export const NewRewriteRule = strictObject(writable, { $id: "NewRewriteRule" });

export type NewRewriteRule = Static<typeof NewRewriteRule>;

/** Body of an update: what GET returned may be sent back; its read-only fields are not changes. */
export const RewriteRuleUpdate = strictObject({
  ...writable,
  id: Type.Optional(Id),
  hit_count: Type.Optional(Type.Integer()),
  created_at: Type.Optional(Timestamp),
  updated_at: Type.Optional(Timestamp),
});

export type RewriteRuleUpdate = Static<typeof RewriteRuleUpdate>;

/** A rule to begin with. */
export const RewriteTemplate = strictObject(
  {
    name: Type.String(),
    description: Type.String(),
    template: strictObject({ direction, rewrites: actions }),
  },
  { $id: "RewriteTemplate" },
);

export type RewriteTemplate = Static<typeof RewriteTemplate>;

/** Body of a toggle of several rules. */
export const RewriteBatchToggle = strictObject({
  ids: Type.Array(Id, { maxItems: 10_000, description: "Rules to set" }),
  enabled: Type.Boolean({ description: "On or off" }),
});

const shownBody = {
  body: nullable(Type.String(), {
    description: "Without content codings: UTF-8 text, otherwise `base64:` and standard base64; null if there is none",
  }),
  body_encoding: nullable(oneOf(["utf8", "base64"])),
  body_size: Type.Integer({ minimum: 0, description: "Bytes of the whole body, without content codings" }),
  body_truncated: Type.Boolean({ description: "`body` is only the beginning" }),
};

/** A request before or after rules. */
export const RewrittenRequest = strictObject(
  { method: Type.String(), url: Type.String(), headers_list: HeadersList, ...shownBody },
  { $id: "RewrittenRequest" },
);

export type RewrittenRequest = Static<typeof RewrittenRequest>;

/** A response before or after rules. */
export const RewrittenResponse = strictObject(
  { status_code: Type.Integer(), status_message: Type.String(), headers_list: HeadersList, ...shownBody },
  { $id: "RewrittenResponse" },
);

export type RewrittenResponse = Static<typeof RewrittenResponse>;

export const RewriteDryRun = strictObject({
  entry_id: Type.String({
    minLength: 1,
    maxLength: 64,
    description: "The captured entry to test",
    "x-entry-id": true,
  }),
  rule: Type.Optional(NewRewriteRule),
  rule_id: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 64,
      description: "A stored rule, enabled or not. Default, without `rule` too: all enabled rules",
    }),
  ),
});

/** The changes that rules would make to an entry; nothing is sent or stored. */
export const RewriteDryRunResult = strictObject(
  {
    matched: Type.Boolean({ description: "A rule matched the request or the response" }),
    changed: Type.Boolean({ description: "A rule changed something" }),
    trace: Type.Array(RuleTrace),
    request: strictObject({ before: RewrittenRequest, after: RewrittenRequest }),
    response: nullable(strictObject({ before: nullable(RewrittenResponse), after: RewrittenResponse }), {
      description: "Null for an entry without a response; `before` is null if only a rule created one",
    }),
  },
  { $id: "RewriteDryRunResult" },
);

export type RewriteDryRunResult = Static<typeof RewriteDryRunResult>;

export const rewritesOperations = defineOperations({
  listRewrites: {
    method: "GET",
    path: "/rewrites",
    summary: "List rewrite rules, newest first",
    access: "rewrites:read",
    responseFields: COUNTED,
    query: strictObject({
      limit: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 1000, description: "Maximum number of items. Default: 100" }),
      ),
      offset: Type.Optional(Type.Integer({ minimum: 0, description: "Number of items to skip" })),
    }),
    responses: { 200: Type.Array(RewriteRule) },
    expose: { mcp: { name: "list_rewrites", readOnly: true } },
  },
  createRewrite: {
    method: "POST",
    path: "/rewrites",
    summary: "Create a rewrite rule",
    access: "rewrites:write",
    body: NewRewriteRule,
    responses: { 201: CreatedId },
  },
  listRewriteTemplates: {
    method: "GET",
    path: "/rewrites/templates",
    summary: "Templates for rewrite rules",
    access: "rewrites:read",
    responses: { 200: Type.Array(RewriteTemplate) },
  },
  toggleRewrites: {
    method: "POST",
    path: "/rewrites/batch-toggle",
    summary: "Enable or disable several rewrite rules",
    access: "rewrites:write",
    body: RewriteBatchToggle,
    responses: {
      200: strictObject({
        updated: Type.Integer(),
        not_found: Type.Array(Type.String()),
        total: Type.Integer({ description: "Number of rules in the request" }),
      }),
    },
  },
  dryRunRewrite: {
    method: "POST",
    path: "/rewrites/dry-run",
    summary: "Show what a rule, or all enabled rules, would change in a captured entry",
    access: "rewrites:read",
    body: RewriteDryRun,
    responses: { 200: RewriteDryRunResult },
  },
  getRewrite: {
    method: "GET",
    path: "/rewrites/{id}",
    summary: "One rewrite rule",
    access: "rewrites:read",
    params: IdParams,
    responses: { 200: RewriteRule },
  },
  updateRewrite: {
    method: "PUT",
    path: "/rewrites/{id}",
    summary: "Update a rewrite rule",
    access: "rewrites:write",
    params: IdParams,
    body: RewriteRuleUpdate,
    responses: { 200: RewriteRule },
  },
  deleteRewrite: {
    method: "DELETE",
    path: "/rewrites/{id}",
    summary: "Delete a rewrite rule",
    access: "rewrites:delete",
    params: IdParams,
    responses: { 204: null },
  },
  toggleRewrite: {
    method: "POST",
    path: "/rewrites/{id}/toggle",
    summary: "Enable or disable a rewrite rule",
    access: "rewrites:write",
    params: IdParams,
    body: ToggleBody,
    bodyOptional: true,
    responses: { 200: ToggleResult },
  },
});
