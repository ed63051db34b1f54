import {
  WsRule,
  type WsRuleAction,
  type WsRuleMatch,
  WsRuleUpdate,
  type wsTrafficOperations,
} from "@headworks/capture-contract";
import { portableList } from "#portable/portable-list.ts";
import { createHitCounter, RuleTable } from "#rules/rule-table.ts";
import type { Slice, SliceHost } from "#slice.ts";
import type { Database } from "#storage/database.ts";
import { readWsRule, showWsRule, type StoredWsRule, wsRuleIssues } from "./ws-rule.ts";
import { compileWsRules, PausedMessages, WsTrafficInterceptor } from "./ws-traffic.interceptor.ts";
import { createWsTrafficOperations } from "./ws-traffic.operations.ts";

/** Messages of WebSocket connections: recording, rules and manual control. */
export function createWsTrafficSlice(host: SliceHost): Slice<typeof wsTrafficOperations> {
  const { clock, log, events } = host;
  const store = createWsRuleTable(host.database);
  let rules = compileWsRules(store.list());
  const hits = createHitCounter({
    addHits: (batch) => store.addHits(batch),
    every: (intervalMs, callback) => clock.every(intervalMs, callback),
    onFailure: (error) =>
      log.warn({ err: error }, "hit counts of message rules could not be saved; they are kept and retried"),
  });
  const onChange = (): void => {
    rules = compileWsRules(store.list());
    events.changed("ws-traffic");
  };
  const paused = new PausedMessages(() => events.changed("ws-traffic"));
  const interceptor = new WsTrafficInterceptor(host.streams, {
    rules: () => rules,
    paused,
    onHit: (ruleId) => hits.hit(ruleId),
    after: (delayMs, callback) => clock.after(delayMs, callback),
    nowMs: () => clock.now(),
  });
  return {
    name: "ws-traffic",
    operations: createWsTrafficOperations({ host, store, hits, clock, interceptor, paused, onChange }),
    interceptor,
    task: hits,
    portableRules: portableList<WsRule>({
      key: "ws_rules",
      schemaVersion: 1,
      schemas: [WsRule, WsRuleUpdate],
      list: () => store.list().map((rule) => showWsRule(rule, hits.pending(rule.id))),
      check: wsRuleIssues,
      write: (list) => store.replaceAll(list.map(readWsRule)),
      reload: () => {
        hits.forgetAll();
        store.reload();
        onChange();
      },
    }),
  };
}

function createWsRuleTable(database: Database): RuleTable<StoredWsRule> {
  return new RuleTable(database, {
    table: "ws_rules",
    columns: {
      name: ({ name }) => name,
      match: ({ match }) => JSON.stringify(match),
      action: ({ action }) => JSON.stringify(action),
    },
    read: (row) => ({
      name: String(row["name"]),
      match: JSON.parse(String(row["match"])) as WsRuleMatch,
      action: JSON.parse(String(row["action"])) as WsRuleAction,
    }),
  });
}
