import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { FakeClock } from "@headworks/testkit";
import type { ConfigDocument } from "@headworks/gateway-contract";
import { checkDocument, freshFindings, type CheckParts } from "#config/check-document.ts";
import { readDocument } from "#config/read-document.ts";
import { checkRoutes } from "#routing/check-routes.ts";
import { explainRoute } from "#routing/explain.ts";
import { compileRewrite } from "#routing/actions.ts";
import { compileRouteTable } from "#routing/route-table.ts";
import { acceptVary } from "#slices/accept-vary/accept-vary.slice.ts";
import { deprecation } from "#slices/deprecation/deprecation.slice.ts";
import { compiledRoute, decorated, decoratorOf, requestFor } from "./requests.ts";

/** The example, which must have nothing to complain of, warnings included. */
function example(name: string): ConfigDocument {
  const reading = readDocument(
    readFileSync(new URL(`../../../../examples/gateway/${name}.yaml`, import.meta.url), "utf8"),
  );
  assert.ok(deprecation.check !== undefined);
  const parts: CheckParts = {
    checks: [checkRoutes, (document, report, scope) => deprecation.check?.(document, report, scope)],
    clock: new FakeClock(Date.UTC(2026, 5, 1)),
    environment: {},
  };
  assert.deepEqual(checkDocument(reading, parts, freshFindings({})), []);
  assert.ok(reading.document !== undefined);
  return reading.document;
}

interface Asked {
  readonly target: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** `name target`: the route that takes it, and what its upstream is asked for; undefined for 404. */
  readonly to: string | undefined;
}

const v1 = "application/vnd.acme.orders.v1+json";
const v2 = "application/vnd.acme.orders.v2+json";
const PATTERNS: readonly (readonly [string, readonly Asked[]])[] = [
  [
    "versioning-path",
    [
      { target: "/v1/orders?page=2", to: "orders-v1 /orders?page=2" },
      { target: "/v1", to: "orders-v1 /" },
      { target: "/v2/orders/7", to: "orders-v2 /orders/7" },
      { target: "/orders", to: "orders-default /orders" },
      { target: "/v10/orders", to: "orders-default /v10/orders" },
    ],
  ],
  [
    "versioning-header",
    [
      { target: "/orders", headers: { "X-API-Version": "2026-03-01" }, to: "orders-2026-03-01 /orders" },
      { target: "/orders/7", headers: { "x-api-version": "2025-01-01" }, to: undefined },
      { target: "/orders", to: undefined },
      { target: "/legacy/orders/7", to: "orders-2025-01-01 /orders/7" },
      { target: "/other", headers: { "X-API-Version": "2026-03-01" }, to: undefined },
    ],
  ],
  [
    "versioning-query",
    [
      { target: "/orders?version=2&page=1", to: "orders-v2 /orders?version=2&page=1" },
      { target: "/orders?version=1", to: undefined },
      { target: "/orders?version=%32", to: undefined },
      { target: "/orders", to: undefined },
      { target: "/beta/orders?beta", to: "orders-beta /orders?beta" },
      { target: "/beta/orders?beta=x", to: "orders-beta /orders?beta=x" },
      { target: "/beta/orders", to: undefined },
    ],
  ],
  [
    "versioning-media-type",
    [
      { target: "/v2/orders", headers: { accept: v2 }, to: "orders-v2 /orders" },
      { target: "/v2/orders", headers: { accept: `text/html, ${v2.toUpperCase()};q=0` }, to: "orders-v2 /orders" },
      { target: "/v1/orders", headers: { accept: v1 }, to: "orders-v1 /orders" },
      { target: "/v2/orders", headers: { accept: v1 }, to: undefined },
      { target: "/v2/orders", headers: { accept: "*/*" }, to: undefined },
      { target: "/v2/orders", to: undefined },
      { target: "/orders", headers: { accept: v2 }, to: undefined },
    ],
  ],
];

for (const [name, requests] of PATTERNS) {
  test(`versioning pattern of ${name}.yaml: each request takes the route the example says, and explain agrees`, () => {
    const document = example(name);
    const table = compileRouteTable(document.routes.map(compiledRoute));
    for (const { target, headers = {}, to } of requests) {
      const request = requestFor({ target, host: "127.0.0.1:8080", fields: Object.entries(headers).flat() });
      table.resolve(request);
      const { route } = request;
      const taken = route === undefined ? undefined : `${route.name} ${compileRewrite(route.document)(request)}`;
      assert.equal(taken, to, target);
      const explained = explainRoute(document, { method: "GET", target, host: "127.0.0.1:8080", headers });
      const said = explained.route === null ? undefined : `${explained.route} ${explained.upstream_target}`;
      assert.equal(said, to, `${target}: ${explained.reason}`);
    }
  });
}

test("versioning pattern 4: the old media type says that it goes, and every answer that it depends on Accept", () => {
  const [old, current] = example("versioning-media-type").routes;
  assert.ok(old !== undefined && current !== undefined);
  for (const route of [old, current]) {
    assert.deepEqual(decorated(decoratorOf(acceptVary, route), [], "short-circuit"), ["Vary", "Accept"]);
  }
  assert.deepEqual(decorated(decoratorOf(deprecation, old), [], "upstream"), [
    "Deprecation",
    "@1772323200",
    "Sunset",
    "Mon, 31 Dec 2035 23:59:59 GMT",
  ]);
  assert.equal(decoratorOf(deprecation, current), undefined);
});
