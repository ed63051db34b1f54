import { WsRule, WsRuleUpdate } from "@headworks/capture-contract";
import type { wsTrafficOperations } from "@headworks/capture-contract";
import { createHitCounter } from "#rules/hit-counter.ts";
import { portableList } from "#portable/portable-list.ts";
import type { Slice, SliceHost } from "#slice.ts";
import { PausedMessages } from "./paused-messages.ts";
import { readWsRule, showWsRule, wsRuleIssues } from "./ws-rule.ts";
import { compileWsRules } from "./ws-traffic.compile.ts";
import { WsTrafficInterceptor } from "./ws-traffic.interceptor.ts";
import { createWsTrafficOperations } from "./ws-traffic.operations.ts";
import { createWsTrafficStore } from "./ws-traffic.store.ts";

/** Messages of WebSocket connections: recording, rules and manual control. */
export function createWsTrafficSlice(host: SliceHost): Slice<typeof wsTrafficOperations> {
  const { clock, log, events } = host;
  const store = createWsTrafficStore(host.database);
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
    worker: hits,
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
