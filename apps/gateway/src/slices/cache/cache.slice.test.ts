import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "@headworks/testkit";
import { compileScope, issuesOfRoute } from "../../../test/route-documents.ts";
import { documentOf, routeWith } from "../../../test/routing/requests.ts";
import { createCache } from "./cache.slice.ts";

const path = { type: "prefix", value: "/" } as const;
const cache = { ttl_secs: 1 };

test("vary: not Authorization, Cookie, hop-by-hop, X-Consumer-*", () => {
  const vary = ["Accept", "authorization", "Cookie", "TE", "Upgrade", "x-consumer-name", "X-Tenant"];
  assert.deepEqual(
    issuesOfRoute(createCache({ clock: new FakeClock() }), { cache: { ...cache, vary } }),
    [1, 2, 3, 4, 5].map((at) => `bad_header routes.0.cache.vary.${at}`),
  );
});

test("a route whose action has no upstream cannot cache", () => {
  const slice = createCache({ clock: new FakeClock() });
  const action = { type: "respond", status: 200 } as const;
  assert.deepEqual(issuesOfRoute(slice, { cache, action }), ["warning unused routes.0.cache"]);
  const route = routeWith("r", { path }, { cache, action });
  assert.equal(slice.compile?.(documentOf([route]), compileScope()).responseStoreFor?.(route), undefined);
});

test("purge: epochs rise; a route without cache is unknown; all routes at once", () => {
  const slice = createCache({ clock: new FakeClock() });
  const routes = [
    routeWith("a", { path }, { cache }),
    routeWith("b", { path }, { cache }),
    routeWith("plain", { path }),
  ];
  const compiled = slice.compile?.(documentOf(routes), compileScope());
  for (const route of routes) compiled?.responseStoreFor?.(route);
  assert.equal(slice.purge("a"), undefined, "not published yet");
  compiled?.published?.();
  const [first, second] = [slice.purge("a") ?? 0, slice.purge("a") ?? 0];
  assert.ok(second > first && first > 0);
  assert.equal(slice.purge("plain"), undefined);
  assert.equal(slice.purgeAll(), 2);
  assert.equal(slice.counts().purges, 3);
});
