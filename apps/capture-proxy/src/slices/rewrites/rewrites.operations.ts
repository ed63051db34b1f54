import { randomUUID } from "node:crypto";
import type {
  Condition,
  NewRewriteRule,
  RewriteAction,
  RewriteRuleUpdate,
  RewriteTemplate,
  rewritesOperations,
} from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { parseRuleCondition } from "@headworks/match-condition";
import { ApiError, notFound, validationError } from "#api/api-error.ts";
import type { HitCounter, RuleTable } from "#rules/rule-table.ts";
import type { Clock } from "#slice.ts";
import type { CaptureStore } from "#storage/capture-store.ts";
import { dryRun } from "./dry-run.ts";
import type { MappedFiles } from "./mapped-files.ts";
import type { BodyLimits } from "#rules/message-edit.ts";
import { newRewrite, showRewrite, type StoredRewrite, updatedRewrite } from "./rewrite-rule.ts";
import { actionIssues } from "./rewrites.check.ts";
import { compileOnce } from "./rewrites.compile.ts";
import type { TextThread } from "./text-thread.ts";

const set = (name: string, value: string): RewriteAction => ({ type: "set_header", name, value });
const remove = (name: string): RewriteAction => ({ type: "remove_header", name });

/** Rule templates; each lacks a name and a condition. */
const REWRITE_TEMPLATES: readonly RewriteTemplate[] = [
  {
    name: "Add CORS Headers",
    description: "Allow pages of any origin, with cookies; answers preflights",
    template: { direction: "both", rewrites: [{ type: "allow_cors" }] },
  },
  {
    name: "HTTP to HTTPS",
    description: "Send http requests over https",
    template: {
      direction: "request",
      rewrites: [{ type: "url_rewrite", pattern: "^http://", replacement: "https://" }],
    },
  },
  {
    name: "Add Auth Header",
    description: "Add your token to every request",
    template: { direction: "request", rewrites: [set("Authorization", "Bearer YOUR_TOKEN")] },
  },
  {
    name: "Remove Security Headers",
    description: "Remove headers that block framing and third-party scripts",
    template: { direction: "response", rewrites: [remove("Content-Security-Policy"), remove("X-Frame-Options")] },
  },
  {
    name: "No Caching",
    description: "Make every request reach the origin, and prevent caching of responses",
    template: {
      direction: "both",
      rewrites: [
        remove("If-Modified-Since"),
        remove("If-None-Match"),
        remove("ETag"),
        remove("Last-Modified"),
        remove("Expires"),
        set("Cache-Control", "no-cache, no-store, must-revalidate"),
        set("Pragma", "no-cache"),
        set("Expires", "0"),
      ],
    },
  },
  {
    name: "Block Cookies",
    description: "Remove cookies from requests and responses",
    template: { direction: "both", rewrites: [remove("Cookie"), remove("Set-Cookie")] },
  },
];

const DEFAULT_LIMIT = 100;

export interface RewritesOperationsParts {
  readonly store: RuleTable<StoredRewrite>;
  readonly traffic: Pick<CaptureStore, "getEntry">;
  readonly hits: HitCounter;
  readonly clock: Clock;
  readonly files: MappedFiles;
  readonly thread: TextThread;
  readonly limits: () => BodyLimits;
  readonly onChange: () => void;
}

export function createRewritesOperations(parts: RewritesOperationsParts): Handlers<typeof rewritesOperations> {
  const { store, hits, clock, files, onChange } = parts;
  const find = (id: string): StoredRewrite => store.find(id) ?? notFound("rewrite rule", id);
  const replace = (rule: StoredRewrite): StoredRewrite => {
    if (!store.update(rule)) return notFound("rewrite rule", rule.id);
    onChange();
    return rule;
  };
  const show = (rule: StoredRewrite) => showRewrite(rule, hits.pending(rule.id));
  const tried = (rule: NewRewriteRule | undefined, ruleId: string | undefined): StoredRewrite[] => {
    if (rule !== undefined && ruleId !== undefined) {
      throw validationError([{ path: "body/rule_id", message: "cannot be combined with rule" }]);
    }
    if (rule !== undefined) return [newRewrite("dry-run", rule, checked(rule, files, "body/rule"), clock.now())];
    return ruleId === undefined ? store.list().filter(({ enabled }) => enabled) : [find(ruleId)];
  };
  return {
    listRewrites: ({ query: { offset = 0, limit = DEFAULT_LIMIT } }) => {
      const rules = store.list().reverse();
      const headers = { "x-total-count": String(rules.length) };
      return { status: 200, headers, body: rules.slice(offset, offset + limit).map(show) };
    },
    createRewrite: ({ body }) => {
      const rule = newRewrite(randomUUID(), body, checked(body, files, "body"), clock.now());
      store.insert(rule);
      onChange();
      return { status: 201, body: { id: rule.id } };
    },
    listRewriteTemplates: () => ({ status: 200, body: [...REWRITE_TEMPLATES] }),
    toggleRewrites: ({ body: { ids, enabled } }) => {
      const unique = [...new Set(ids)];
      const rules = unique.flatMap((id) => store.find(id) ?? []);
      const missing = unique.filter((id) => store.find(id) === undefined);
      const updatedAtMs = clock.now();
      store.updateAll(rules.map((rule) => ({ ...rule, enabled, updatedAtMs })));
      if (rules.length > 0) onChange();
      return { status: 200, body: { updated: rules.length, not_found: missing, total: ids.length } };
    },
    dryRunRewrite: async ({ body }) => {
      const rules = tried(body.rule, body.rule_id);
      const entry = await parts.traffic.getEntry(body.entry_id, { includeBodies: true, decompressed: false });
      if (entry === undefined) return notFound("traffic entry", body.entry_id);
      if (entry.is_passthrough) {
        throw new ApiError(
          "VALIDATION_ERROR",
          "body/entry_id: a tunnel whose content was not captured cannot be rewritten",
        );
      }
      const compiled = compileOnce(rules, files, parts.thread);
      return { status: 200, body: await dryRun(entry, compiled, parts.limits) };
    },
    getRewrite: ({ params }) => ({ status: 200, body: show(find(params.id)) }),
    updateRewrite: ({ params, body }) => {
      const condition = checked(body, files, "body");
      return { status: 200, body: show(replace(updatedRewrite(find(params.id), body, condition, clock.now()))) };
    },
    deleteRewrite: ({ params }) => {
      if (!store.remove(params.id)) return notFound("rewrite rule", params.id);
      hits.forget(params.id);
      onChange();
      return { status: 204 };
    },
    toggleRewrite: ({ params, body }) => {
      const rule = find(params.id);
      const enabled = body?.enabled ?? !rule.enabled;
      if (enabled !== rule.enabled) replace({ ...rule, enabled, updatedAtMs: clock.now() });
      return { status: 200, body: { id: rule.id, enabled } };
    },
  };
}

/** Throws 400 with all issues; returns the condition in stored form. */
function checked(body: NewRewriteRule | RewriteRuleUpdate, files: MappedFiles, at: string): Condition {
  const parsed = parseRuleCondition(body, at);
  const issues = actionIssues(body, files).map(({ path, message }) => ({ path: at + path, message }));
  if (!parsed.ok) throw validationError([...parsed.issues, ...issues]);
  if (issues.length > 0) throw validationError(issues);
  return parsed.condition;
}
