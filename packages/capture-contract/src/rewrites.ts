import { defineOperations, nullable, oneOf, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
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
import { RewriteAction } from "./rewrite-action.ts";

const direction = oneOf(["request", "response", "both"], {
  description: "Which messages are changed; actions that do not apply to a message are skipped",
});
const actions = Type.Array(RewriteAction, { minItems: 1, maxItems: 100, description: "The actions, in order" });

/** A rule that changes requests, answers, or both. */
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

/** An answer before or after rules. */
export const RewrittenResponse = strictObject(
  { status_code: Type.Integer(), status_message: Type.String(), headers_list: HeadersList, ...shownBody },
  { $id: "RewrittenResponse" },
);
export type RewrittenResponse = Static<typeof RewrittenResponse>;

/** Body of a dry run. */
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

/** What rules would have done to an entry; nothing is sent and nothing is stored. */
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
