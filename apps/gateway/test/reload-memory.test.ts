import assert from "node:assert/strict";
import { test } from "node:test";
import { heapGrowthBytes } from "@headworks/testkit";
import type { DocumentInput } from "@headworks/gateway-contract";
import { serving, startGateway } from "./gateway-rig.ts";
import { proxied } from "./route-documents.ts";

const ROUTES = 2000;
/** A route, compiled and as it was written, takes 2.5 KB; what it was read from would take 6 more. */
const MAX_BYTES_PER_ROUTE = 4000;

/** Something of each kind of part that is compiled, and `count` routes. */
const documentWith = (count: number): DocumentInput => ({
  ...serving("api", [1]),
  consumers: [{ name: "c", credentials: [{ type: "api_key", key: "a-key" }] }],
  policies: [{ name: "p", rate_limits: [{ selector: ["credential"], requests_per: { s: 1000 } }] }],
  routes: Array.from({ length: count }, (_, at) =>
    proxied(`route-${at}`, `/${at}`, {
      service: "api",
      policies: ["p"],
      auth_required: true,
      action: { type: "proxy", rewrite: { type: "strip_prefix" } },
      deprecation: { since: "Thu, 01 Jan 2026 00:00:00 GMT" },
    }),
  ),
});

test("a running configuration holds on to what it was compiled to, and not to what it was read from", async () => {
  await using gateway = await startGateway(documentWith(1));
  const reload = async (count: number): Promise<void> => {
    assert.equal((await gateway.reload(documentWith(count))).outcome, "published");
  };
  await reload(ROUTES);
  await reload(2);
  const grownBytes = await heapGrowthBytes(async () => await reload(ROUTES));
  const perRoute = Math.round(grownBytes / ROUTES);
  assert.ok(perRoute > 0 && perRoute < MAX_BYTES_PER_ROUTE, `${perRoute} bytes for each route`);
});
