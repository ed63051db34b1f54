import { join } from "node:path";
import {
  type Condition,
  type RewriteAction,
  RewriteRule,
  RewriteRuleUpdate,
  type rewritesOperations,
} from "@headworks/capture-contract";
import { readJson } from "@headworks/json";
import { parseRuleCondition } from "@headworks/match-condition";
import { portableList } from "#portable/portable-list.ts";
import { createHitCounter, RuleTable } from "#rules/rule-table.ts";
import type { Slice, SliceHost } from "#slice.ts";
import type { Database } from "#storage/database.ts";
import { createMappedFiles } from "./mapped-files.ts";
import type { BodyLimits } from "#rules/message-edit.ts";
import { type Direction, readRewrite, showRewrite, type StoredRewrite } from "./rewrite-rule.ts";
import { createRewriteRun, RewritesInterceptor } from "./rewrite-run.ts";
import { actionIssues } from "./rewrites.check.ts";
import { createRewriteCompiler, type RewriteRules } from "./rewrites.compile.ts";
import { createRewritesOperations } from "./rewrites.operations.ts";
import { createTextThread } from "./text-thread.ts";

/** Rules that modify requests and responses. */
export function createRewritesSlice(host: SliceHost): Slice<typeof rewritesOperations> {
  const { clock, log, events, settings } = host;
  const store = createRewriteTable(host.database);
  const files = createMappedFiles(
    () => [join(host.dataDir, "map-files"), ...settings.running.map_file_dirs],
    () => settings.running.rewrite_body_limit,
  );
  const thread = createTextThread();
  const compiler = createRewriteCompiler(files, thread);
  const compile = (): RewriteRules => {
    const compiled = compiler.compile(store.list());
    if (compiled.issues.length > 0) log.error({ issues: compiled.issues }, "unreadable rewrite rules have no effect");
    return compiled;
  };
  const hits = createHitCounter({
    addHits: (batch) => store.addHits(batch),
    every: (intervalMs, callback) => clock.every(intervalMs, callback),
    onFailure: (error) =>
      log.warn({ err: error }, "hit counts of rewrite rules could not be saved; they are kept and retried"),
  });
  const limits = (): BodyLimits => ({
    bodyBytes: settings.running.rewrite_body_limit,
    waitMs: settings.running.rewrite_body_wait_ms,
    after: (delayMs, callback) => clock.after(delayMs, callback),
  });
  const onChange = (): void => {
    interceptor.rules = compile();
    events.changed("rewrites");
  };
  const run = createRewriteRun({ limits, onHit: (ruleId) => hits.hit(ruleId) });
  const interceptor = new RewritesInterceptor(run, compile());
  return {
    name: "rewrites",
    operations: createRewritesOperations({ store, traffic: host.store, hits, clock, files, thread, limits, onChange }),
    interceptor,
    task: {
      start: (signal) => {
        hits.start(signal);
        signal.addEventListener("abort", () => thread.close());
      },
    },
    portableRules: portableList<RewriteRule>({
      key: "rewrites",
      schemaVersion: 1,
      schemas: [RewriteRule, RewriteRuleUpdate],
      list: () => store.list().map((rule) => showRewrite(rule, hits.pending(rule.id))),
      check: (rule) => {
        const condition = parseRuleCondition(rule);
        return [...(condition.ok ? [] : condition.issues), ...actionIssues(rule, files)];
      },
      write: (list) => store.replaceAll(list.map(readRewrite)),
      reload: () => {
        hits.forgetAll();
        store.reload();
        onChange();
      },
    }),
  };
}

function createRewriteTable(database: Database): RuleTable<StoredRewrite> {
  return new RuleTable(database, {
    table: "rewrite_rules",
    columns: {
      name: ({ name }) => name,
      condition: ({ condition }) => JSON.stringify(condition),
      direction: ({ direction }) => direction,
      actions: ({ actions }) => JSON.stringify(actions),
      priority: ({ priority }) => priority,
    },
    read: (row) => ({
      name: String(row["name"]),
      condition: readJson(String(row["condition"])) as unknown as Condition,
      direction: String(row["direction"]) as Direction,
      actions: readJson(String(row["actions"])) as unknown as RewriteAction[],
      priority: Number(row["priority"]),
    }),
  });
}
