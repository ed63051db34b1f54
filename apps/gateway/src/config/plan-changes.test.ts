import assert from "node:assert/strict";
import { test } from "node:test";
import type { ConfigDocument } from "@headworks/gateway-contract";
import { planChanges, type ChangePlan } from "./diff-documents.ts";
import { readDocument } from "./read-document.ts";

const base = `
name: one
listeners: [{name: public, address: '::', port: 80, idle_timeout_ms: 5}]
upstreams:
  - {name: u1, endpoints: [{address: a, port: 1}]}
  - {name: u2, endpoints: [{address: b, port: 2}]}
services: [{name: s1, upstream: u1}, {name: s2, split: {targets: [{upstream: u1}, {upstream: u2, weight: 2}]}}]
policies: [{name: p1}, {name: p2}, {name: p3}]
consumers: [{name: c1, policies: [p2]}, {name: c2}]
routes:
  - {name: r1, service: s1, match: {path: {type: prefix, value: /1}}, action: {type: proxy}}
  - {name: r2, service: s2, match: {path: {type: prefix, value: /2}}, action: {type: proxy}, policies: [p1]}
  - {name: r3, match: {path: {type: prefix, value: /3}}, action: {type: respond, status: 200}, authorization: {denied_consumers: [c2]}}
`;

function read(text: string): ConfigDocument {
  const { document, issues } = readDocument(text);
  assert.ok(document !== undefined && issues.length === 0);
  return document;
}

const cases: readonly (readonly [string, (text: string) => string, Partial<ChangePlan>])[] = [
  ["nothing", (text) => text, {}],
  ["a route", (text) => text.replace("/1}", "/one}"), { routes: ["r1"] }],
  ["an upstream behind a service", (text) => text.replace("port: 2", "port: 3"), { routes: ["r2"], upstreams: ["u2"] }],
  [
    "an upstream behind two services",
    (text) => text.replace("port: 1}", "port: 3}"),
    { routes: ["r1", "r2"], upstreams: ["u1"] },
  ],
  ["a service's share", (text) => text.replace("weight: 2", "weight: 3"), { routes: ["r2"] }],
  ["a route's policy", (text) => text.replace("{name: p1}", "{name: p1, dry_run: true}"), { routes: ["r2"] }],
  ["a consumer's policy", (text) => text.replace("{name: p2}", "{name: p2, dry_run: true}"), { consumers: ["c1"] }],
  ["a policy of nobody", (text) => text.replace("{name: p3}", "{name: p3, dry_run: true}"), {}],
  [
    "a consumer that a route names",
    (text) => text.replace("{name: c2}", "{name: c2, priority: 9}"),
    { routes: ["r3"], consumers: ["c2"] },
  ],
  ["a route that is removed", (text) => text.replace(/ {2}- \{name: r1.*\n/, ""), { routes: ["r1"] }],
  ["a setting for all requests", (text) => `${text}\ntrusted_proxies: [10.0.0.0/8]`, { routes: ["r1", "r2", "r3"] }],
  ["a setting that no request feels", (text) => text.replace("name: one", "name: two"), {}],
  ["a listener's port", (text) => text.replace("port: 80", "port: 81"), { rebound: ["public"] }],
  ["a listener's timeout", (text) => text.replace("idle_timeout_ms: 5", "idle_timeout_ms: 6"), {}],
];

for (const [name, change, expected] of cases) {
  void test(`a plan names what a change concerns: ${name}`, () => {
    const { changes, ...concerned } = planChanges(read(base), read(change(base)));
    assert.deepEqual(concerned, { routes: [], consumers: [], upstreams: [], rebound: [], ...expected });
    assert.equal(changes.length > 0, change(base) !== base);
  });
}

void test("against nothing, everything is new", () => {
  const plan = planChanges(undefined, read(base));
  assert.deepEqual(plan.routes, ["r1", "r2", "r3"]);
  assert.deepEqual(plan.rebound, ["public"]);
  assert.ok(plan.changes.every(({ change }) => change === "added" || change === "changed"));
});
