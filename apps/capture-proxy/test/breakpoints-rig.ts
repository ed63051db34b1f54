import assert from "node:assert/strict";
import type { Breakpoint, PausedItem, RuleTrace, TrafficEntry } from "@headworks/capture-contract";
import { waitUntil } from "@headworks/testkit";
import { echoed, entryOf } from "./proxy-rig.ts";
import type { ProxyRig, Respond } from "./proxy-rig.ts";

export const ALLOW = { action: "continue" };

/** A rig without rules, paused exchanges and memory of requests, with this origin: starting one for each test takes long. */
export async function cleared(rig: ProxyRig, respond: Respond = echoed): Promise<ProxyRig> {
  await rig.api("POST", "/breakpoints/resume-all");
  for (const { id } of await rig.api<Breakpoint[]>("GET", "/breakpoints")) {
    await rig.api("DELETE", `/breakpoints/${id}`, undefined, 204);
  }
  await paused(rig, 0);
  rig.seen.length = 0;
  rig.respond = respond;
  return rig;
}

/** What waits with its body there, oldest first, once it is that many. */
export async function paused(rig: ProxyRig, count: number): Promise<PausedItem[]> {
  return await waitUntil(
    async () => {
      const items = await rig.api<PausedItem[]>("GET", "/breakpoints/paused");
      return items.length === count && items.every(hasArrived) ? items.toReversed() : undefined;
    },
    { what: `a pause of ${count} exchanges` },
  );
}

function hasArrived({ request, response }: PausedItem): boolean {
  return (response ?? request).body_state !== "receiving";
}

/** The only one that waits, with its bodies. */
export async function one(rig: ProxyRig): Promise<PausedItem> {
  const [item] = await paused(rig, 1);
  assert.ok(item);
  return await rig.api<PausedItem>("GET", `/breakpoints/paused/${item.id}`);
}

export async function create(rig: ProxyRig, rule: object): Promise<string> {
  return (await rig.api<{ id: string }>("POST", "/breakpoints", rule, 201)).id;
}

export async function resume(rig: ProxyRig, item: PausedItem, decision: object, status = 200): Promise<unknown> {
  return await rig.api("POST", `/breakpoints/paused/${item.id}/resume`, decision, status);
}

export interface Row {
  readonly id: string;
  readonly path: string;
  readonly state: string;
}

/** The entry of a path when it is over. */
export async function endedEntry(rig: ProxyRig, path: string): Promise<TrafficEntry> {
  const { id } = await entryOf<Row>(rig, path, ({ state }) => state !== "pending");
  return await rig.api<TrafficEntry>("GET", `/traffic/${id}`);
}

/** What the rules left on the entry of a path. */
export async function traceOf(rig: ProxyRig, path: string): Promise<readonly RuleTrace[]> {
  return (await endedEntry(rig, path)).trace ?? [];
}
